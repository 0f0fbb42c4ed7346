"""Functions that make tensors: values, dtypes, devices, layouts, and the modes that redirect them.

Invariant: everything here also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import subject as torch

FACTORIES: dict[str, Callable[..., Any]] = {
    "empty": lambda **options: torch.empty(2, 3, **options),
    "zeros": lambda **options: torch.zeros(2, 3, **options),
    "ones": lambda **options: torch.ones((2, 3), **options),
    "full": lambda **options: torch.full((2, 3), 7.0, **options),
    "arange": lambda **options: torch.arange(0.0, 6.0, **options).view(2, 3),
    "linspace": lambda **options: torch.linspace(0, 1, 6, **options).view(2, 3),
    "eye": lambda **options: torch.eye(2, 3, **options),
    "rand": lambda **options: torch.rand(2, 3, **options),
    "randn": lambda **options: torch.randn(2, 3, **options),
    "tensor": lambda **options: torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], **options),
    "as_tensor": lambda **options: torch.as_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], **options),
    "empty_strided": lambda **options: torch.empty_strided((2, 3), (3, 1), **options),
    "logspace": lambda **options: torch.logspace(0, 1, 6, **options).view(2, 3),
    "scalar_tensor": lambda **options: torch.scalar_tensor(3.0, **options).expand(2, 3),
}


def present(name: str) -> bool:
    return hasattr(torch, name)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", [name for name in FACTORIES if present(name)])
def test_factory_dtype_and_device(name: str, device: str) -> None:
    make = FACTORIES[name]
    assert make().dtype == torch.float32
    assert make(device=device).device.type == device
    assert make(device=torch.device(device)).device.type == device
    made = make(dtype=torch.float64, device=device)
    assert made.dtype == torch.float64 and tuple(made.shape) == (2, 3)


@pytest.mark.parametrize("name", [name for name in FACTORIES if present(name)])
def test_device_context_redirects_factories(name: str) -> None:
    with torch.device("meta"):
        assert FACTORIES[name]().device.type == "meta"
        assert FACTORIES[name](device="cpu").device.type == "cpu"
    assert FACTORIES[name]().device.type == "cpu"


def test_default_device() -> None:
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).device.type == "meta"
        assert torch.tensor(1.0).device.type == "meta"
        assert torch.get_default_device().type == "meta"
        with torch.device("cpu"):
            assert torch.zeros(2).device.type == "cpu"
        assert torch.zeros(2).device.type == "meta"
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_device_contexts_nest() -> None:
    with torch.device("meta"):
        with torch.device("cpu"):
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device.type == "meta"


def test_default_dtype() -> None:
    assert torch.get_default_dtype() == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2).dtype == torch.float64
        assert torch.tensor(1.0).dtype == torch.float64
        assert torch.tensor(1j).dtype == torch.complex128
        assert torch.tensor(1).dtype == torch.int64
        assert (torch.tensor([1]) / 2).dtype == torch.float64
        assert torch.arange(3.0).dtype == torch.float64
        assert torch.arange(3).dtype == torch.int64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "full", "rand", "randn", "tensor", "eye"])
def test_requires_grad(name: str) -> None:
    made = FACTORIES[name](requires_grad=True)
    assert made.requires_grad and made.is_leaf


# tensor ---------------------------------------------------------------------------------------------------------------

DATA: list[tuple[Any, str, tuple[int, ...]]] = [
    (1, "int64", ()),
    (1.5, "float32", ()),
    (True, "bool", ()),
    (1j, "complex64", ()),
    ([], "float32", (0,)),
    ([[]], "float32", (1, 0)),
    ([[], []], "float32", (2, 0)),
    ([1, 2], "int64", (2,)),
    ([1, 2.5], "float32", (2,)),
    ([True, 2], "int64", (2,)),
    ([True, False], "bool", (2,)),
    ([1.0, 2j], "complex64", (2,)),
    ([[1, 2], [3, 4]], "int64", (2, 2)),
    (((1, 2), [3, 4]), "int64", (2, 2)),
    (range(3), "int64", (3,)),
    (numpy.arange(3, dtype=numpy.int32), "int32", (3,)),
    (numpy.float64(2.0), "float64", ()),
    ([numpy.float64(2.0), 1], "float64", (2,)),
    ([numpy.arange(2), numpy.arange(2)], "int64", (2, 2)),
    (float("nan"), "float32", ()),
    ([[[1.0]]], "float32", (1, 1, 1)),
    (2**40, "int64", ()),
]


@pytest.mark.parametrize(("data", "dtype", "shape"), DATA, ids=[repr(entry[0]) for entry in DATA])
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays")
def test_tensor_infers(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    t = torch.tensor(data)
    assert t.dtype == getattr(torch, dtype)
    assert tuple(t.shape) == shape
    assert str(t.tolist()) == str(numpy.asarray(data).tolist()) or t.tolist() == numpy.asarray(data).tolist()


def test_tensor_of_tensors() -> None:
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        source = torch.ones(2)
        copied = torch.tensor(source)
    assert copied.data_ptr() != source.data_ptr()


def test_tensor_with_dtype_converts() -> None:
    assert torch.tensor([1.9, -1.9], dtype=torch.int64).tolist() == [1, -1]
    assert torch.tensor([0, 2], dtype=torch.bool).tolist() == [False, True]
    assert torch.tensor([1, 2], dtype=torch.float16).dtype == torch.float16
    assert torch.tensor([1, 2], dtype=torch.bfloat16).tolist() == [1, 2]
    assert torch.tensor([1, 2], dtype=torch.complex128).tolist() == [1, 2]


def test_legacy_constructors() -> None:
    assert tuple(torch.Tensor(2, 3).shape) == (2, 3)
    assert torch.Tensor([1, 2]).tolist() == [1, 2]
    assert torch.Tensor().numel() == 0
    assert torch.Tensor([1, 2]).dtype == torch.float32


def test_as_tensor_and_asarray_share_when_they_can() -> None:
    t = torch.ones(2)
    assert torch.as_tensor(t) is t
    assert torch.as_tensor(t, dtype=torch.float64) is not t
    array = numpy.ones(2)
    assert torch.as_tensor(array).data_ptr() == array.ctypes.data
    assert torch.asarray(array).data_ptr() == array.ctypes.data
    assert torch.asarray([1, 2]).tolist() == [1, 2]


# ranges ---------------------------------------------------------------------------------------------------------------

RANGES: list[tuple[Any, ...]] = [
    (5,), (0,), (1, 5), (5, 1, -1), (0, 10, 3), (0.0, 1.0, 0.25), (2.5,), (-3, 3), (0, 1, 0.3), (3, 3), (10, 0, -4),
]  # fmt: skip


@pytest.mark.parametrize("arguments", RANGES, ids=str)
def test_arange(arguments: tuple[Any, ...]) -> None:
    t = torch.arange(*arguments)
    expected = numpy.arange(*arguments)
    assert t.dtype == (torch.float32 if any(isinstance(part, float) for part in arguments) else torch.int64)
    assert t.tolist() == pytest.approx(expected.tolist(), rel=1e-6)


def test_arange_keywords() -> None:
    assert torch.arange(start=1, end=4).tolist() == [1, 2, 3]
    assert torch.arange(end=3).tolist() == [0, 1, 2]
    assert torch.arange(0, 6, step=2, dtype=torch.float64).tolist() == [0, 2, 4]


def test_linspace() -> None:
    assert torch.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert torch.linspace(3, 3, 2).tolist() == [3, 3]
    assert torch.linspace(0, 1, 1).tolist() == [0]
    assert torch.linspace(0, 1, 0).tolist() == []
    assert torch.linspace(-2, 10, 7, dtype=torch.int64).tolist() == [-2, 0, 2, 4, 6, 8, 10]


def test_full_infers_its_dtype() -> None:
    assert torch.full((2,), 1).dtype == torch.int64
    assert torch.full((2,), 1.0).dtype == torch.float32
    assert torch.full((2,), True).dtype == torch.bool
    assert torch.full((2,), 1j).dtype == torch.complex64
    assert torch.full((), 3).item() == 3


def test_eye() -> None:
    assert torch.eye(2).tolist() == [[1, 0], [0, 1]]
    assert torch.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.eye(0).tolist() == []


# likes ----------------------------------------------------------------------------------------------------------------

LIKES = ["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", LIKES)
def test_likes_keep_dtype_device_and_strides(name: str, device: str) -> None:
    make = getattr(torch, name)
    source = torch.zeros(2, 3, 4, dtype=torch.float64, device=device)
    for view in (source, source.permute(2, 0, 1), source[:, 1:], source[:, :1].expand(2, 5, 4)):
        made = make(view)
        assert (made.dtype, made.device.type, tuple(made.shape)) == (torch.float64, device, tuple(view.shape))
        dense = view.is_contiguous() or view.permute(1, 2, 0).is_contiguous()
        if dense:
            assert made.stride() == view.stride()
    assert make(source, dtype=torch.float32).dtype == torch.float32
    assert make(source.t() if source.dim() == 2 else source, memory_format=torch.contiguous_format).is_contiguous()


def test_full_like() -> None:
    assert torch.full_like(torch.zeros(2, dtype=torch.int64), 3).tolist() == [3, 3]
    assert torch.full_like(torch.zeros(2), 3).dtype == torch.float32


def test_sizes_may_be_given_in_many_ways() -> None:
    for made in (
        torch.zeros(2, 3),
        torch.zeros((2, 3)),
        torch.zeros([2, 3]),
        torch.zeros(torch.Size([2, 3])),
        torch.zeros(size=(2, 3)),
    ):
        assert tuple(made.shape) == (2, 3)
    assert tuple(torch.zeros(()).shape) == ()
    assert tuple(torch.zeros(torch.tensor(2), 3).shape) == (2, 3)
    assert tuple(torch.zeros(numpy.int64(2)).shape) == (2,)
    assert tuple(torch.zeros(0).shape) == (0,)


def test_out() -> None:
    target = torch.ones(2)
    assert torch.zeros(2, out=target) is target
    assert target.tolist() == [0, 0]
    grown = torch.empty(0)
    torch.arange(3, out=grown)
    assert grown.tolist() == [0, 1, 2]


def test_random_is_reproducible() -> None:
    torch.manual_seed(7)
    first = torch.rand(4), torch.randn(4), torch.randint(0, 10, (4,)), torch.randperm(5)
    torch.manual_seed(7)
    second = torch.rand(4), torch.randn(4), torch.randint(0, 10, (4,)), torch.randperm(5)
    assert all(a.tolist() == b.tolist() for a, b in zip(first, second))
    generator = torch.Generator()
    generator.manual_seed(3)
    a = torch.rand(3, generator=generator)
    generator.manual_seed(3)
    assert torch.rand(3, generator=generator).tolist() == a.tolist()


def test_random_distributions() -> None:
    torch.manual_seed(0)
    uniform, normal = torch.rand(20_000), torch.randn(20_000)
    assert 0 <= uniform.min().item() and uniform.max().item() < 1
    assert uniform.mean().item() == pytest.approx(0.5, abs=0.02)
    assert normal.mean().item() == pytest.approx(0, abs=0.05)
    assert normal.std().item() == pytest.approx(1, abs=0.05)
    integers = torch.randint(3, 6, (1000,))
    assert set(integers.tolist()) == {3, 4, 5} and integers.dtype == torch.int64
    assert sorted(torch.randperm(10).tolist()) == list(range(10))


def test_rng_state() -> None:
    state = torch.get_rng_state()
    first = torch.rand(3).tolist()
    torch.set_rng_state(state)
    assert torch.rand(3).tolist() == first
    assert torch.initial_seed() >= 0


def test_tril_triu_and_meshes() -> None:
    square = torch.ones(3, 3)
    assert square.tril().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert square.triu(1).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_nan_and_inf_values() -> None:
    t = torch.tensor([math.nan, math.inf, -math.inf])
    assert t.isnan().tolist() == [True, False, False]
    assert t.isinf().tolist() == [False, True, True]
    assert torch.isfinite(t).tolist() == [False, False, False]


@pytest.mark.oracle
@pytest.mark.parametrize("arguments", RANGES, ids=str)
def test_arange_is_the_oracles(arguments: tuple[Any, ...]) -> None:
    oracle = _oracle.load()
    for name in ("float32", "float64", "int64", "float16", "bfloat16", "uint8"):
        if name == "uint8" and any(part < 0 for part in arguments):
            continue
        if name in ("int64", "uint8") and 0 < arguments[-1] < 1:
            continue  # a step that is zero in the dtype; test_bad_input has that error
        expected = oracle.arange(*arguments, dtype=getattr(oracle, name))
        _oracle.assert_same(torch.arange(*arguments, dtype=getattr(torch, name)), expected, where=name)


@pytest.mark.oracle
def test_linspace_is_the_oracles() -> None:
    oracle = _oracle.load()
    for start, end, steps in ((0, 1, 7), (-3, 2.5, 11), (5, -5, 4), (0, 100, 33)):
        for name in ("float32", "float64", "int64", "float16"):
            expected = oracle.linspace(start, end, steps, dtype=getattr(oracle, name))
            actual = torch.linspace(start, end, steps, dtype=getattr(torch, name))
            _oracle.assert_same(actual, expected, where=f"{start} {end} {steps} {name}")


@pytest.mark.oracle
@pytest.mark.parametrize("name", LIKES[:3])
def test_likes_have_the_oracles_strides(name: str) -> None:
    oracle = _oracle.load()
    for expression in (
        lambda t: t[:, 1:],
        lambda t: t[:, ::2].transpose(0, 1),
        lambda t: t.permute(2, 0, 1)[:, :, ::2],
        lambda t: t[:, :1].expand(2, 5, 4),
        lambda t: t.permute(1, 0, 2),
        lambda t: t[:1].permute(2, 0, 1),
    ):
        expected = getattr(oracle, name)(expression(oracle.zeros(2, 3, 4)))
        actual = getattr(torch, name)(expression(torch.zeros(2, 3, 4)))
        assert tuple(actual.stride()) == tuple(expected.stride())


def test_dlpack_of_a_tensor_begins_where_the_tensor_does() -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    for given in (whole, whole[1:, 2:], whole.t()[1:2], whole[:, :1], whole[1:2], whole[:0], whole[0, 0]):
        taken = torch.from_dlpack(given)
        assert taken.shape == given.shape and taken.stride() == given.stride() and taken.storage_offset() == 0
        assert torch.from_dlpack(given.__dlpack__()).stride() == given.stride()
        assert torch.equal(taken, given) and (taken.numel() == 0 or taken.data_ptr() == given.data_ptr())
    part = torch.from_dlpack(whole[2:])
    assert part.untyped_storage().nbytes() == 12 * 4
    part.fill_(-1.0)
    assert whole._version == 0 and whole[2:].max() == -1.0
    del whole
    assert part.sum() == -12.0


def test_dlpack_of_a_tensor_that_requires_grad_is_refused() -> None:
    with pytest.raises(BufferError):
        torch.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError):
        torch.from_dlpack(torch.ones(2, requires_grad=True)[1:])


def test_calls_of_the_class() -> None:
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor(0).shape == (0,) and torch.Tensor().shape == (0,)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0] and torch.Tensor(size=(2,)).shape == (2,)
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        torch.Tensor(2, -1)
    with pytest.raises(TypeError, match="invalid combination"):
        torch.Tensor(2, unknown=1)


def test_calls_of_a_class_that_has_its_own_way() -> None:
    class Mine(torch.Tensor):
        def __new__(cls, n: int) -> Any:
            return torch.Tensor._make_subclass(cls, torch.ones(n))

        def __init__(self, n: int) -> None:
            self.n = n

    class Bare(torch.Tensor):
        pass

    mine = Mine(3)
    assert type(mine) is Mine and mine.n == 3 and mine.shape == (3,)
    assert type(Bare(2, 2)) is Bare and Bare(2, 2).shape == (2, 2)


def test_full_of_a_complex_number_follows_double_only() -> None:
    before = torch.get_default_dtype()
    try:
        for default, made in ((torch.float16, torch.complex64), (torch.float64, torch.complex128)):
            torch.set_default_dtype(default)
            assert torch.full((2,), 1 + 1j).dtype is made
    finally:
        torch.set_default_dtype(before)


def test_lists_of_arrays_are_slow() -> None:
    arrays = [numpy.array([1, 2]), numpy.array([3, 4])]
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for make in (torch.tensor, torch.as_tensor, torch.Tensor):
            with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow."):
                assert make(arrays).tolist() == [[1, 2], [3, 4]]
    finally:
        torch.set_warn_always(before)
