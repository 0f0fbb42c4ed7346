"""What all tests share: which build is tested, and the rules for the oracle.

Invariant: a test never runs against a package older than the sources, and, once the oracle has been asked for
(`MINDTORCH_REQUIRE_ORACLE=1`), a parity test that did not run makes the session fail.
"""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mindtorch_v2"
ORACLE_VERSION = "2.13.0"
ORACLE_REQUIRED = os.environ.get("MINDTORCH_REQUIRE_ORACLE") == "1"
# The tests can be run on PyTorch itself, to prove that they expect what it does (tests/mindtorch_v2/_subject.py).
SUBJECT_IS_ORACLE = os.environ.get("MINDTORCH_TEST_SUBJECT") == "torch"
# Which random programs run (tests/mindtorch_v2/programs): `first:last`, or `new` for 2000 that no session ran before.
# The seeds are fixed here, so that the same commit always gets the same answer; a commit that changes the generator of
# programs, or wants others, changes the number.
_FIRST_PROGRAM = 1_200_000_000
if os.environ.get("MINDTORCH_PROGRAMS") == "new":
    _FIRST_PROGRAM = int.from_bytes(os.urandom(4), "big")
    del os.environ["MINDTORCH_PROGRAMS"]
PROGRAMS = os.environ.setdefault("MINDTORCH_PROGRAMS", f"{_FIRST_PROGRAM}:{_FIRST_PROGRAM + 2000}")
NO_ORACLE = f"the oracle (torch {ORACLE_VERSION}) is not installed: make test ORACLE=1"


def tested_package() -> Path:
    spec = importlib.util.find_spec("mindtorch_v2")
    if spec is None or spec.origin is None:
        pytest.exit("mindtorch_v2 is not installed here: run make build, or set PYTHONPATH=src after make native", 2)
    return Path(spec.origin).parent


def oracle_present() -> bool:
    return importlib.util.find_spec("torch") is not None


def stale_files(package: Path) -> Iterator[str]:
    """Sources whose text differs from what is installed."""
    for source in sorted(SOURCE.rglob("*.py")):
        name = source.relative_to(SOURCE)
        installed = package / name
        if not installed.exists() or installed.read_bytes() != source.read_bytes():
            yield str(name)


def pytest_configure() -> None:
    if SUBJECT_IS_ORACLE:
        return
    package = tested_package()
    if package.resolve() == SOURCE.resolve():
        return
    stale = list(stale_files(package))
    if stale:
        shown = ", ".join(stale[:5]) + (", ..." if len(stale) > 5 else "")
        pytest.exit(f"the installed mindtorch_v2 is older than src/ ({shown}): run make build", 2)


def pytest_report_header() -> list[str]:
    if SUBJECT_IS_ORACLE:
        return ["the tests run on PyTorch itself"]
    package = tested_package()
    compiled = any(package.glob("_core__mypyc*"))
    where = "src" if package.resolve() == SOURCE.resolve() else "installed"
    oracle = ORACLE_VERSION if oracle_present() else "absent"
    return [
        f"mindtorch_v2: {where}, {'compiled' if compiled else 'uncompiled'}; oracle: {oracle}",
        f"random programs: MINDTORCH_PROGRAMS={PROGRAMS}",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    present = oracle_present()
    for item in items:
        if "oracle" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.oracle)
        if item.get_closest_marker("oracle") and not present and not ORACLE_REQUIRED:
            item.add_marker(pytest.mark.skip(reason=NO_ORACLE))


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """PyTorch itself. A test that takes this fixture is a parity test."""
    import torch

    version = torch.__version__.split("+")[0]
    assert version == ORACLE_VERSION, f"parity is with torch {ORACLE_VERSION}, found {version}"
    torch.set_num_threads(1)
    return torch


class Parity:
    """Counts the parity tests that passed and those that did not run."""

    def __init__(self) -> None:
        self.passed = 0
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "oracle" in report.keywords and report.when == "call" and report.passed:
            self.passed += 1
        if report.skipped and not hasattr(report, "wasxfail"):
            if "oracle" in report.keywords or "oracle" in str(report.longrepr).lower():
                self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if ORACLE_REQUIRED and exitstatus == 0 and self.skipped:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        why = "" if oracle_present() else f": {NO_ORACLE}"
        terminalreporter.write_line(f"parity tests: {self.passed} passed, {len(self.skipped)} skipped{why}")
        if ORACLE_REQUIRED:
            for name in self.skipped:
                terminalreporter.write_line(f"  the oracle is required, but skipped: {name}", red=True)


def pytest_collection_finish() -> None:
    """A hundred thousand tests and all their modules stay to the end: the collector need not walk them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    if ORACLE_REQUIRED and not oracle_present():
        pytest.exit(NO_ORACLE, 2)
    session.config.pluginmanager.register(Parity(), "parity")
