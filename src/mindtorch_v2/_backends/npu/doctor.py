"""`python -m mindtorch_v2 doctor`: what of an Ascend installation was found, what is missing, and what to do next.

Invariant: every problem is a line that says what is wrong and ends with one thing to do; looking changes nothing, and
a device is initialised only when everything before it is in order.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

from . import acl_loader, errors, installation, runtime
from .installation import Installation

DRIVER_ROOTS = ("/usr/local/Ascend/driver", "/usr/local/Ascend/latest/driver")
# ELF's numbers of the machines the vendor builds for.
_MACHINES = {62: "x86_64", 183: "aarch64"}
_SHOWN = 12


@dataclass
class Report:
    """Facts in the order they were found, and the problems among them."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def fact(self, name: str, value: str) -> None:
        self.facts.append((name, value))

    def problem(self, what: str, todo: str) -> None:
        self.problems.append(f"{what}. Next: {todo}")

    def text(self) -> str:
        width = max(len(name) for name, _ in self.facts)
        lines = [f"{name:<{width}}  {value}" for name, value in self.facts]
        if self.problems:
            lines += ["", "problems:", *(f"  {i}. {p}" for i, p in enumerate(self.problems, 1))]
        else:
            lines += ["", "healthy: torch.npu can be used"]
        return "\n".join(lines)


def examine() -> Report:
    """Look at everything, stopping where what follows depends on what is missing."""
    report = Report()
    try:
        found = installation.search()
    except RuntimeError as error:
        report.fact("mode", os.environ["MINDTORCH_NPU"])
        report.problem(str(error), "set MINDTORCH_NPU to one of them or unset it")
        return report
    report.fact("mode", found.mode)
    for place, what in found.looked:
        report.fact("looked at", f"{place}: {what}")
    _driver(report, found)
    if found.found is None:
        _nothing(report, found)
        return report
    if _libraries(report, found.found):
        acl = _loaded(report)
        if acl is not None:
            _symbols(report, acl)
            _devices(report, acl)
    return report


def _nothing(report: Report, found: installation.Search) -> None:
    if found.mode == "off":
        report.problem("MINDTORCH_NPU=off switches NPUs off", "unset MINDTORCH_NPU")
    elif found.mode == "emulator":
        report.problem("the emulator is not built", "build the package again")
    elif any(os.environ.get(v) for v in installation.HOME_VARIABLES):
        report.problem(
            "the CANN home named by the environment does not exist",
            "source set_env.sh of the CANN installation you want",
        )
    else:
        report.problem(
            "no CANN installation was found",
            "install CANN and source its set_env.sh; to try without hardware set MINDTORCH_NPU=emulator",
        )


def _driver(report: Report, found: installation.Search) -> None:
    if found.mode in ("off", "emulator"):
        return
    for root in DRIVER_ROOTS:
        version = Path(root, "version.info")
        if version.is_file():
            lines = version.read_text(errors="replace").splitlines()
            told = next((line.partition("=")[2] for line in lines if line.lower().startswith("version=")), "unknown")
            report.fact("driver", f"{told} in {root}")
            return
    report.fact("driver", "no version.info in " + " or ".join(DRIVER_ROOTS))


# -- files --------------------------------------------------------------------------------------------------------
def _libraries(report: Report, where: Installation) -> bool:
    """Whether the files are there and made for this machine."""
    report.fact("home", f"{where.home} (from {where.source})")
    report.fact("layout", where.layout)
    fine = True
    paths = [p for p in (where.runtime, where.nnopbase) if p is not None] + list(where.operators)
    for path in paths:
        broken = _file_problem(path)
        report.fact("library", f"{path}" + (f": {broken}" if broken else ""))
        if broken:
            fine = False
            report.problem(f"{path} {broken}", f"install the CANN package for {installation.architecture()} again")
    for name in where.missing():
        fine = False
        report.fact("library", f"{name}: missing")
        report.problem(f"{name} is missing in {where.home}", _package(name))
    if where.kind == "cann" and not os.environ.get("ASCEND_OPP_PATH"):
        report.fact("note", f"ASCEND_OPP_PATH is not set; source {where.home}/set_env.sh before running operators")
    return fine


def _package(name: str) -> str:
    if "opapi" in name:
        return "install the operator package of the same CANN version (Ascend-cann-kernels or cann-ops)"
    return "install the CANN toolkit again, or name a complete one in ASCEND_HOME_PATH"


def _file_problem(path: Path) -> str:
    """What is wrong with a library file, without loading it."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return "is not an ELF library"
    machine = _MACHINES.get(struct.unpack("<H", head[18:20])[0], "another machine")
    if machine != installation.architecture():
        return f"is built for {machine}, this machine is {installation.architecture()}"
    return ""


def _loaded(report: Report) -> acl_loader.Acl | None:
    try:
        acl = acl_loader.ensure_acl()
        # Opens the operator libraries one after the other, as the backend does.
        acl.symbol("aclnnAddGetWorkspaceSize")
    except RuntimeError as error:
        what, _, todo = str(error).rpartition("; ")
        report.problem(what, todo)
        return None
    return acl


# -- functions and devices ----------------------------------------------------------------------------------------
def _symbols(report: Report, acl: acl_loader.Acl) -> None:
    from . import probe

    try:
        missing = probe.missing_symbols()
    except RuntimeError as error:
        what, _, todo = str(error).rpartition("; ")
        report.problem(what, todo)
        return
    report.fact("core", "all functions found" if not missing else f"{len(missing)} functions missing")
    if missing:
        report.problem(
            f"functions the backend cannot do without are missing in the libraries: {_some(missing)}",
            "install a newer CANN",
        )
    _operators(report, acl)


def _operators(report: Report, acl: acl_loader.Acl) -> None:
    """Functions of single operators: one that is missing takes its operators away, and nothing else."""
    from . import table

    names = table.names()
    absent = [n for n in names if acl.symbol(n) is None or acl.symbol(n + "GetWorkspaceSize") is None]
    report.fact(
        "operators",
        f"{len(names) - len(absent)} of {len(names)} functions found"
        + (f"; operators that need these raise an error that says so: {_some(absent)}" if absent else ""),
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _devices(report: Report, acl: acl_loader.Acl) -> None:
    _versions(report, acl)
    count = ctypes.c_uint32()
    status = int(acl.aclrtGetDeviceCount(ctypes.byref(count)))
    if status != 0:
        said = errors.vendor_text()
        report.fact("devices", f"cannot be counted: {errors.name_of(status)} (status {status})")
        report.problem(
            f"the driver does not answer: aclrtGetDeviceCount gave {status}, {errors.name_of(status)}"
            + (f" ({said})" if said else ""),
            "install or load the device driver and look at npu-smi info; in a container, pass "
            "/dev/davinci* and the driver's folder in",
        )
        return
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    report.fact("devices", f"{count.value}" + ("" if visible is None else f" (ASCEND_RT_VISIBLE_DEVICES={visible})"))
    if count.value == 0:
        report.problem(
            "no device can be seen",
            "unset ASCEND_RT_VISIBLE_DEVICES"
            if visible is not None
            else "look at npu-smi info; in a container, pass /dev/davinci* in",
        )
        return
    _first_device(report)


def _versions(report: Report, acl: acl_loader.Acl) -> None:
    version = runtime.cann_version()
    report.fact("CANN", version or "this version does not tell")
    if acl.has("aclrtGetVersion"):
        parts = [ctypes.c_int32() for _ in range(3)]
        if acl.aclrtGetVersion(*(ctypes.byref(p) for p in parts)) == 0:
            report.fact("ACL", ".".join(str(p.value) for p in parts))


def _first_device(report: Report) -> None:
    """Initialise, which is the last thing that can go wrong."""
    try:
        report.fact("chip", f"{runtime.soc_name()} ({runtime.chip()})")
        free, total = runtime.memory_info(0)
        report.fact("memory", f"{free >> 20} MiB free of {total >> 20} MiB on npu:0")
    except RuntimeError as error:
        report.problem(f"npu:0 cannot be used: {error}", "look at npu-smi info and the logs in ~/ascend/log")


def main() -> int:
    report = examine()
    print(report.text())
    return 1 if report.problems else 0
