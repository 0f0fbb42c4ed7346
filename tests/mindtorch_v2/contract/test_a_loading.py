"""Contract A1, A2, A3, A7: finding, loading and asking about Ascend's libraries, without the vendor's Python packages.

Invariant: every test is named after the id it proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import mindtorch_v2 as torch

from .. import _npu
from ..npu import _layouts as layouts

PROGRAM = """
import sys
t = torch.ones(3, device="npu") + 2
print(t.cpu().tolist(), [m for m in ("torch_npu", "acl", "torch") if m in sys.modules])
"""


@pytest.fixture(autouse=True)
def emulator() -> Iterator[_npu.Emulator | None]:
    yield from _npu.watched(_npu.start())


# A1 -------------------------------------------------------------------------------------------------------------------


@_npu.emulator_only
@pytest.mark.parametrize("names", [layouts.NEW, layouts.OLD], ids=["new layout", "old layout"])
def test_A1_both_layouts_are_loaded_with_ctypes_and_compute(tmp_path: Path, names: tuple[str, ...]) -> None:
    where = layouts.home(tmp_path / "cann", names)
    assert layouts.said(layouts.environment(where), PROGRAM) == "[3.0, 3.0, 3.0] []"


def test_A1_no_vendor_python_package_is_imported() -> None:
    for path in Path(torch.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert "import torch_npu" not in text and "import acl\n" not in text and "from acl " not in text, path


# A2, A3 ---------------------------------------------------------------------------------------------------------------


def test_A2_available_where_the_libraries_load() -> None:
    assert torch._C._npu_aclnn_available() is True


def test_A3_symbols_ok_where_everything_resolves() -> None:
    from mindtorch_v2._backends.npu import probe

    assert probe.missing_symbols() == []
    assert torch._C._npu_aclnn_symbols_ok() is True


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"MINDTORCH_NPU": "off"},
        {"MINDTORCH_NPU": "nonsense"},
        {"ASCEND_HOME_PATH": "/nonexistent"},
        {"ASCEND_HOME_PATH": "/"},
    ],
    ids=str,
)
def test_A2_A3_A7_false_and_never_an_exception_elsewhere(extra: dict[str, str]) -> None:
    code = """
print(torch._C._npu_aclnn_available(), torch._C._npu_aclnn_symbols_ok(), torch.npu.is_available(),
      torch.npu.device_count(), torch.npu.is_initialized(), torch.npu.memory_allocated(), torch.npu.memory_stats(),
      torch.npu.empty_cache())
"""
    env = layouts.environment(None, **{"HOME": "/nonexistent", **extra})
    assert layouts.said(env, code) == "False False False 0 False 0 {} None"


# A7 -------------------------------------------------------------------------------------------------------------------


def test_A7_follows_the_conventions_of_torch_cuda() -> None:
    assert torch.npu.is_available() is True and torch.npu.device_count() >= 1
    stream, event = torch.npu.Stream(), torch.npu.Event()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        event.record()
    event.synchronize()
    torch.npu.synchronize()
    tensor = torch.empty(1024, device="npu")
    assert torch.npu.memory_allocated() >= tensor.nbytes
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated() <= torch.npu.memory_reserved()
    torch.npu.empty_cache()


@_npu.emulator_only
def test_A7_asking_never_initialises_a_device() -> None:
    code = """
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
torch.npu.is_available(), torch.npu.device_count(), torch._C._npu_aclnn_symbols_ok(), torch.npu.memory_allocated()
calls = ensure_acl().emulator.ascendEmulatorFunctionCalls
print(calls(b"aclInit"), calls(b"aclrtSetDevice"), torch.npu.is_initialized())
"""
    assert layouts.said(layouts.environment(None, MINDTORCH_NPU="emulator"), code) == "0 0 False"
