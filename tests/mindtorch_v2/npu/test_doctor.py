"""`python -m mindtorch_v2 doctor`: healthy installations, and broken ones with what each one is told to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import _layouts as layouts


def doctor(env: dict[str, str]) -> tuple[int, str]:
    done = layouts.python(env, "-m", "mindtorch_v2", "doctor")
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("names", [layouts.NEW, layouts.OLD], ids=["new", "old"])
def test_a_healthy_installation(tmp_path: Path, names: tuple[str, ...]) -> None:
    where = layouts.home(tmp_path / "cann", names)
    code, text = doctor(layouts.environment(where, ASCEND_EMULATOR_DEVICES="2", ASCEND_EMULATOR_CHIP="910B"))
    assert code == 0, text
    for part in ("healthy", str(where), "all functions found", "910B", "8.5.0"):
        assert part in text, text
    assert [line.split() for line in text.splitlines() if line.startswith("layout")] == [
        ["layout", "new" if names is layouts.NEW else "old"]
    ]


def test_a_healthy_emulator() -> None:
    code, text = doctor(layouts.environment(None, MINDTORCH_NPU="emulator", ASCEND_EMULATOR_CHIP="310P"))
    assert code == 0, text
    assert "Ascend310P3 (310P)" in text


def without(*names: str) -> Callable[[Path], object]:
    def damage(lib: Path) -> None:
        for name in names:
            (lib / name).unlink()

    return damage


def replaced(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda lib: (lib / name).write_bytes(content)


def renamed(library: str, name: str) -> Callable[[Path], object]:
    return lambda lib: layouts.rename_symbol(lib / library, name)


SPLIT = tuple(name for name in layouts.NEW if name.startswith("libopapi"))
# name -> (damage, environment, what is wrong, what to do)
BROKEN: dict[str, tuple[Callable[[Path], object], dict[str, str], str, str]] = {
    "no nnopbase": (without("libnnopbase.so"), {}, "libnnopbase.so is missing", "install the CANN toolkit again"),
    "no runtime": (without("libacl_rt.so", "libascendcl.so"), {}, "libascendcl.so is missing", "install the CANN"),
    "no operators": (
        without(*SPLIT),
        {},
        "libopapi_math.so (new layout) or libopapi.so (old layout) is missing",
        "install the operator package",
    ),
    "text instead of a library": (
        replaced("libopapi_nn.so", b"not a library, but long enough"),
        {},
        "libopapi_nn.so is not an ELF library",
        "again",
    ),
    "another machine": (
        lambda lib: layouts.other_machine(lib / "libacl_rt.so"),
        {},
        "is built for",
        "install the CANN package for",
    ),
    "a dependency not found": (without(layouts.CORE), {}, "libascend_emulator.so", "set_env.sh"),
    "an operator function missing": (
        renamed("libopapi_math.so", "aclnnAdd"),
        {},
        "missing in the libraries: aclnnAdd",
        "install a newer CANN",
    ),
    "an object function missing": (
        renamed("libnnopbase.so", "aclCreateTensorList"),
        {},
        "aclCreateTensorList",
        "install a newer CANN",
    ),
    "no device": (without(), {"ASCEND_EMULATOR_DEVICES": "0"}, "no device can be seen", "npu-smi info"),
    "devices hidden": (
        without(),
        {"ASCEND_RT_VISIBLE_DEVICES": ""},
        "no device can be seen",
        "unset ASCEND_RT_VISIBLE_DEVICES",
    ),
    "no driver": (
        without(),
        {"ASCEND_EMULATOR_FAULT": "aclrtGetDeviceCount:1:507899"},
        "the driver does not answer",
        "install or load the device driver",
    ),
    "link-time stubs": (
        without(),
        {"ASCEND_EMULATOR_FAULT": "aclrtGetDeviceCount:1:100039"},
        "a link-time stub library was loaded",
        "install or load the device driver",
    ),
    "a device that does not start": (
        without(),
        {"ASCEND_EMULATOR_FAULT": "aclrtSetDevice:1:507033"},
        "npu:0 cannot be used",
        "npu-smi info",
    ),
    "a mode nobody knows": (without(), {"MINDTORCH_NPU": "gpu"}, "auto, cann, emulator, off", "unset it"),
    "switched off": (without(), {"MINDTORCH_NPU": "off"}, "switches NPUs off", "unset MINDTORCH_NPU"),
    "home moved away": (without(), {"ASCEND_HOME_PATH": "/nonexistent/cann"}, "does not exist", "source set_env.sh"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_installation(tmp_path: Path, case: str) -> None:
    damage, extra, wrong, todo = BROKEN[case]
    where = layouts.home(tmp_path / "cann", layouts.NEW)
    damage(where / "lib64")
    code, text = doctor(layouts.environment(where, **extra))
    assert code == 1, text
    assert wrong in text and todo in text.split("problems:")[1], text


def test_nothing_installed() -> None:
    code, text = doctor(layouts.environment(None, HOME="/nonexistent"))
    assert code == 1
    assert "no CANN installation was found" in text and "/nonexistent/Ascend/cann: does not exist" in text


def test_only_the_old_split_libraries(tmp_path: Path) -> None:
    """Without libopapi.so the old libraries still serve what they have; the rest is named."""
    where = layouts.home(tmp_path / "cann", ("libascendcl.so", "libnnopbase.so", "libaclnn_math.so"))
    code, text = doctor(layouts.environment(where))
    assert code == 1 and "missing in the libraries" in text


def test_the_command_line_names_its_commands() -> None:
    done = layouts.python(layouts.environment(None), "-m", "mindtorch_v2")
    assert done.returncode == 2 and "doctor" in done.stderr
