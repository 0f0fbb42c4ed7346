"""Finding and loading the vendor's libraries, in modes, layouts and states of disrepair.

Every case runs in an interpreter of its own: libraries are loaded once per process.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import _layouts as layouts

ASK = "print(torch.npu.is_available(), torch.npu.device_count(), torch.npu.is_initialized())"
FOUND = "from mindtorch_v2._backends.npu.acl_loader import ensure_acl; a = ensure_acl()\n"
LOADED = "print(torch._C._npu_aclnn_available(), torch._C._npu_aclnn_symbols_ok())"
TRY = """
try:
    torch.npu.init()
    print("started")
except RuntimeError as error:
    print(error)
"""


def refused(env: dict[str, str]) -> str:
    """Why no device can be used, where every question says no."""
    first, second, text = layouts.said(env, f"{ASK}\n{LOADED}\n{TRY}").split("\n", 2)
    assert (first, second) == ("False 0 False", "False False")
    return text


def test_without_any_ascend_software_every_question_says_no() -> None:
    text = refused(layouts.environment(None, HOME="/nonexistent"))
    assert "no CANN installation was found" in text and "set_env.sh" in text and "MINDTORCH_NPU=emulator" in text


def test_auto_never_takes_the_emulator() -> None:
    env = layouts.environment(None, HOME="/nonexistent", LD_LIBRARY_PATH=str(layouts.LIBRARIES))
    assert layouts.said(env, ASK) == "False 0 False"


def test_off_switches_off_even_where_cann_is(tmp_path: Path) -> None:
    env = layouts.environment(layouts.home(tmp_path / "cann", layouts.NEW), MINDTORCH_NPU="off")
    assert "MINDTORCH_NPU=off" in refused(env)


def test_emulator_by_the_environment() -> None:
    env = layouts.environment(None, MINDTORCH_NPU="emulator", ASCEND_EMULATOR_DEVICES="3")
    assert layouts.said(env, ASK) == "True 3 False"


def test_a_mode_nobody_knows_is_named_on_use_only() -> None:
    text = refused(layouts.environment(None, MINDTORCH_NPU="cuda"))
    assert "'cuda'" in text and "auto, cann, emulator, off" in text


# What is loaded, and the order of the operator libraries: split ones exclude the aggregate.
LAYOUTS = {
    layouts.NEW: (
        "new libacl_rt.so ASCEND_HOME_PATH",
        "libopapi_math.so libopapi_nn.so libopapi_cv.so libopapi_transformer.so",
    ),
    layouts.OLD: ("old libascendcl.so ASCEND_HOME_PATH", "libopapi.so libaclnn_ops_infer.so libaclnn_math.so"),
}


@pytest.mark.parametrize("mode", ["auto", "cann"])
@pytest.mark.parametrize("names", [layouts.NEW, layouts.OLD], ids=["new", "old"])
def test_both_layouts_are_found(tmp_path: Path, names: tuple[str, ...], mode: str) -> None:
    where = layouts.home(tmp_path / "cann", names)
    env = layouts.environment(where, MINDTORCH_NPU=mode)
    code = (
        ASK
        + "\n"
        + FOUND
        + """
print(a.where.layout, a.where.runtime.name, a.where.source)
print(*(p.name for p in a.where.operators))
"""
    )
    assert layouts.said(env, code).splitlines() == ["True 1 False", *LAYOUTS[names]]


def test_custom_operators_come_first(tmp_path: Path) -> None:
    where = layouts.home(tmp_path / "cann", layouts.NEW)
    places = [
        tmp_path / "mine" / "op_api" / "lib",
        where / "opp" / "vendors" / "second" / "op_api" / "lib",
        where / "opp" / "vendors" / "first" / "op_api" / "lib",
    ]
    for place in places:
        place.mkdir(parents=True)
        (place / "libcust_opapi.so").write_bytes((layouts.LIBRARIES / "libopapi_math.so").read_bytes())
    (where / "opp" / "vendors" / "config.ini").write_text("load_priority=first,second,absent\n")
    env = layouts.environment(where, ASCEND_CUSTOM_OPP_PATH=f"{tmp_path}/none:{tmp_path}/mine")
    code = FOUND + "print(*(p.parent.parent.parent.name for p in a.where.operators[:3]), a.where.operators[3].name)"
    assert layouts.said(env, code) == "mine first second libopapi_math.so"


@pytest.mark.parametrize(
    "variable, place",
    [
        ("ASCEND_HOME_PATH", "somewhere"),
        ("ASCEND_TOOLKIT_HOME", "somewhere"),
        ("LD_LIBRARY_PATH", "somewhere"),
        ("HOME", "Ascend/cann"),
        ("HOME", "Ascend/ascend-toolkit/latest"),
    ],
)
def test_every_documented_way_to_the_home(tmp_path: Path, variable: str, place: str) -> None:
    where = layouts.home(tmp_path / place, layouts.OLD)
    values = {"LD_LIBRARY_PATH": str(where / "lib64"), "HOME": str(tmp_path)}
    env = layouts.environment(None, **{"HOME": "/nonexistent", variable: values.get(variable, str(where))})
    assert layouts.said(env, FOUND + "print(a.where.home)") == str(where)


def test_a_home_that_was_named_is_not_replaced_by_another(tmp_path: Path) -> None:
    layouts.home(tmp_path / "Ascend" / "cann", layouts.NEW)
    text = refused(layouts.environment(tmp_path / "absent", HOME=str(tmp_path)))
    assert str(tmp_path / "absent") in text and "set_env.sh" in text


BROKEN = {
    "libnnopbase.so": "missing libnnopbase.so",
    "libacl_rt.so libascendcl.so": "missing libacl_rt.so or libascendcl.so",
    "libopapi.so libopapi_math.so libopapi_nn.so libopapi_cv.so libopapi_transformer.so": "missing libopapi_math.so",
    "libascend_emulator.so": "set_env.sh",
}


@pytest.mark.parametrize("names", BROKEN, ids=["nnopbase", "runtime", "operators", "dependency"])
def test_a_missing_library_is_named(tmp_path: Path, names: str) -> None:
    where = layouts.home(tmp_path / "cann", layouts.NEW)
    for name in names.split():
        (where / "lib64" / name).unlink()
    assert BROKEN[names] in refused(layouts.environment(where))


def test_a_missing_function_is_named(tmp_path: Path) -> None:
    where = layouts.home(tmp_path / "cann", layouts.NEW)
    layouts.rename_symbol(where / "lib64" / "libopapi_math.so", "aclnnAddGetWorkspaceSize")
    env = layouts.environment(where)
    code = (
        FOUND
        + """
import ctypes
try:
    a.prototype("aclnnAddGetWorkspaceSize", ctypes.c_int32, (), False)
except RuntimeError as error:
    print(error)
print(a.symbol("aclnnMul") is not None, torch._C._npu_aclnn_available(), torch._C._npu_aclnn_symbols_ok())
"""
    )
    text = layouts.said(env, code)
    assert "aclnnAddGetWorkspaceSize is missing" in text and "libopapi_nn.so" in text
    assert text.endswith("True True False")


def test_asking_initialises_nothing() -> None:
    code = """
torch.npu.use_emulator(devices=2)
import ctypes
before = torch.npu.is_available(), torch.npu.device_count(), torch._C._npu_aclnn_symbols_ok()
torch.npu.memory_allocated(); torch.npu.memory_stats(); torch.npu.current_device(); torch.accelerator.is_available()
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
print(torch.npu.is_initialized(), ensure_acl().aclrtGetDevice(ctypes.byref(ctypes.c_int32())) != 0)
"""
    assert layouts.said(layouts.environment(None), code) == "False True"


def test_use_emulator_comes_before_the_first_use() -> None:
    code = """
torch.npu.use_emulator(devices=2, memory="1G")
torch.npu.use_emulator(devices=3)
print(torch.npu.device_count())
torch.npu.init()
try:
    torch.npu.use_emulator(devices=1)
except RuntimeError as error:
    print(error)
"""
    lines = layouts.said(layouts.environment(None), code).splitlines()
    assert lines[0] == "3" and "before the first use" in lines[1]


def test_use_emulator_does_not_overrule_the_environment(tmp_path: Path) -> None:
    code = "try:\n    torch.npu.use_emulator()\nexcept RuntimeError as error:\n    print(error)\n"
    for mode in ("off", "cann"):
        assert f"MINDTORCH_NPU={mode}" in layouts.said(layouts.environment(None, MINDTORCH_NPU=mode), code)
    env = layouts.environment(layouts.home(tmp_path / "cann", layouts.NEW))
    assert str(tmp_path / "cann") in layouts.said(env, "torch.npu.is_available()\n" + code)


def test_use_emulator_refuses_settings_it_cannot_read() -> None:
    code = """
for wrong in (dict(chip="H100"), dict(devices=-1), dict(memory="much")):
    try:
        torch.npu.use_emulator(**wrong)
    except ValueError as error:
        print(error)
"""
    lines = layouts.said(layouts.environment(None), code).splitlines()
    assert len(lines) == 3 and "910B, 910A, 310P, 310B or 950" in lines[0]


def test_importing_loads_none_of_it() -> None:
    code = """
import sys
print([m for m in sys.modules if m.startswith("mindtorch_v2._backends.npu.")], "ctypes" in sys.modules)
"""
    assert layouts.said(layouts.environment(None), code) == "[] False"
