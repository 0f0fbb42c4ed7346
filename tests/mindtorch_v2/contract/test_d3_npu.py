"""Contract D on NPUs: functionalization writes back by copy, strided slice or places, and says which it cannot.

Invariant: every test is named after the id it proves; the way a write-back took is read from the device's own counters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu
from ..npu import _layouts as layouts
from . import _inplace_calls as inplace
from ._rewrites import REWRITES
from .test_d_functionalize import MISFITS, VIEWS

SLICE = "aclnnStridedSliceAssignV2"
PUT = "aclnnIndexPutImpl"


@pytest.fixture(autouse=True)
def emulator() -> Iterator[_npu.Emulator | None]:
    yield from _npu.watched(_npu.start())


def kernels(emulator: _npu.Emulator | None, call: Any) -> dict[str, int]:
    """How often each kernel that can write back ran during a call; counted by Python on hardware."""
    from mindtorch_v2._backends.npu import write_back

    names = {"aclnnArange": "index", PUT: "index", SLICE: "slice"}
    torch.npu.synchronize()
    before = dict(write_back.TAKEN) if emulator is None else {n: emulator.runs(n) for n in names}
    call()
    torch.npu.synchronize()
    if emulator is None:
        return {n: write_back.TAKEN[way] - before[way] for n, way in names.items()}
    return {n: emulator.runs(n) - before[n] for n in names}


def floats() -> Any:
    return inplace.on(inplace.floats(torch), "npu")


# D1, D2 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", inplace.available(torch))
def test_D1_every_inplace_operator_gives_the_same_on_npu_under_functionalize(name: str) -> None:
    call = inplace.CALLS[name]
    expected = call.make(torch, "npu")
    call.call(torch, expected)
    actual = call.make(torch, "npu")
    with torch.functionalize():
        result = call.call(torch, actual)
    assert (tuple(actual.shape), actual.stride(), actual.dtype) == (
        tuple(expected.shape),
        expected.stride(),
        expected.dtype,
    )
    assert actual._version == 1
    if not name.startswith("setitem"):
        assert result is actual
    if name not in inplace.RANDOM:
        assert repr(actual.tolist()) == repr(expected.tolist())


def test_D2_write_back_goes_through_the_view_on_npu() -> None:
    base = torch.tensor([1.0, 2.0, 3.0, 4.0], device="npu")
    view = base.view((2, 2))
    with torch.functionalize():
        view.add_(torch.ones((2, 2), device="npu"))
    assert base.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert base.storage().data.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert base._version == view._version == 1


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    "dtype",
    ["float32", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "float64", "complex64", "complex128"],
)
def test_D2_write_back_through_every_kind_of_view_on_npu(name: str, dtype: str) -> None:
    start = torch.arange(9.0).view(3, 3).to(getattr(torch, dtype))
    expected = start.clone()
    VIEWS[name](expected).mul_(2).add_(1)
    base = start.npu()
    view = VIEWS[name](base)
    pointer = base.data_ptr()
    with torch.functionalize():
        view.mul_(2).add_(1)
    assert base.tolist() == expected.tolist()
    assert base.storage().data.tolist() == expected.reshape(-1).tolist()
    assert base.data_ptr() == pointer
    assert base._version == view._version == 2


# D3 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t.view(-1), lambda t: t[1], lambda t: t[1:], lambda t: t.unsqueeze(0)]
)
def test_D3_a_contiguous_view_is_a_copy(emulator: Any, view: Any) -> None:
    base = torch.zeros(3, 4, device="npu")
    copies = 0 if emulator is None else emulator.calls("aclrtMemcpyAsync")

    def write() -> None:
        with torch.functionalize():
            view(base).add_(1)

    assert kernels(emulator, write) == {"aclnnArange": 0, PUT: 0, SLICE: 0}
    assert emulator is None or emulator.calls("aclrtMemcpyAsync") == copies + 1
    expected = torch.zeros(3, 4)
    view(expected).add_(1)
    assert base.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[:, 1:3],
        lambda t: t[1:, :2],
        lambda t: t[::2],
        lambda t: t[:, 1],
        lambda t: t.narrow(1, 2, 2),
        lambda t: t[:, ::2],
        lambda t: t.view(2, 2, 6)[:, 1, 2:5],
        lambda t: t.unsqueeze(1)[:, :, 1:4],
        lambda t: t.view(-1)[1:20:3],
        lambda t: t.split(2, 1)[1],
        lambda t: t[1:][:, 1:][:, :2],
    ],
)
def test_D3_a_slice_is_a_strided_slice_assign(emulator: Any, view: Any) -> None:
    base = torch.arange(24.0, device="npu").view(4, 6)

    def write() -> None:
        with torch.functionalize():
            view(base).mul_(10)

    assert kernels(emulator, write) == {"aclnnArange": 0, PUT: 0, SLICE: 1}
    expected = torch.arange(24.0).view(4, 6)
    view(expected).mul_(10)
    assert base.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t.view(2, 2, 6).permute(2, 0, 1),
        lambda t: t.as_strided((2, 3), (1, 6), 3),
        lambda t: t.as_strided((2, 2), (7, 1), 1),
        lambda t: t.diagonal(),
        lambda t: t[:, 1:].t(),
        lambda t: t.transpose(0, 1)[::2],
    ],
)
def test_D3_any_other_view_is_written_at_places_made_on_the_device(emulator: Any, view: Any) -> None:
    base = torch.arange(24.0, device="npu").view(4, 6)
    dims = len([n for n in view(base).shape if n > 1])

    def write() -> None:
        with torch.functionalize():
            view(base).mul_(10)

    expected = {"aclnnArange": dims, PUT: 1, SLICE: 0}
    assert kernels(emulator, write) == (expected if emulator else {**expected, "aclnnArange": 1})
    plain = torch.arange(24.0).view(4, 6)
    view(plain).mul_(10)
    assert base.tolist() == plain.tolist()


def test_D3_a_base_written_through_its_transpose() -> None:
    base = torch.arange(6.0, device="npu").view(2, 3)
    with torch.functionalize():
        base.t().add_(torch.ones(3, 2, device="npu"))
    assert base.storage().data.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert base._version == 1


def test_D3_the_way_is_told() -> None:
    from mindtorch_v2._backends.npu import creation

    base = torch.zeros(4, 6, device="npu")
    for view, way in ((base, "copy"), (base[:, :2], "slice"), (base.t(), "index")):
        with torch.functionalize():
            view.add_(1)
        assert creation.last_write_back() == way


def test_D3_the_functions_are_there() -> None:
    from mindtorch_v2._backends.npu import aclnn

    assert aclnn.arange_symbols_ok() is True
    assert aclnn.index_put_impl_symbols_ok() is True


@_npu.emulator_only
@pytest.mark.parametrize(("function", "answers"), [("aclnnArange", "False True"), (PUT, "True False")])
def test_D3_a_missing_function_is_named(tmp_path: Path, function: str, answers: str) -> None:
    home = layouts.home(tmp_path / "cann", layouts.NEW)
    for library in (home / "lib64").iterdir():
        for symbol in (function, function + "GetWorkspaceSize"):
            if b"\0" + symbol.encode() + b"\0" in library.read_bytes():
                layouts.rename_symbol(library, symbol)
    program = """
from mindtorch_v2._backends.npu import aclnn
print(aclnn.arange_symbols_ok(), aclnn.index_put_impl_symbols_ok())
base = torch.zeros(2, 3, device="npu")
try:
    with torch.functionalize():
        base.t().add_(1)
except RuntimeError as error:
    print(error)
print(base.tolist(), base._version)
with torch.functionalize():
    base[:, 1:].add_(1)
print(base.tolist())
"""
    text = layouts.said(layouts.environment(home), program).splitlines()
    assert text[0] == answers
    assert text[1].startswith("aten::add_ is not implemented for NPU") and function in text[1]
    assert text[2:] == ["[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]] 0", "[[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]"]


@_npu.emulator_only
def test_D3_other_chips_have_no_strided_slice_assign(tmp_path: Path) -> None:
    program = """
from mindtorch_v2._backends.npu import write_back
base = torch.zeros(2, 3, device="npu")
with torch.functionalize():
    base[:, 1:].add_(1)
print(write_back.last_write_back(), base.tolist())
"""
    env = layouts.environment(None, MINDTORCH_NPU="emulator", ASCEND_EMULATOR_CHIP="910A")
    assert layouts.said(env, program) == "index [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]"


def test_D3_a_view_that_overlaps_itself_raises() -> None:
    base = torch.zeros(3, device="npu")
    with torch.functionalize():
        for view in (base.expand(2, 3), base.as_strided((2, 2), (0, 1))):
            with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to"):
                view.add_(1)
    assert base.tolist() == [0.0, 0.0, 0.0] and base._version == 0


# D5, D6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("functional", [False, True])
def test_D5_a_shape_that_does_not_fit_raises_before_the_write_on_npu(name: str, functional: bool) -> None:
    call, text = MISFITS[name]
    base = torch.zeros(4, device="npu")
    with pytest.raises(RuntimeError) as caught:
        if functional:
            with torch.functionalize():
                call(base.view(2, 2))
        else:
            call(base.view(2, 2))
    assert str(caught.value) == text
    assert base._version == 0 and base.tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", REWRITES)
def test_D6_gradients_are_the_same_on_npu_under_functionalize(name: str) -> None:
    weight = torch.linspace(0.5, 2.5, 9, device="npu")
    found = []
    for functional in (False, True):
        x, y = floats().requires_grad_(), (floats().t().contiguous() + 0.3).requires_grad_()
        if functional:
            with torch.functionalize():
                value = REWRITES[name](x, y)
        else:
            value = REWRITES[name](x, y)
        (value * weight[: value.numel()].view(value.shape)).sum().backward()
        found.append([None if t.grad is None else t.grad.tolist() for t in (x, y)])
    assert found[0] == found[1]


@pytest.mark.parametrize("shape", [(1, 3, 3), (3, 1, 3), (1, 1, 3), (2, 1, 3), (1, 2, 1), (3, 3)])
def test_D2_places_of_a_view_with_dimensions_of_one(shape: tuple[int, ...]) -> None:
    from mindtorch_v2._backends.npu import write_back

    for strides in itertools.product((1, 2, 3, 6, 9, 18), repeat=len(shape)):
        places = [sum(i * s for i, s in zip(at, strides)) for at in itertools.product(*map(range, shape))]
        if len(set(places)) < len(places):
            continue
        value = torch.arange(1.0, len(places) + 1)
        base = torch.zeros(100, device="npu")
        write_back.put_at_places(torch.as_strided(base, shape, strides), value.view(shape).to("npu"), "copy_")
        expected = torch.zeros(100)
        expected[places] = value
        assert torch.equal(base.cpu(), expected), strides
