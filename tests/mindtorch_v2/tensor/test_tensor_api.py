"""What a user does with a Tensor object: conversion, exchange with NumPy and DLPack, copying, pickling, subclassing,
Python's operators and protocols.

Invariant: everything here also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch).
"""

from __future__ import annotations

import copy
import gc
import io
import operator
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import IS_ORACLE
from .._subject import subject as torch

DTYPES = [
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
]  # fmt: skip
NUMPY_DTYPES = [name for name in DTYPES if name != "bfloat16"]


# description ----------------------------------------------------------------------------------------------------------


def test_shape_and_friends() -> None:
    t = torch.zeros(2, 3, 4)
    assert isinstance(t.shape, torch.Size) and isinstance(t.shape, tuple)
    assert t.size() == t.shape == (2, 3, 4)
    assert t.size(1) == t.size(-2) == t.shape[1] == 3
    assert t.dim() == t.ndim == t.ndimension() == 3
    assert t.numel() == t.nelement() == t.size().numel() == 24
    assert t.stride() == (12, 4, 1)
    assert t.stride(0) == 12 and t.stride(-1) == 1
    assert t.storage_offset() == 0
    assert t.element_size() == t.itemsize == 4
    assert t.nbytes == 96
    assert len(t) == 2
    assert repr(t.shape) == "torch.Size([2, 3, 4])" or repr(t.shape).endswith("Size([2, 3, 4])")


def test_flags() -> None:
    t = torch.zeros(2)
    assert t.is_floating_point() and not t.is_complex() and t.is_signed()
    assert torch.is_tensor(t) and not torch.is_tensor([1])
    assert torch.is_floating_point(t)
    assert torch.zeros(2, dtype=torch.complex64).is_complex()
    assert not torch.zeros(2, dtype=torch.uint8).is_signed()
    assert t.is_cpu and not t.is_meta
    assert t.layout == torch.strided
    assert t.device == torch.device("cpu")
    assert not t.is_sparse
    assert t.type() == "torch.FloatTensor" or t.type().endswith(".FloatTensor")


def test_data_ptr_is_the_first_element() -> None:
    t = torch.arange(4.0)
    assert t[1:].data_ptr() == t.data_ptr() + 4
    assert torch.zeros(0).data_ptr() == 0


# numbers and lists ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_item_and_tolist_give_python_numbers(name: str) -> None:
    t = torch.tensor([[0, 1], [1, 0]], dtype=getattr(torch, name))
    kind = bool if name == "bool" else complex if "complex" in name else float if "float" in name else int
    assert t.tolist() == [[0, 1], [1, 0]]
    assert type(t.tolist()[0][0]) is kind
    assert type(t[0, 1].item()) is kind
    assert t[0, 1].tolist() == 1
    assert torch.zeros(0, 3).tolist() == []
    assert torch.zeros(2, 0).tolist() == [[], []]


def test_python_number_protocols() -> None:
    t = torch.tensor([2.5])
    assert float(t) == 2.5 and int(t) == 2 and bool(t) and complex(t) == 2.5
    assert not torch.tensor(0)
    assert operator.index(torch.tensor(3)) == 3
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert round(float(torch.tensor(1.25)), 1) == 1.2
    assert f"{torch.tensor(1.5):.3f}" == "1.500"
    assert range(torch.tensor(3))[2] == 2


def test_large_integers_survive() -> None:
    for value in (2**63 - 1, -(2**63), 2**53 + 1):
        assert torch.tensor(value).item() == value
        assert torch.tensor([value]).tolist() == [value]
    assert torch.tensor(2**64 - 1, dtype=torch.uint64).item() == 2**64 - 1


# operators ------------------------------------------------------------------------------------------------------------

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}


@pytest.mark.parametrize("name", BINARY)
def test_operators_and_their_reflections(name: str) -> None:
    function = BINARY[name]
    left, right = [7.0, -3.0, 2.5], [2.0, 2.0, -1.5]
    expected = [function(a, b) for a, b in zip(left, right) if not isinstance(function(a, b), complex)]
    a, b = torch.tensor(left, dtype=torch.float64), torch.tensor(right, dtype=torch.float64)
    if len(expected) == 3:
        assert function(a, b).tolist() == pytest.approx(expected)
    assert function(a, 2.0).tolist() == pytest.approx([function(x, 2.0) for x in left])
    positive = a.abs()
    assert function(2.0, positive).tolist() == pytest.approx([function(2.0, abs(x)) for x in left])


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_operators(name: str) -> None:
    function = BITWISE[name]
    left, right = [12, 5, 9], [1, 2, 3]
    a, b = torch.tensor(left), torch.tensor(right)
    assert function(a, b).tolist() == [function(x, y) for x, y in zip(left, right)]
    assert function(a, 1).tolist() == [function(x, 1) for x in left]
    assert function(6, b).tolist() == [function(6, y) for y in right]


def test_unary_operators() -> None:
    t = torch.tensor([1.5, -2.0])
    assert (-t).tolist() == [-1.5, 2.0]
    assert (+t).tolist() == t.tolist()
    assert abs(t).tolist() == [1.5, 2.0]
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    assert (~torch.tensor([0, 5])).tolist() == [-1, -6]


def test_matmul_operator() -> None:
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (a @ a).tolist() == [[7, 10], [15, 22]]
    assert (a @ a[0]).tolist() == [5, 11]
    assert (a[0] @ a).tolist() == [7, 10]
    assert (a[0] @ a[1]).item() == 11


def test_augmented_assignment_is_in_place() -> None:
    t = torch.tensor([8.0, 4.0])
    same = t
    t += 1
    t -= 2
    t *= 3
    t /= 2
    t **= 2
    t //= 2
    t %= 7
    assert t is same
    assert t._version == 7
    flags = torch.tensor([True, False])
    kept = flags
    flags &= torch.tensor([True, True])
    flags |= torch.tensor([False, True])
    flags ^= torch.tensor([True, True])
    assert flags is kept and flags.tolist() == [False, False]


def test_unknown_operands_are_asked_for_their_reflection() -> None:
    class Other:
        def __radd__(self, left: Any) -> str:
            return "radd"

        def __rmatmul__(self, left: Any) -> str:
            return "rmatmul"

        def __eq__(self, left: object) -> bool:
            return True

    t = torch.ones(2)
    assert t + Other() == "radd"
    assert t @ Other() == "rmatmul"


def test_equality_with_foreign_objects() -> None:
    t = torch.ones(2)
    assert (t == "x") is False
    assert (t != "x") is True
    assert (t == None) is False  # noqa: E711
    assert t in [t]


def test_contains() -> None:
    t = torch.tensor([1.0, 2.0])
    assert 2 in t and 3 not in t
    assert torch.tensor(1.0) in t


# identity, attributes, weak references --------------------------------------------------------------------------------


def test_hash_is_identity() -> None:
    a, b = torch.ones(2), torch.ones(2)
    assert hash(a) == id(a) or hash(a) == hash(a)
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1


def test_user_attributes_and_weak_references() -> None:
    t = torch.ones(2)
    t.note = "mine"
    assert t.note == "mine"
    alive = weakref.ref(t)
    assert alive() is t
    del t
    gc.collect()
    assert alive() is None


def test_iteration() -> None:
    t = torch.arange(6).view(3, 2)
    assert [row.tolist() for row in t] == [[0, 1], [2, 3], [4, 5]]
    first, *rest = t
    assert first.tolist() == [0, 1] and len(rest) == 2
    assert [row.tolist() for row in reversed(t)] == [[4, 5], [2, 3], [0, 1]]
    a = torch.ones(2, 2, requires_grad=True)
    sum((row * 2).sum() for row in a).backward()
    assert a.grad.tolist() == [[2, 2], [2, 2]]


def test_dir_and_repr_do_not_fail() -> None:
    t = torch.ones(2, requires_grad=True)
    assert "backward" in dir(t)
    assert repr(t) == str(t) == "tensor([1., 1.], requires_grad=True)"


# conversion -----------------------------------------------------------------------------------------------------------


def test_to_returns_self_when_nothing_changes() -> None:
    t = torch.ones(2)
    assert t.to(torch.float32) is t
    assert t.to("cpu") is t
    assert t.to(t) is t
    assert t.to(torch.float32, copy=True) is not t
    assert t.float() is t and t.cpu() is t
    assert t.to(device="cpu", dtype=torch.float32) is t


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversion_between_all_dtypes(source: str, target: str) -> None:
    t = torch.tensor([0, 1, 3], dtype=getattr(torch, source))
    made = t.to(getattr(torch, target))
    assert made.dtype == getattr(torch, target)
    expected = [0, 1, 1] if "bool" in (source, target) else [0, 1, 3]
    assert made.tolist() == expected


def test_conversion_methods() -> None:
    t = torch.tensor([1.7, -1.7])
    assert t.int().tolist() == [1, -1] and t.int().dtype == torch.int32
    assert t.long().dtype == torch.int64
    assert t.double().dtype == torch.float64
    assert t.half().dtype == torch.float16
    assert t.bfloat16().dtype == torch.bfloat16
    assert t.bool().tolist() == [True, True]
    assert t.short().dtype == torch.int16 and t.char().dtype == torch.int8
    assert torch.tensor([1.0]).byte().dtype == torch.uint8
    assert t.type_as(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
    assert t.type(torch.int64).tolist() == [1, -1]


def test_to_keeps_strides_and_history() -> None:
    t = torch.arange(6.0).view(2, 3).t()
    assert t.to(torch.float64).stride() == (1, 3)
    a = torch.ones(2, requires_grad=True)
    a.to(torch.float64).sum().backward()
    assert a.grad.dtype == torch.float32


# numpy ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_numpy_shares_memory_both_ways(name: str) -> None:
    t = torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=getattr(torch, name))
    array = t.numpy()
    assert array.dtype == numpy.dtype(name)
    assert array.tolist() == t.tolist()
    array[0, 0] = 1
    assert t[0, 0].item() == 1
    turned = t.t().numpy()
    assert turned.strides == tuple(step * t.element_size() for step in t.t().stride())
    back = torch.from_numpy(array)
    assert back.dtype == t.dtype
    assert back.data_ptr() == t.data_ptr()
    back.zero_()
    assert not array.any()


def test_from_numpy_layouts() -> None:
    source = numpy.arange(24.0).reshape(2, 3, 4)
    for view in (source.T, source[:, 1:], source[:, ::2, 1::2], source[1, 2, 3:], numpy.array(5.0), source[:0]):
        t = torch.from_numpy(view)
        assert tuple(t.shape) == view.shape
        assert t.tolist() == view.tolist()
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(source[::-1])
    with pytest.raises(TypeError):
        torch.from_numpy(numpy.array(["x"]))


def test_from_numpy_keeps_the_array_alive() -> None:
    array = numpy.arange(3.0)
    t = torch.from_numpy(array)
    del array
    gc.collect()
    assert t.tolist() == [0, 1, 2]


def test_numpy_keeps_the_memory_alive() -> None:
    array = (torch.arange(1000.0) + 1).numpy()
    gc.collect()
    torch.zeros(1000)
    assert array[0] == 1 and array[-1] == 1000


def test_array_protocol() -> None:
    t = torch.arange(3.0)
    assert numpy.asarray(t).tolist() == [0, 1, 2]
    assert numpy.asarray(t, dtype=numpy.float64).dtype == numpy.float64
    assert numpy.array(t).tolist() == [0, 1, 2]
    assert numpy.add(t.numpy(), 1).tolist() == [1, 2, 3]
    assert t.__array__(numpy.dtype("int32")).dtype == numpy.int32
    assert numpy.sum(numpy.asarray(t)) == 3


def test_numpy_of_detached_and_forced() -> None:
    a = torch.ones(2, requires_grad=True)
    assert a.detach().numpy().tolist() == [1, 1]
    assert a.numpy(force=True).tolist() == [1, 1]


def test_numpy_scalars_mix_with_tensors() -> None:
    t = torch.ones(2)
    assert (t * numpy.float64(2)).dtype == torch.float32
    assert (t * numpy.float64(2)).tolist() == [2, 2]
    assert (t + numpy.int64(1)).tolist() == [2, 2]


def test_tensor_of_numpy_copies() -> None:
    array = numpy.ones(2)
    t = torch.tensor(array)
    array[0] = 5
    assert t.tolist() == [1, 1] and t.dtype == torch.float64
    assert torch.as_tensor(array).data_ptr() == array.ctypes.data
    assert torch.tensor(numpy.float32(1.5)).dtype == torch.float32


# dlpack ---------------------------------------------------------------------------------------------------------------


def test_dlpack_between_numpy_and_tensors() -> None:
    t = torch.arange(6.0).view(2, 3)
    array = numpy.from_dlpack(t.t())
    assert array.tolist() == t.t().tolist()
    source = numpy.arange(4, dtype=numpy.int32)
    made = torch.from_dlpack(source)
    assert made.dtype == torch.int32
    source[0] = 9
    assert made.tolist() == [9, 1, 2, 3]
    assert tuple(int(part) for part in t.__dlpack_device__()) == (1, 0)


def test_dlpack_round_trip_of_its_own() -> None:
    t = torch.arange(6.0).view(2, 3)[:, 1:]
    again = torch.from_dlpack(t)
    assert again.data_ptr() == t.data_ptr()
    assert (again.shape, again.stride()) == (t.shape, t.stride())
    bf16 = torch.ones(3, dtype=torch.bfloat16)
    assert torch.from_dlpack(bf16).dtype == torch.bfloat16


@pytest.mark.oracle
def test_dlpack_with_the_oracle() -> None:
    oracle = _oracle.load()
    t = torch.arange(6.0).view(2, 3).t()
    theirs = oracle.from_dlpack(t)
    assert theirs.stride() == (1, 3)
    theirs.mul_(2)
    assert t.tolist() == [[0, 6], [2, 8], [4, 10]]
    ours = torch.from_dlpack(oracle.ones(2, dtype=oracle.bfloat16))
    assert ours.dtype == torch.bfloat16 and ours.tolist() == [1, 1]


# copying and pickling -------------------------------------------------------------------------------------------------


def test_copy_and_deepcopy() -> None:
    t = torch.arange(4.0)
    t.note = [1]
    shallow = copy.copy(t)
    assert shallow.data_ptr() == t.data_ptr()
    deep = copy.deepcopy(t)
    assert deep.data_ptr() != t.data_ptr()
    assert deep.tolist() == t.tolist()
    deep.zero_()
    assert t.sum().item() == 6


def test_deepcopy_keeps_sharing_layout_grad() -> None:
    base = torch.arange(6.0).view(2, 3)
    pair = copy.deepcopy([base, base.t(), base])
    assert pair[0] is pair[2]
    assert pair[1].stride() == (1, 3)
    pair[0][0, 1] = 50
    assert pair[1][1, 0].item() == 50
    a = torch.ones(2, requires_grad=True)
    (a * 3).sum().backward()
    b = copy.deepcopy(a)
    assert b.requires_grad and b.is_leaf
    assert b.grad.tolist() == [3, 3]
    assert b.grad is not a.grad


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", DTYPES)
def test_pickle_round_trip(name: str, protocol: int) -> None:
    if IS_ORACLE and name in ("uint16", "uint32", "uint64"):
        pytest.skip("PyTorch cannot read its own pickles of these")
    t = torch.tensor([[0, 1], [1, 1]], dtype=getattr(torch, name)).t()
    again = pickle.loads(pickle.dumps(t, protocol))
    assert again.dtype == t.dtype and again.stride() == t.stride()
    assert again.tolist() == t.tolist()


def test_pickle_keeps_flags_and_sharing() -> None:
    a = torch.arange(4.0).requires_grad_()
    again = pickle.loads(pickle.dumps(a))
    assert again.requires_grad and again.is_leaf
    base = torch.arange(6.0)
    first, second = pickle.loads(pickle.dumps((base, base)))
    assert first is second
    meta = pickle.loads(pickle.dumps(torch.zeros(2, 3, device="meta")))
    assert meta.device.type == "meta" and tuple(meta.shape) == (2, 3)


def test_pickle_of_small_objects() -> None:
    for value in (torch.float32, torch.device("cpu"), torch.device("meta"), torch.Size([1, 2]), torch.strided):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and type(again) is type(value)
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32


def test_pickle_through_a_file_object() -> None:
    buffer = io.BytesIO()
    pickle.dump({"weight": torch.ones(2)}, buffer)
    buffer.seek(0)
    assert pickle.load(buffer)["weight"].tolist() == [1, 1]


# subclassing ----------------------------------------------------------------------------------------------------------


class Marked(torch.Tensor):
    """A plain subclass: results of operators keep the type."""


def test_subclass_is_kept_by_operators() -> None:
    t = torch.ones(2).as_subclass(Marked)
    assert type(t) is Marked and isinstance(t, torch.Tensor)
    assert type(t + 1) is Marked
    assert type(t.sum()) is Marked
    assert type(t[0]) is Marked
    assert type(torch.add(t, torch.ones(2))) is Marked
    assert type(1 + t) is Marked
    assert t.tolist() == [1, 1]


def test_subclass_shares_memory_and_history() -> None:
    a = torch.ones(2, requires_grad=True)
    t = (a * 2).as_subclass(Marked)
    t.sum().backward()
    assert a.grad.tolist() == [2, 2]


def test_torch_function_override() -> None:
    calls: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    t = torch.ones(2).as_subclass(Logged)
    calls.clear()
    result = torch.add(t, 1)
    assert "add" in calls
    assert type(result) is Logged


def test_torch_function_on_a_foreign_class() -> None:
    class Duck:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return ("duck", func.__name__)

    assert torch.add(Duck(), 1) == ("duck", "add")
    assert torch.sum(Duck()) == ("duck", "sum")
    assert torch.add(torch.ones(2), Duck()) == ("duck", "add")


def test_is_instance_of_parameter() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    assert isinstance(parameter, torch.Tensor)
    assert parameter.requires_grad and parameter.is_leaf
    assert type(parameter * 2) is torch.Tensor


# odds and ends --------------------------------------------------------------------------------------------------------


def test_data_attribute() -> None:
    a = torch.ones(2, requires_grad=True)
    data = a.data
    assert not data.requires_grad and data.data_ptr() == a.data_ptr()
    a.data = torch.zeros(3)
    assert tuple(a.shape) == (3,) and a.requires_grad
    assert a.tolist() == [0, 0, 0]


def test_new_methods() -> None:
    t = torch.ones(2, dtype=torch.float64)
    assert t.new_zeros(3).dtype == torch.float64
    assert t.new_ones((2, 2)).tolist() == [[1, 1], [1, 1]]
    assert t.new_full((2,), 7).tolist() == [7, 7]
    assert t.new_tensor([1, 2]).dtype == torch.float64
    assert tuple(t.new_empty(2, 3).shape) == (2, 3)


def test_equal_and_allclose() -> None:
    a = torch.tensor([1.0, 2.0])
    assert torch.equal(a, a.clone()) and a.equal(a)
    assert not torch.equal(a, a[:1])
    assert torch.allclose(a, a + 1e-9)
    assert not torch.allclose(a, a + 1)


def test_size_objects() -> None:
    size = torch.zeros(2, 3).shape
    assert size + (4,) == (2, 3, 4)
    assert isinstance(size[1:], torch.Size)
    assert torch.Size([2, 3]) == size and hash(size) == hash((2, 3))
    assert size.numel() == 6
    assert torch.Size() == () and torch.Size([]).numel() == 1


def test_named_tuples_of_results() -> None:
    values, indices = torch.tensor([[1.0, 3.0], [4.0, 2.0]]).max(1)
    assert values.tolist() == [3, 4] and indices.tolist() == [1, 0]
    result = torch.tensor([[1.0, 3.0]]).min(dim=1, keepdim=True)
    assert result.values.tolist() == [[1]] and result.indices.tolist() == [[0]]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_storage_and_conversion(name: str) -> None:
    dtype = getattr(torch, name)
    t = torch.tensor([0.0, 1.0, -2.5, 448.0 if name == "float8_e4m3fn" else 57344.0, 0.1])
    small = t.to(dtype)
    assert small.dtype == dtype and small.element_size() == 1
    assert small.float().tolist()[:4] == t.tolist()[:4]
    assert small.float()[4].item() == pytest.approx(0.1, rel=0.2)


def test_sizes_are_joined_with_tuples_only() -> None:
    size = torch.Size([1])
    for other, name in (([2], "list"), (3, "int"), (torch.ones(1), "Tensor"), (range(3), "range"), (None, "NoneType")):
        with pytest.raises(TypeError, match=rf"can only concatenate tuple \(not {name}\) to torch.Size"):
            size + other
    with pytest.raises(TypeError, match="can only concatenate list"):
        [2] + size
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'int' and"):
        3 + size

    class Reflected:
        def __radd__(self, other: Any) -> Any:
            return "reflected", other

    assert size + Reflected() == ("reflected", size)


# -- constructors from PyTorch's first days -----------------------------------------------------------------------
def test_new_makes_tensors_of_the_same_dtype() -> None:
    t = torch.ones(2, dtype=torch.float64)
    assert t.new().shape == (0,) and t.new(2, 3).shape == (2, 3) and t.new(torch.Size([2, 1])).shape == (2, 1)
    assert t.new(size=(3,)).shape == (3,) and t.new(torch.tensor(2), torch.tensor(3)).shape == (2, 3)
    assert t.new([1, 2]).dtype == t.new(data=(1, 2)).dtype == torch.float64
    assert t.new(t).data_ptr() == t.new(other=t).data_ptr() == t.data_ptr()
    assert t.new(t.untyped_storage()).data_ptr() == t.data_ptr()
    assert torch.Tensor(t).dtype == torch.float64


@pytest.mark.parametrize(
    "args, kind, text",
    [
        ((1.5,), TypeError, "new(): data must be a sequence (got float)"),
        ((None,), TypeError, "new(): data must be a sequence (got NoneType)"),
        ((True,), TypeError, "new(): data must be a sequence (got bool)"),
        (({},), TypeError, "new(): data must be a sequence (got dict)"),
        ((set(),), TypeError, "new(): data must be a sequence (got set)"),
        (
            (2, "a"),
            TypeError,
            "new(): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but "
            'got str"',
        ),
    ],
)
def test_what_new_refuses(args: Any, kind: type[Exception], text: str) -> None:
    for call in (torch.ones(2).new, torch.FloatTensor, torch.Tensor):
        with pytest.raises(kind) as raised:
            call(*args)
        assert str(raised.value) == text


def test_new_of_another_dtype() -> None:
    for call in (torch.ones(2).new, torch.FloatTensor):
        with pytest.raises(TypeError, match=r"expected TensorOptions\(dtype=float, device=cpu, .*dtype=long int"):
            call(torch.tensor(2))
        with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got type D"):
            call(torch.ones(2, dtype=torch.float64)._typed_storage())


def test_type_takes_types_of_tensors() -> None:
    t = torch.ones(2)
    assert t.type(torch.DoubleTensor).dtype == t.type("torch.DoubleTensor").dtype == torch.float64
    assert t.type(torch.Tensor) is t
    for given, name in ((float, "float"), (numpy.float64, "numpy.float64"), (object, "object"), ("float", "float")):
        with pytest.raises(ValueError, match=f"^invalid type: '{name}'$"):
            t.type(given)
    for other in (3, numpy.dtype("int32"), t):
        with pytest.raises(TypeError, match="^dtype must be a type, str, or dtype object$"):
            t.type(other)


MANY_ORDERS = "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
FORMATS = [torch.contiguous_format, torch.channels_last]


def test_dim_order() -> None:
    assert torch.ones(2, 3, 4).permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert torch.ones(2, 1, 3).expand(2, 4, 3).dim_order() == (0, 1, 2)
    assert torch.ones(1, 2).t().dim_order() == (0, 1)
    assert torch.ones(2, 1, 1, 2).to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)
    assert torch.ones(2, 3).t().dim_order(ambiguity_check=True) == (1, 0)
    image = torch.ones(1, 3, 2, 2)
    assert image.dim_order(ambiguity_check=FORMATS) == (0, 1, 2, 3)
    assert image.to(memory_format=torch.channels_last).dim_order(ambiguity_check=FORMATS) == (0, 2, 3, 1)
    for t, check in ((torch.ones(1, 3), True), (torch.ones(1, 1, 2, 2), FORMATS)):
        with pytest.raises(RuntimeError) as raised:
            t.dim_order(ambiguity_check=check)
        assert str(raised.value) == MANY_ORDERS
    with pytest.raises(RuntimeError, match="^The tensor does not have unique dim order.$"):
        torch.ones(2, 1, 3).expand(2, 4, 3).dim_order(ambiguity_check=True)
    for wrong in (3, "a", [1]):
        with pytest.raises(TypeError, match="The ambiguity_check argument must be a bool or a list of memory formats"):
            torch.ones(1).dim_order(ambiguity_check=wrong)


@pytest.mark.parametrize(
    "name",
    "shape dtype device layout ndim is_leaf grad_fn T is_cuda is_meta itemsize nbytes _version output_nr".split(),
)
def test_attributes_that_can_only_be_read(name: str) -> None:
    t = torch.ones(2, 3)
    with pytest.raises(AttributeError) as raised:
        setattr(t, name, None)
    assert str(raised.value) == f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable"
    with pytest.raises(AttributeError):
        delattr(t, name)


def test_attributes_of_other_objects_that_can_only_be_read() -> None:
    for thing, name, owner in (
        (torch.Generator(), "device", "torch._C.Generator"),
        (torch.ones(1).untyped_storage(), "device", "torch._C.StorageBase"),
        (torch.finfo(torch.float32), "eps", "torch.finfo"),
    ):
        with pytest.raises(AttributeError, match=f"attribute '{name}' of '{owner}' objects is not writable"):
            setattr(thing, name, 5)
    with pytest.raises(AttributeError, match="'torch.layout' object has no attribute 'foo'"):
        torch.strided.foo = 5


def test_arrays_of_bools_come_back_as_bytes() -> None:
    assert numpy.isfinite(torch.ones(2)).dtype == torch.uint8


@pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter])
def test_the_dict_of_a_tensor_is_the_users(kind: Any) -> None:
    t = kind(torch.ones(2))
    assert t.__dict__ == vars(t) == {}
    t.mark, t.other = 1, 2
    assert t.__dict__ == {"mark": 1, "other": 2} and "mark" in dir(t)
    t.__dict__["late"] = 3
    t.__dict__.update(more=4)
    del t.__dict__["mark"]
    assert t.__dict__.pop("other") == 2 and t.__dict__.setdefault("late", 5) == 3
    assert (t.late, t.more, hasattr(t, "mark"), hasattr(t, "other")) == (3, 4, False, False)
    assert pickle.loads(pickle.dumps(t)).__dict__ == {"late": 3, "more": 4}
    assert copy.deepcopy(t).__dict__ == ({} if kind is torch.nn.Parameter else {"late": 3, "more": 4})
    t.__dict__ = {"new": 6}
    assert t.new == 6 and not hasattr(t, "late") and t.tolist() == [1.0, 1.0]
    t.__dict__.clear()
    assert t.__dict__ == {} and t.tolist() == [1.0, 1.0]


def test_grad_has_a_second_name() -> None:
    """`_grad` is the same field, with the same checks."""
    x = torch.ones(2, requires_grad=True)
    x._grad = torch.full((2,), 3.0)
    assert x.grad is x._grad and x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="size"):
        x._grad = torch.ones(3)
