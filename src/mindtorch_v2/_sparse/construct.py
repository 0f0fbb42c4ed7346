"""`torch.sparse_coo_tensor` and its relatives: tensors, lists or arrays in, a sparse tensor out.

Invariant: arguments are made tensors first (values decide the dtype), then the operator that keeps history is called.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.binding import BAD, fitted
from .._dispatch.op import type_name
from .._dispatch.schema import parse
from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._overrides import overridable
from .checks import Words, check_compressed, check_coo, check_parts
from .parts import BLOCKS, COMPRESSED, NAMES, ROWS
from .rows import make_compressed, make_coo

_SIZE = parse("f(SymInt[] size) -> Tensor").args[0]
_OPTIONS = (
    "torch.device device = None, bool pin_memory = False, bool requires_grad = False, bool check_invariants = None"
)


def _size(name: str, given: Any, position: int) -> tuple[int, ...]:
    got = fitted(name, _SIZE, given)
    if got is BAD or isinstance(given, int):
        raise TypeError(
            f"{name}(): argument 'size' (position {position}) must be tuple of ints, not {type_name(given)}"
        )
    return tuple(int(n) for n in got)


def _tensor(data: Any, dtype: Any, device: Any) -> Any:
    """A tensor as it is where it fits, anything else as `torch.tensor` takes it."""
    if isinstance(data, torch.Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    return torch.tensor(data, dtype=dtype, device=device)


def _wrong(name: str, args: tuple[Any, ...], forms: list[str]) -> TypeError:
    shown = ", ".join(type_name(a) for a in args)
    listed = "".join(f" * ({form})\n" for form in forms)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({shown}), but expected one of:\n{listed}"
    )


def _finish(t: Any, requires_grad: bool) -> Any:
    if requires_grad:
        t.requires_grad_(True)
    return t


def _check_pinning(pin_memory: bool) -> None:
    if pin_memory:
        raise RuntimeError("pin_memory: sparse tensors in page-locked memory are not supported here")


@overridable
def sparse_coo_tensor(
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    **named: Any,
) -> Any:
    """sparse_coo_tensor(indices, values, size=None, *, dtype=None, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None, is_coalesced=None): a tensor of entries at coordinates."""
    name = "sparse_coo_tensor"
    _check_pinning(pin_memory)
    given = dict(zip(("size",) if len(args) == 1 and not named else ("indices", "values", "size"), args))
    if len(args) > 3 or named.keys() & given.keys() or named.keys() - {"indices", "values", "size"}:
        raise _coo_forms(name, args)
    given.update(named)
    if given.keys() == {"size"}:
        size = _size(name, given["size"], 1)
        empty = torch.zeros((len(size), 0), dtype=torch.int64, device=device)
        return _finish(
            make_coo(empty, torch.zeros(0, dtype=dtype, device=device), size, None, check_invariants), requires_grad
        )
    if not {"indices", "values"} <= given.keys():
        raise _coo_forms(name, args)
    values = _tensor(given["values"], dtype, device)
    indices = _tensor(given["indices"], torch.int64, values.device)
    if given.get("size") is not None:
        size = _size(name, given["size"], 3)
    else:
        size = _coo_size(indices, values)
    return _finish(make_coo(indices, values, size, is_coalesced, check_invariants), requires_grad)


def _coo_forms(name: str, args: tuple[Any, ...]) -> TypeError:
    options = f"*, torch.dtype dtype = None, {_OPTIONS}"
    return _wrong(
        name,
        args,
        [
            f"object indices, object values, {options}",
            f"object indices, object values, tuple of ints size, {options}, bool is_coalesced = None",
            f"tuple of ints size, {options}",
        ],
    )


def _coo_size(indices: Any, values: Any) -> tuple[int, ...]:
    """The smallest size that has room for the indices."""
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.dim() == 0:
        values = values.expand(1)
    tops = [0] * indices.shape[0]
    if indices.numel():
        for d, low in enumerate(indices.amin(1).tolist()):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {d}")
        tops = [n + 1 for n in indices.amax(1).tolist()]
    return (*tops, *values.shape[1:])


def _compressed_size(layout: Any, outer: Any, inner: Any, values: Any) -> tuple[int, ...]:
    batch = max(outer.dim() - 1, 0)
    if inner.numel() and inner.device.type == "meta":
        raise NotImplementedError("sparse_compressed_tensor: a size is needed for indices on meta")
    check_parts(Words(layout), outer, inner, values)
    if inner.dtype not in (torch.int32, torch.int64):
        text = f"\"estimate_sparse_compressed_tensor_size\" not implemented for '{inner.dtype.scalar_name}'"
        raise NotImplementedError(text)
    width = int(inner.max()) + 1 if inner.numel() else 0
    count = outer.shape[-1] - 1 if outer.dim() else 0
    if layout in BLOCKS:
        high, wide = values.shape[batch + 1], values.shape[batch + 2]
        inside = (count * high, width * wide) if layout in ROWS else (width * high, count * wide)
        return (*outer.shape[:batch], *inside, *values.shape[batch + 3 :])
    inside = (count, width) if layout in ROWS else (width, count)
    return (*outer.shape[:batch], *inside, *values.shape[batch + 1 :])


def _make(
    name: str,
    fixed: Any,
    outer_name: str,
    inner_name: str,
    args: tuple[Any, ...],
    named: dict[str, Any],
    **options: Any,
) -> Any:
    """The constructors of compressed tensors."""
    dtype, device = options.get("dtype"), options.get("device")
    layout = options.get("layout")
    _check_pinning(options.get("pin_memory", False))
    given = dict(zip((outer_name, inner_name, "values", "size"), args))
    if len(args) > 4 or named.keys() & given.keys() or named.keys() - {outer_name, inner_name, "values", "size"}:
        raise _compressed_forms(name, outer_name, inner_name, args)
    given.update(named)
    if not {outer_name, inner_name, "values"} <= given.keys():
        raise _compressed_forms(name, outer_name, inner_name, args)
    if fixed is None:
        if layout not in COMPRESSED:
            got = "none" if layout is None else NAMES.get(layout, str(layout))
            raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {got}")
        fixed = layout
    elif layout is not None and layout is not fixed:
        raise RuntimeError(f"{name}: layout must be {NAMES[fixed]} but got {NAMES.get(layout, str(layout))}")
    values = _tensor(given["values"], dtype, device)
    outer, inner = (
        given[n].to(values.device) if isinstance(given[n], torch.Tensor) else _tensor(given[n], None, values.device)
        for n in (outer_name, inner_name)
    )
    outer, inner = (x.to(torch.int64) if x.numel() == 0 and not x.dtype.is_signed else x for x in (outer, inner))
    size = given.get("size")
    size = _compressed_size(fixed, outer, inner, values) if size is None else _size(name, size, 4)
    made = make_compressed(outer, inner, values, size, fixed, options.get("check_invariants"))
    return _finish(made, options.get("requires_grad", False))


def _compressed_forms(name: str, outer: str, inner: str, args: tuple[Any, ...]) -> TypeError:
    options = f"*, torch.dtype dtype = None, torch.layout layout = None, {_OPTIONS}"
    head = f"object {outer}, object {inner}, object values"
    return _wrong(name, args, [f"{head}, tuple of ints size, {options}", f"{head}, {options}"])


@overridable
def sparse_compressed_tensor(*args: Any, **options: Any) -> Any:
    """sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, ...):
    a CSR, CSC, BSR or BSC tensor, as `layout` says."""
    return _split("sparse_compressed_tensor", None, "compressed_indices", "plain_indices", args, options)


@overridable
def sparse_csr_tensor(*args: Any, **options: Any) -> Any:
    """sparse_csr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, ...)"""
    return _split("sparse_csr_tensor", sparse_csr, "crow_indices", "col_indices", args, options)


@overridable
def sparse_csc_tensor(*args: Any, **options: Any) -> Any:
    """sparse_csc_tensor(ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, ...)"""
    return _split("sparse_csc_tensor", sparse_csc, "ccol_indices", "row_indices", args, options)


@overridable
def sparse_bsr_tensor(*args: Any, **options: Any) -> Any:
    """sparse_bsr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, ...)"""
    return _split("sparse_bsr_tensor", sparse_bsr, "crow_indices", "col_indices", args, options)


@overridable
def sparse_bsc_tensor(*args: Any, **options: Any) -> Any:
    """sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, ...)"""
    return _split("sparse_bsc_tensor", sparse_bsc, "ccol_indices", "row_indices", args, options)


_KNOWN = {"dtype", "layout", "device", "pin_memory", "requires_grad", "check_invariants"}


def _split(name: str, fixed: Any, outer: str, inner: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    named = {k: v for k, v in options.items() if k not in _KNOWN}
    return _make(name, fixed, outer, inner, args, named, **{k: v for k, v in options.items() if k in _KNOWN})


# -- checks by themselves -----------------------------------------------------------------------------------------
def _validate_sparse_coo_tensor_args(
    indices: Any, values: Any, size: Any, is_coalesced: bool | None = None, check_pinning: bool | None = None
) -> None:
    """Refuse parts that make no COO tensor."""
    check_coo(indices, values, tuple(size), is_coalesced)


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any, layout: Any, check_pinning: bool | None = None
) -> None:
    """Refuse parts that make no tensor of a compressed layout."""
    check_compressed(compressed_indices, plain_indices, values, tuple(size), layout)


def _validator(layout: Any) -> Any:
    def check(outer: Any, inner: Any, values: Any, size: Any, check_pinning: bool | None = None) -> None:
        check_compressed(outer, inner, values, tuple(size), layout)

    check.__name__ = f"_validate_{layout.name}_tensor_args"
    check.__doc__ = f"Refuse parts that make no tensor of layout torch.{layout.name}."
    return check


_validate_sparse_csr_tensor_args = _validator(sparse_csr)
_validate_sparse_csc_tensor_args = _validator(sparse_csc)
_validate_sparse_bsr_tensor_args = _validator(sparse_bsr)
_validate_sparse_bsc_tensor_args = _validator(sparse_bsc)


def empty_of(layout: Any, size: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """A tensor of zeros of a sparse layout, for factories."""
    if layout is sparse_coo:
        return sparse_coo_tensor(size, dtype=dtype, device=device)
    if layout in BLOCKS:
        raise RuntimeError(
            f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {NAMES[layout]}"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    count = size[-2] if layout in ROWS else size[-1]
    outer = torch.zeros((*size[:-2], count + 1), dtype=torch.int64, device=device)
    inner = torch.zeros((*size[:-2], 0), dtype=torch.int64, device=device)
    values = torch.zeros((*size[:-2], 0), dtype=dtype, device=device)
    return make_compressed(outer, inner, values, size, layout, False)
