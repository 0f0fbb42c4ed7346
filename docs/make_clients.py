"""The tables of docs/programs.md that the client tests fill: clients, families of transformers, libraries' own tests.

    python docs/make_clients.py [--clients build/clients.json] [--suites build/suites.json]

What is run comes from tests/clients (versions, programs, families, listed failures); how it went comes from the files
that `make test-clients` and `make test-suites` write. Without one, what the page says of it stays.
Invariant: a test compares the page with the client tests, so that a new program or version is not forgotten.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CLIENTS = ROOT / "tests" / "clients"
PAGE = ROOT / "docs" / "programs.md"
# Programs whose library has another name on the registry.
NAMES = {"pyro": "pyro-ppl", "several": "accelerate"}
GROUPS = {
    "decoders": "decoders",
    "encoders": "encoders",
    "pairs": "encoder and decoder",
    "experts": "mixture of experts",
    "states": "state space",
    "images": "vision",
    "speech": "audio",
    "mixed": "several kinds",
    "npu": "on an NPU",
}
UNKNOWN = "`make test-clients` tells"


def module(name: str) -> Any:
    """A file of the client tests, as a module."""
    spec = importlib.util.spec_from_file_location(name, CLIENTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def versions() -> dict[str, str]:
    lines = [line for path in CLIENTS.glob("requirements*.txt") for line in path.read_text().splitlines()]
    return {name: version for name, mark, version in (line.partition("==") for line in lines) if mark}


def went(results: dict[str, Any], program: str) -> str:
    """How the parts of a program went: the stages that passed, or the first failure."""
    parts = {k: v for k, v in results.items() if k.partition("/")[0] == program}
    if not parts:
        return UNKNOWN
    failed = [f"{k.partition('/')[2]} {v['error']}".strip() for k, v in parts.items() if v["error"]]
    if failed:
        return f"{len(parts) - len(failed)} of {len(parts)}; {failed[0]}".replace("|", "/")
    stages = dict.fromkeys(stage for v in parts.values() for stage in v["passed"])
    return " ".join(stages) + ("; as PyTorch" if all(v["compared"] for v in parts.values()) else "")


def clients(results: dict[str, Any]) -> list[list[str]]:
    """A row for each program, groups of families apart."""
    pinned, rows = versions(), []
    for path in sorted((CLIENTS / "programs").glob("*.py")):
        if path.stem.partition("_")[2] in GROUPS:
            continue
        library = NAMES.get(path.stem, path.stem.replace("_", "-").removesuffix("-trainer"))
        said = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0].rstrip(".")
        about = re.sub(rf"^{library}(: |, | on )", "", said)
        rows.append([f"{library} {pinned[library]}", about, went(results, path.stem)])
    return rows


def families(results: dict[str, Any]) -> list[list[str]]:
    """A row for each group of families."""
    table: dict[str, dict[str, Any]] = module("_families").FAMILIES
    npu = re.search(r'NAMES = "([^"]*)"', (CLIENTS / "programs" / "transformers_npu.py").read_text())
    assert npu is not None and {*GROUPS} == {*table, "npu"}
    names = {**{group: " ".join(rows) for group, rows in table.items()}, "npu": f"{npu[1]}; accelerate's loop"}
    return [[title, names[group], went(results, f"transformers_{group}")] for group, title in GROUPS.items()]


def suites(results: dict[str, Any]) -> list[list[str]]:
    """A row for each library's own tests, and what of them fails."""
    rows = []
    for name, suite in module("suites").SUITES.items():
        found = results.get(name)
        count = UNKNOWN if found is None else f"{found['passed']} passed, {found['skipped']} skipped"
        if found is not None:
            name = f"{name} {found['version']}"
            count += f", {found['listed']} failed" if found["listed"] else ""
            count += f", {len(found['both'])} on PyTorch as well" if found["both"] else ""
        causes = "; ".join(f"{', '.join(tests)}: {cause}" for cause, tests in by_cause(suite.known).items())
        rows.append([name, causes.replace("*", "…"), count])
    return rows


def by_cause(known: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test, cause in known.items():
        found.setdefault(cause, []).append(f"`{test}`")
    return found


TABLES = {
    "clients": (["client", "what is run", "stages that pass"], clients),
    "families": (["group", "families", "stages that pass"], families),
    "suites": (["library", "what fails", "its own tests"], suites),
}


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: make_clients.py -->\n", f"<!-- {name}: end -->\n"


def shown(page: str, name: str) -> list[list[str]]:
    """The rows of a table of the page, without its head."""
    begin, end = marks(name)
    lines = page.partition(begin)[2].partition(end)[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]


def written(page: str, name: str, results: dict[str, Any]) -> str:
    """The page with a new table. How something went that was not run is what the page says of it."""
    head, make = TABLES[name]
    # A library may have several programs, which are told apart by what they are about.
    about = slice(0, 2 if name == "clients" else 1)
    old = {(row[0].split()[0],) if name == "suites" else tuple(row[about]): row for row in shown(page, name)}
    rows = make(results)
    for row in rows:
        before = old.get(tuple(row[about]))
        if row[-1] == UNKNOWN and before is not None:
            row[0], row[-1] = before[0], before[-1]
    lines = [head, ["---"] * len(head), *rows]
    begin, end = marks(name)
    front, _, rest = page.partition(begin)
    text = "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
    return front + begin + text + end + rest.partition(end)[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--clients", type=Path, default=ROOT / "build" / "clients.json")
    parser.add_argument("--suites", type=Path, default=ROOT / "build" / "suites.json")
    given = parser.parse_args()
    page = PAGE.read_text()
    for name in TABLES:
        path = given.suites if name == "suites" else given.clients
        page = written(page, name, json.loads(path.read_text()) if path.exists() else {})
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
