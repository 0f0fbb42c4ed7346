"""PyTorch as the oracle: loading it, and moving tensors between it and the library under test.

Invariant: a tensor that crosses keeps its bytes, dtype, shape, strides and storage offset, and the two libraries never
share memory, so that a write in one cannot hide a fault in the other.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import importlib.util
import sys
import types
import unittest
from typing import Any

import pytest

from ._subject import subject

ORACLE_VERSION = "2.13.0"


@functools.cache
def available() -> bool:
    return importlib.util.find_spec("torch") is not None


def load() -> Any:
    """PyTorch, or a skip of the running test where it is not installed."""
    if not available():
        pytest.skip("PyTorch, the oracle, is not installed")
    return _loaded()


@functools.cache
def _loaded() -> Any:
    oracle = importlib.import_module("torch")
    # One thread: with more, PyTorch's waiting threads spin and a busy machine makes every small call slow.
    oracle.set_num_threads(1)
    return oracle


def load_op_db() -> list[Any]:
    """PyTorch's own table of operators with their sample inputs."""
    return list(_internal("common_methods_invocations").op_db)


def load_optim_db() -> list[Any]:
    """PyTorch's own table of optimizers with the options it tests them with."""
    return list(_internal("common_optimizers").optim_db)


def load_module_db() -> list[Any]:
    """PyTorch's own table of modules with their sample inputs."""
    return list(_internal("common_modules").module_db)


def _internal(name: str) -> Any:
    """A module of PyTorch's own tests."""
    load()
    # common_utils imports expecttest only for the base class of PyTorch's own test cases, which are not used here.
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        setattr(stand_in, "TestCase", unittest.TestCase)
        sys.modules["expecttest"] = stand_in
    module = importlib.import_module(f"torch.testing._internal.{name}")
    # Importing them freezes the flags of torch.backends for the whole process.
    _loaded().backends.disable_global_flags.__globals__["__allow_nonbracketed_mutation_flag"] = True
    return module


def dtype_name(dtype: Any) -> str:
    """`torch.float32` and `mindtorch_v2.float32` are both called `float32`."""
    return str(dtype).rpartition(".")[2]


def dtype_in(library: Any, dtype: Any) -> Any:
    return getattr(library, dtype_name(dtype))


def transfer(tensor: Any, library: Any, requires_grad: bool | None = None) -> Any:
    """A copy of `tensor` (of either library) in `library`, with the same layout in a whole storage of its own."""
    source = tensor.detach()
    result = _copied(source, library) if layout_name(source) == "strided" else _sparse_copy(source, library)
    if bool(tensor.requires_grad) if requires_grad is None else requires_grad:
        result.requires_grad_(True)
    return result


def _copied(source: Any, library: Any) -> Any:
    if hasattr(source, "resolve_conj"):
        source = source.resolve_conj().resolve_neg()
    result = _same_layout(source, library, "meta" if source.device.type == "meta" else "cpu")
    nbytes = min(int(source.untyped_storage().nbytes()), int(result.untyped_storage().nbytes()))
    if source.device.type != "meta" and nbytes:
        ctypes.memmove(int(result.untyped_storage().data_ptr()), int(source.untyped_storage().data_ptr()), nbytes)
    return result


def layout_name(tensor: Any) -> str:
    return str(tensor.layout).rpartition(".")[2]


def _sparse_copy(source: Any, library: Any) -> Any:
    """A copy of a sparse tensor, made of copies of its parts."""
    name, size = layout_name(source), tuple(source.shape)
    if name == "sparse_coo":
        parts = _copied(source._indices(), library), _copied(source._values(), library)
        return library.sparse_coo_tensor(*parts, size, is_coalesced=source.is_coalesced())
    rows = name in ("sparse_csr", "sparse_bsr")
    compressed, plain = (
        (source.crow_indices(), source.col_indices()) if rows else (source.ccol_indices(), source.row_indices())
    )
    indices, values = (_copied(compressed, library), _copied(plain, library)), _copied(source.values(), library)
    return library.sparse_compressed_tensor(*indices, values, size, layout=getattr(library, name))


def _same_layout(source: Any, library: Any, device: str) -> Any:
    """A tensor of the same geometry in a storage of the same size, and no view of anything."""
    shape, stride, offset = tuple(source.shape), tuple(source.stride()), int(source.storage_offset())
    dtype = dtype_in(library, source.dtype)
    count = int(source.untyped_storage().nbytes()) // int(source.element_size())
    plain = library.empty(shape, dtype=dtype, device=device)
    if offset == 0 and count == source.numel() and tuple(plain.stride()) == stride:
        return plain
    return library.empty((count,), dtype=dtype, device=device).as_strided(shape, stride, offset).detach()


def to_oracle(tensor: Any, requires_grad: bool | None = None) -> Any:
    return transfer(tensor, load(), requires_grad)


def from_oracle(tensor: Any, requires_grad: bool | None = None) -> Any:
    return transfer(tensor, subject, requires_grad)


def as_meta(tensor: Any) -> Any:
    """A meta tensor of the library under test with the layout of `tensor`."""
    return _same_layout(tensor, subject, "meta")


def layout(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Shape, strides and dtype: what the meta rule decides."""
    return tuple(tensor.shape), tuple(tensor.stride()), dtype_name(tensor.dtype)


def tree_map(function: Any, value: Any, leaf: Any) -> Any:
    """`function` on every leaf for which `leaf(x)` holds inside lists, tuples and dicts."""
    if leaf(value):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(tree_map(function, item, leaf) for item in value)
    if isinstance(value, (list, tuple)) and not type(value).__name__ == "Size":
        return type(value)([tree_map(function, item, leaf) for item in value])
    if isinstance(value, dict):
        return {key: tree_map(function, item, leaf) for key, item in value.items()}
    return value


def is_oracle_tensor(value: Any) -> bool:
    return available() and isinstance(value, load().Tensor)


def is_subject_tensor(value: Any) -> bool:
    return isinstance(value, subject.Tensor)


def convert_argument(value: Any) -> Any:
    """An oracle argument (tensor, dtype, device, memory format, nest of them) as the library under test takes it."""
    return tree_map(_convert_leaf, value, _is_leaf)


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, (list, tuple, dict)) or type(value).__name__ == "Size"


def _convert_leaf(value: Any) -> Any:
    if is_oracle_tensor(value):
        return from_oracle(value)
    oracle = load()
    if isinstance(value, oracle.Size):
        return subject.Size(tuple(value))
    if isinstance(value, oracle.dtype):
        return dtype_in(subject, value)
    if isinstance(value, oracle.device):
        return subject.device(str(value))
    if isinstance(value, (oracle.memory_format, oracle.layout)):
        return getattr(subject, str(value).rpartition(".")[2])
    if isinstance(value, oracle.nn.PairwiseDistance):
        return subject.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, oracle.nn.LinearCrossEntropyOptions):
        fields = {field.name: _convert_leaf(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return subject.nn.LinearCrossEntropyOptions(**fields)
    return value


# Per dtype of the result: relative and absolute. Half precision rounds once at the end in both libraries, but sums in
# another order; integers and bools are equal or wrong.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (4e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (2e-3, 1e-3),
    "complex64": (4e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_same(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    where: str = "",
    stride: bool = True,
    computed_in: str = "bool",
) -> None:
    """`actual` (of the library under test) equals `expected` (of the oracle): kind, dtype, shape, strides, values.

    Tolerances come from the table unless given. `computed_in` is the dtype of the inputs where that is less precise
    than the result's.
    """
    oracle = load()
    if isinstance(expected, oracle.Tensor):
        _assert_same_tensor(actual, expected, rtol, atol, where, stride, computed_in)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(actual, (list, tuple)), f"{where}: expected a sequence, got {type(actual).__name__}"
        assert len(actual) == len(expected), f"{where}: {len(actual)} results, expected {len(expected)}"
        for position, (left, right) in enumerate(zip(actual, expected)):
            assert_same(left, right, rtol, atol, f"{where}[{position}]", stride, computed_in)
    elif isinstance(expected, oracle.dtype):
        assert dtype_name(actual) == dtype_name(expected), f"{where}: {actual}, expected {expected}"
    elif isinstance(expected, (float, complex)):
        assert type(actual) is type(expected), f"{where}: {type(actual).__name__}, expected {type(expected).__name__}"
        assert actual == pytest.approx(expected, rel=1e-6, nan_ok=True), f"{where}: {actual}, expected {expected}"
    else:
        assert actual == expected, f"{where}: {actual!r}, expected {expected!r}"


def _assert_same_tensor(
    actual: Any, expected: Any, rtol: float | None, atol: float | None, where: str, stride: bool, computed_in: str
) -> None:
    oracle = load()
    assert isinstance(actual, subject.Tensor), f"{where}: expected a tensor, got {type(actual).__name__}"
    assert actual.device.type == expected.device.type, f"{where}: device {actual.device}, expected {expected.device}"
    assert layout_name(actual) == layout_name(expected), f"{where}: {actual.layout}, expected {expected.layout}"
    if layout_name(expected) != "strided":
        # PyTorch says nothing of the strides of the parts.
        actual, expected, stride = actual.detach().to_dense(), expected.detach().to_dense(), False
    got, want = layout(actual), layout(expected)
    # A tensor without elements has no addresses; PyTorch's strides for it follow no rule that users can see.
    if not stride or expected.numel() == 0:
        got, want = (got[0], (), got[2]), (want[0], (), want[2])
    assert got == want, f"{where}: (shape, stride, dtype) {got}, expected {want}"
    if expected.device.type == "meta":
        return
    mine = to_oracle(actual, requires_grad=False)
    reference = expected.detach().resolve_conj().resolve_neg()
    if reference.dtype in (oracle.uint16, oracle.uint32, oracle.uint64):
        mine, reference = mine.to(oracle.float64), reference.to(oracle.float64)
    if reference.dtype.itemsize == 1 and reference.dtype.is_floating_point:
        mine, reference = mine.float(), reference.float()
    if reference.dtype == oracle.complex32:  # PyTorch does not compare them
        mine, reference = mine.to(oracle.complex64), reference.to(oracle.complex64)
    if oracle.equal(mine, reference):
        return
    fine = TOLERANCES.get(want[2], (0.0, 0.0))
    rough = TOLERANCES.get(computed_in, (0.0, 0.0)) if want[2] in TOLERANCES else fine
    oracle.testing.assert_close(
        mine,
        reference,
        rtol=max(fine[0], rough[0]) if rtol is None else rtol,
        atol=max(fine[1], rough[1]) if atol is None else atol,
        equal_nan=True,
        msg=lambda text: f"{where}: {text}",
    )
