"""Operators over lists of tensors on the NPU: against PyTorch, and in how many launches.

Invariant: every overload in the registry is tried, in every dtype and with lists that no vendor function takes.
"""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_v2 import _native
from mindtorch_v2._backends.npu import lines
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import NPU

from .. import _npu, _oracle
from .._subject import subject as torch
from ..parity import _infos, _lists
from . import _rows

pytestmark = pytest.mark.oracle
OPS = [op for row in _lists.rows() for op in registry.ops() if op.title() == row and op.row is not None]
DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool", "complex64")


def tensors(dtype: str, place: int, kind: str) -> list[Any]:
    """A list of the oracle's tensors; `kind` says what is unusual about it."""
    t = _oracle.load()
    made = [t.tensor([0.25, 0.5, 0.75]) + 0.125 * place, t.full((2, 2), 0.5), t.tensor(0.875)]
    if dtype in ("int32", "int64", "bool"):
        made = [(x * 8).round() for x in made]
    made = [x.to(getattr(t, dtype)) for x in made]
    if kind == "transposed":
        made[1] = made[1].repeat(1, 2).t()
    elif kind == "empty":
        made[1] = made[1][:0]
    elif kind == "broadcast" and place:
        made[0] = made[0][:1]
    elif kind == "mixed":
        made[1] = made[1].to(t.float64)
    return made


def argument(kind: str, place: int, dtype: str, how: str) -> Any:
    t = _oracle.load()
    if kind == "Tensor[]":
        return tensors(dtype, place, how)
    if kind == "Tensor":
        return t.tensor(3.0).to(getattr(t, dtype))
    whole = dtype in ("int32", "int64", "bool")
    one = 2 if whole else 1.5
    return one if kind == "Scalar" else [one, 3, 4]


def given(op: Any, dtype: str, how: str = "") -> list[Any]:
    kinds = [a.kind + ("[]" if a.is_list else "") for a in op.schema.args if not a.has_default]
    made = [argument(kind, place, dtype, how) for place, kind in enumerate(kinds)]
    if op.title().startswith("_foreach_addc") and kinds[-1] == "Tensor":
        made[-1] = _oracle.load().tensor([1.0, 2.0, 3.0])
    return made


def moved(op: Any, args: list[Any]) -> list[Any]:
    """The arguments on the NPU; packed numbers stay on the CPU, where PyTorch wants them."""
    packed = op.title().startswith("_foreach_addc") and op.name.endswith(".Tensor")
    ready = [_rows.arguments(a) for a in args]
    if packed:
        ready[-1] = _oracle.convert_argument(args[-1])
    return ready


def compare(op: Any, dtype: str, how: str = "") -> None:
    args = given(op, dtype, how)
    mine = moved(op, args)
    where = f"{op.name} {dtype} {how}"
    expected = _infos.attempt(getattr(_oracle.load(), op.title()), args, {})
    actual = _infos.attempt(getattr(torch, op.title()), mine, {})
    if isinstance(expected, _infos.Failure):
        assert isinstance(actual, _infos.Failure), f"{where}: PyTorch refuses: {expected.text}"
        return
    if _rows.refusal(actual):
        assert dtype in ("float64", "complex64"), f"{where}: {actual.text}"
        return
    assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
    if op.title().endswith("_"):
        assert all(a is b for a, b in zip(actual, mine[0])), where
        assert all(t._version == 1 for t in mine[0]), f"{where}: versions {[t._version for t in mine[0]]}"
        actual, expected = mine[0], args[0]
    _oracle.assert_same(list(_rows.results(actual, where)), list(expected), where=where, computed_in=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_values(op: Any, dtype: str) -> None:
    compare(op, dtype)


@pytest.mark.parametrize("how", ["transposed", "empty", "broadcast", "mixed"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_lists_that_the_vendor_does_not_take(op: Any, how: str) -> None:
    compare(op, "float32", how)


def served() -> list[Any]:
    torch.ones(1, device="npu") if _npu.start() else None
    return [op for op in OPS if lines.served_fused(op.kernels.get(int(NPU))) is not None]


def test_which_have_no_function_over_lists() -> None:
    """These are loops, and packed numbers go by the rows for numbers; a list that shrinks is good news."""
    loops = {op.name.removeprefix("_foreach_") for op in OPS} - {op.name.removeprefix("_foreach_") for op in served()}
    assert loops == {
        "clone",
        "mm",
        "lgamma",
        "lgamma_",
        "rsqrt",
        "rsqrt_",
        "max",
        "powsum.Scalar",
        "lerp.ScalarList",
        "lerp_.ScalarList",
        "addcmul.Tensor",
        "addcmul_.Tensor",
        "addcdiv.Tensor",
        "addcdiv_.Tensor",
    }


@_npu.emulator_only
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_one_launch_serves_a_list(op: Any, emulator: Any) -> None:
    found = lines.served_fused(op.kernels.get(int(NPU)))
    if found is None:
        return
    args = tuple(moved(op, given(op, "float32")))
    torch.npu.synchronize()
    before, total = [emulator.runs(name) for name in found.functions], emulator.runs()
    op.call((*args, *(a.default for a in op.schema.args if a.has_default)))
    torch.npu.synchronize()
    after = [emulator.runs(name) for name in found.functions]
    assert [b - a for a, b in zip(before, after)] == [1] * len(found.functions), op.name
    assert emulator.runs() - total == len(found.functions), op.name


def test_a_tensor_that_is_written_twice() -> None:
    x = torch.ones(3, device="npu")
    torch._foreach_add_([x, x], 1.0)
    assert x.tolist() == [3.0, 3.0, 3.0]
    y = torch.ones(3, device="npu")
    torch._foreach_add_([x, y], [y, x])
    assert x.tolist() == [4.0, 4.0, 4.0] and y.tolist() == [5.0, 5.0, 5.0]


def test_gradients_go_through_the_parts() -> None:
    x = torch.arange(3.0, device="npu").requires_grad_()
    squares = torch._foreach_mul([x, x], [x, x])
    (squares[0] + squares[1]).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 8.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        torch._foreach_add_([x], 1.0)
    with torch.no_grad():
        torch._foreach_add_([x], 1.0)
    assert x.tolist() == [1.0, 2.0, 3.0] and x._version == 1


@_npu.emulator_only
def test_a_number_in_a_tensor_is_not_read(emulator: Any) -> None:
    """As in PyTorch, which clips gradients so."""
    grads, factor = [torch.ones(3, device="npu"), torch.ones(2, device="npu")], torch.tensor(0.5, device="npu")
    before = emulator.bytes_to_host()
    torch._foreach_mul_(grads, factor)
    torch._foreach_div_(grads, factor)
    assert emulator.bytes_to_host() == before
    assert grads[0].tolist() == [1.0, 1.0, 1.0]


@_npu.emulator_only
def test_numbers_of_a_list_do_not_wait_for_the_device(emulator: Any) -> None:
    """Equal ones, as an optimizer has them, are one number; others go through page-locked memory."""
    ones = [torch.ones(3, device="npu"), torch.ones(2, 2, device="npu")]
    more = [t * 2 for t in ones]
    for numbers, launched in (
        ([0.5, 0.5], ["aclnnForeachAddcdivScalarV2"]),
        ([0.5, 0.25], ["aclrtMemcpyAsync", "aclnnForeachAddcdivScalarList"]),
    ):
        before, waits = _native.vendor_launches(), emulator.calls("aclrtSynchronizeStream")
        made = torch._foreach_addcdiv(ones, more, ones, numbers)
        names = [_native.vendor_launches(i)[0] for i in range(before, _native.vendor_launches())]
        assert names == launched
        assert emulator.calls("aclrtSynchronizeStream") == waits
        for t, number in zip(made, numbers, strict=True):
            assert t.cpu().unique().tolist() == [1 + 2 * number]


def test_lists_on_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError):
        torch._foreach_add([torch.ones(2, device="npu")], [torch.ones(2)])
