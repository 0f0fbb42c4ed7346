"""Sparse tensors across the two libraries: moved, and compared part by part.

Invariant: a sparse tensor that crosses keeps layout, indices, values, size and whether it is coalesced.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import subject

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def layout_name(t: Any) -> str:
    return str(t.layout).rpartition(".")[2]


def index_parts(t: Any) -> list[Any]:
    """The index tensors of a sparse tensor of either library."""
    name = layout_name(t)
    if name == "sparse_coo":
        return [t._indices()]
    if name in ("sparse_csr", "sparse_bsr"):
        return [t.crow_indices(), t.col_indices()]
    return [t.ccol_indices(), t.row_indices()]


def value_part(t: Any) -> Any:
    return t._values() if layout_name(t) == "sparse_coo" else t.detach().values()


def _built(t: Any, library: Any) -> Any:
    name = layout_name(t)
    indices = [_oracle.transfer(x, library) for x in index_parts(t)]
    values = _oracle.transfer(value_part(t), library, requires_grad=False)
    if name == "sparse_coo":
        made = library.sparse_coo_tensor(indices[0], values, tuple(t.shape))
        made = made._coalesced_(t.is_coalesced()) if t.is_coalesced() else made
    else:
        made = library.sparse_compressed_tensor(*indices, values, tuple(t.shape), layout=getattr(library, name))
    return made.requires_grad_(True) if t.requires_grad else made


def moved(t: Any, library: Any) -> Any:
    """A tensor of any layout in the other library."""
    return _oracle.transfer(t, library) if layout_name(t) == "strided" else _built(t, library)


def converted(value: Any) -> Any:
    """Arguments of an oracle's call for the library under test."""
    return _oracle.tree_map(
        _leaf, value, lambda v: not isinstance(v, (list, tuple, dict)) or type(v).__name__ == "Size"
    )


def _leaf(value: Any) -> Any:
    return moved(value, subject) if _oracle.is_oracle_tensor(value) else _oracle.convert_argument(value)


def assert_same(actual: Any, expected: Any, where: str = "", computed_in: str = "bool") -> None:
    """The same as `_oracle.assert_same`, for any layout."""
    if isinstance(expected, (list, tuple)):
        assert isinstance(actual, (list, tuple)) and len(actual) == len(expected), f"{where}: {actual!r}"
        for i, (a, e) in enumerate(zip(actual, expected)):
            assert_same(a, e, f"{where}[{i}]", computed_in)
        return
    if not _oracle.is_oracle_tensor(expected) or layout_name(expected) == "strided":
        if _oracle.is_oracle_tensor(expected):
            assert layout_name(actual) == "strided", f"{where}: layout {actual.layout}, expected strided"
        _oracle.assert_same(actual, expected, where=where, stride=False, computed_in=computed_in)
        return
    got = (layout_name(actual), tuple(actual.shape), _oracle.dtype_name(actual.dtype))
    want = (layout_name(expected), tuple(expected.shape), _oracle.dtype_name(expected.dtype))
    assert got == want, f"{where}: (layout, shape, dtype) {got}, expected {want}"
    if want[0] == "sparse_coo":
        flags = (actual.is_coalesced(), expected.is_coalesced())
        assert flags[0] == flags[1], f"{where}: coalesced {flags[0]}, expected {flags[1]}"
    for a, e in zip(index_parts(actual), index_parts(expected)):
        _oracle.assert_same(a, e, where=f"{where} indices", stride=False)
    _oracle.assert_same(
        value_part(actual), value_part(expected), where=f"{where} values", stride=False, computed_in=computed_in
    )


class Case(NamedTuple):
    """An operator of PyTorch's table that has samples of a sparse layout."""

    info: Any
    layout: str

    @property
    def label(self) -> str:
        variant = self.info.variant_test_name
        return f"{self.info.name}{'-' + variant if variant else ''}-{self.layout}"


@functools.cache
def cases() -> tuple[Case, ...]:
    if not _oracle.available():
        return ()
    oracle = _oracle.load()
    return tuple(
        Case(info, name)
        for info in _oracle.load_op_db()
        for name in LAYOUTS
        if info.supports_sparse_layout(getattr(oracle, name))
    )


def samples(case: Case, dtype: str, requires_grad: bool = False) -> Iterator[Any]:
    oracle = _oracle.load()
    if getattr(oracle, dtype) not in case.info.dtypes:
        return
    layout = getattr(oracle, case.layout)
    try:
        yield from case.info.sample_inputs_sparse(layout, "cpu", getattr(oracle, dtype), requires_grad=requires_grad)
    except unittest.SkipTest:
        return
    except NotImplementedError:
        # No samples of that layout: dense matrices of its own, converted.
        blocks = {"blocksize": (1, 1)} if case.layout in ("sparse_bsr", "sparse_bsc") else {}
        for sample in case.info.sample_inputs("cpu", getattr(oracle, dtype), requires_grad=requires_grad):
            if isinstance(sample.input, oracle.Tensor) and sample.input.dim() == 2 and sample.input.numel():
                sample.input = sample.input.to_sparse(layout=layout, **blocks)
                yield sample


def in_subject(info: Any) -> Callable[..., Any] | None:
    """The function of the library under test with the operator's name."""
    if info.name.startswith("masked."):
        return None
    found: Any = subject
    for name in info.name.split("."):
        found = getattr(found, name, None)
        if found is None:
            return getattr(subject.Tensor, info.name, None) if "." not in info.name else None
    return found
