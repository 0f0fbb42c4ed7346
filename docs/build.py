"""Builds the documentation site: `make docs`. What is in docs/, what the tables say, and pages from elsewhere.

Invariant: nothing is written but build/docs/. A link that leads nowhere, or whatever else Sphinx warns of,
fails the build.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

import make_reference
import make_support
import make_trace

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# Pages that have their place elsewhere in the repository.
ELSEWHERE = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "csrc/ascend_emulator/README.md": "emulator_libraries.md",
    "examples/README.md": "examples.md",
}
# Pages that docs/index.md does not name have a place in the menu all the same.
MORE = "\n```{{toctree}}\n:hidden:\n:caption: More\n\n{}\n```\n"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def relinked(text: str, home: Path) -> str:
    """Links to files of the repository become links to their pages; to files that are no page, plain text."""

    def one(found: re.Match[str]) -> str:
        label, target, fragment = found[1], found[2], found[3] or ""
        path = Path(os.path.normpath(home / target))
        if path.is_relative_to(DOCS):
            return f"[{label}]({path.relative_to(DOCS)}{fragment})"
        page = ELSEWHERE.get(str(path.relative_to(ROOT))) if path.is_relative_to(ROOT) else None
        return f"[{label}]({page}{fragment})" if page else label

    return _LINK.sub(one, text)


def gather(source: Path, picture: bool) -> None:
    """Everything that Sphinx reads."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for path in DOCS.glob("*.md"):
        (source / path.name).write_text(relinked(path.read_text(), DOCS))
    for name, page in ELSEWHERE.items():
        path = ROOT / name
        (source / page).write_text(relinked(path.read_text(), path.parent))
    index = source / "index.md"
    listed = set(index.read_text().split())
    others = sorted(path.stem for path in source.glob("*.md") if path.stem not in listed | {"index", "support"})
    if others:
        index.write_text(index.read_text() + MORE.format("\n".join(others)))
    shutil.copytree(DOCS / "_static", source / "_static")
    addresses = make_reference.write(source / "reference")
    (source / "support.md").write_text(make_support.page(lambda name: make_reference.address(addresses, name)))
    drawn = make_trace.svg(make_trace.of_the_demo()) if picture else "<svg xmlns='http://www.w3.org/2000/svg'/>"
    (source / "trace.svg").write_text(drawn)
    shutil.copy(ROOT / "benchmarks" / "published.svg", source)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--no-picture", action="store_true", help="without the trace, for which a step is trained")
    given = parser.parse_args()
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        print("the site needs Sphinx: pip install '.[docs]', or make docs")
        return 1
    source, site = given.out / "source", given.out / "site"
    print("gathering pages", flush=True)
    gather(source, not given.no_picture)
    print("building the site", flush=True)
    failed = build_main(
        ["-q", "-W", "--keep-going", "-b", "html", "-c", str(DOCS), "-d", str(given.out / "trees")]
        + [str(source), str(site)]
    )
    if not failed:
        print(f"the site is in {os.path.relpath(site)}/index.html")
    return failed


if __name__ == "__main__":
    sys.exit(main())
