"""Runs tests that libraries bring themselves, as they are in their source distributions, on this package's `torch`.

    python tests/clients/suites.py --ours PYTHON [--oracle PYTHON] [names...]

`--ours`: a Python with the libraries, this package and its distribution `torch`. `--oracle`: a Python with PyTorch, on
which whatever failed is run again, so that what fails there too is told apart. `SUITES` lists what fails and why; a
failure that is not listed fails the run, and so does a listed test that passes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

# The libraries of the first environment behind the second's own; its module for the device is no part of PyTorch.
START = (
    "import sys; sys.path.append(sys.argv.pop(1)); sys.modules['torch_npu'] = None; import pytest; "
    "sys.exit(pytest.main(sys.argv[1:]))"
)


@dataclass(frozen=True)
class Suite:
    """A library's tests: the folder in its source distribution ("": doctests of the installed modules), what pytest is
    asked for there, and what fails: patterns of names, with the cause."""

    folder: str
    ask: tuple[str, ...]
    known: dict[str, str] = field(default_factory=dict)


SUITES = {
    "einops": Suite("einops/tests", ("tests",)),
    "safetensors": Suite(
        "bindings/python/tests",
        # The other frameworks' files need those frameworks.
        ("tests", "--ignore-glob=*flax*", "--ignore-glob=*tf_*", "--ignore-glob=*paddle*", "--ignore-glob=*mlx*"),
    ),
    "torchmetrics": Suite(
        "",
        (
            "--doctest-modules",
            "--pyargs",
            "torchmetrics.functional.classification",
            "torchmetrics.functional.regression",
            "torchmetrics.functional.retrieval",
            "torchmetrics.regression",
            "torchmetrics.aggregation",
            "torchmetrics.wrappers",
        ),
    ),
    "linear-operator": Suite("test", ("test/functions", "test/utils", "test/test_settings.py")),
    "gpytorch": Suite(
        "test",
        ("test", "--ignore=test/examples"),
        {
            "test.likelihoods.test_multitask_gaussian_likelihood.*::test_setters": (
                "0.5 within 5e-8 after softplus and back; here it is 6e-8 off, one unit in the last place of float32"
            )
        },
    ),
}


def source(name: str, version: str, folder: Path) -> Path:
    """The unpacked source distribution, from where pip would take it."""
    home = folder / f"{name.replace('-', '_')}-{version}"
    if home.exists():
        return home
    from pip._internal.models.index import PyPI

    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    page_at = f"{(told.stdout.strip() or PyPI.simple_url).rstrip('/')}/{name}/"
    with urllib.request.urlopen(page_at, timeout=120) as answer:
        page = answer.read().decode()
    wanted = rf'href="([^"#]*/{name.replace("-", "[-_]")}-{re.escape(version)}\.tar\.gz)(?:#sha256=(\w+))?'
    found = re.search(wanted, page)
    if found is None:
        raise SystemExit(f"{name} {version} has no source distribution")
    with urllib.request.urlopen(urllib.parse.urljoin(page_at, found[1]), timeout=300) as answer:
        data = answer.read()
    if found[2] and hashlib.sha256(data).hexdigest() != found[2]:
        raise SystemExit(f"{name} {version}: the source distribution is not what the index says")
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{name}.tar.gz"
    packed.write_bytes(data)
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return home


def outcomes(python: str, ask: list[str], home: Path, folder: str | None) -> dict[str, str]:
    """Run pytest in a folder; "passed", "skipped" or what went wrong, by the test's name."""
    report = home / "report.xml"
    report.unlink(missing_ok=True)
    start = [python, "-m", "pytest"] if folder is None else [python, "-c", START, folder]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MINDTORCH"))}
    environment.update(OMP_NUM_THREADS="1", MINDTORCH_NPU="emulator", EINOPS_TEST_BACKENDS="numpy,torch")
    environment["PATH"] = f"{Path(python).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [*start, "-q", "-p", "no:cacheprovider", "--tb=line", "--rootdir=.", f"--junitxml={report}", *ask],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
    )
    if not report.exists():
        return {"all": (done.stdout + done.stderr).strip()[-300:] or "no report"}
    found: dict[str, str] = {}
    for case in xml.parse(report).iter("testcase"):
        problem = next((c for c in case if c.tag in ("failure", "error", "skipped")), None)
        name = f"{case.get('classname')}::{case.get('name')}".lstrip(":")
        kind = "passed" if problem is None else "skipped" if problem.tag == "skipped" else ""
        found[name] = (
            kind or " ".join((problem.get("message") or "").split())[:150] if problem is not None else "passed"
        )
    return found


def run(name: str, given: argparse.Namespace, folder: str) -> tuple[str, dict[str, Any], str]:
    """One suite: its line of the table, what was found, and what is to be said of failures."""
    begun, suite = time.monotonic(), SUITES[name]
    asks = [given.ours, "-c", f"import importlib.metadata as m; print(m.version({name!r}))"]
    version = subprocess.run(asks, check=True, capture_output=True, text=True).stdout.strip()
    home = given.folder.resolve() / "run" / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    # A file of its own, or pytest finds this project's settings above; the flags are those of torchmetrics.
    (home / "pytest.ini").write_text("[pytest]\ndoctest_optionflags = NORMALIZE_WHITESPACE ELLIPSIS\n")
    if suite.folder:
        tests = source(name, version, given.folder) / suite.folder
        shutil.copytree(tests, home / tests.name)
    ask = list(suite.ask)
    found = outcomes(given.ours, ask, home, None)
    failed = {test: why for test, why in found.items() if why not in ("passed", "skipped")}
    theirs: dict[str, str] = {}
    if failed and given.oracle:
        theirs = outcomes(given.oracle, ask, home, folder)
    listed = {t: c for t in failed for pattern, c in suite.known.items() if fnmatch(t, pattern)}
    both = {t for t in failed if theirs.get(t, "passed") not in ("passed", "skipped") and t not in listed}
    fresh = {t: why for t, why in failed.items() if t not in listed and t not in both}
    stale = [p for p in suite.known if not any(fnmatch(t, p) for t in failed)]
    passed = sum(why == "passed" for why in found.values())
    result = dict(
        version=version,
        passed=passed,
        skipped=len(found) - passed - len(failed),
        listed=len(listed),
        both=sorted(both),
        failed=len(fresh) + len(stale),
    )
    line = (
        f"{name + ' ' + version:26} {passed:>6} {result['skipped']:>8} {len(listed):>8} {len(both):>11} "
        f"{len(fresh):>7}  {time.monotonic() - begun:5.0f} s"
    )
    said = [f"    {t}: {why}" for t, why in list(fresh.items())[: given.show]]
    said += [f"    {t}: fails on PyTorch too: {failed[t]}" for t in sorted(both)]
    said += [f"    listed, and does not fail: {p}" for p in stale]
    return line, result, "\n".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", choices=[*SUITES, []], help="suites; all of them by default")
    parser.add_argument("--ours", required=True, help="a Python with the libraries and this package's torch")
    parser.add_argument("--oracle", help="a Python with PyTorch")
    parser.add_argument("--folder", type=Path, default=Path("build/suites"), help="where sources are unpacked")
    parser.add_argument("--results", type=Path, help="a file for what was found, as JSON")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="suites at a time")
    parser.add_argument("--show", type=int, default=40, help="how many failures of a suite are shown")
    given = parser.parse_args()
    # The tests run in folders of their own. Not resolved: a link is what makes it the Python of an environment.
    given.ours = os.path.abspath(given.ours)
    given.oracle = given.oracle and os.path.abspath(given.oracle)
    asks = [given.ours, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    folder = subprocess.run(asks, check=True, capture_output=True, text=True).stdout.strip()
    names = given.names or list(SUITES)
    results: dict[str, Any] = {}
    print(f"{'suite':26} {'passed':>6} {'skipped':>8} {'listed':>8} {'on PyTorch':>11} {'failed':>7}")
    with ThreadPoolExecutor(given.jobs) as pool:
        for name, (line, result, said) in zip(names, pool.map(lambda n: run(n, given, folder), names)):
            print(line + (f"\n{said}" if said else ""), flush=True)
            results[name] = result
    if given.results:
        given.results.write_text(json.dumps(results, indent=1))
    return int(any(r["failed"] for r in results.values()))


if __name__ == "__main__":
    sys.exit(main())
