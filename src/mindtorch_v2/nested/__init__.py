"""`torch.nested`: tensors of many tensors whose sizes differ, in the jagged and the strided layout."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch_v2 as torch

from .._dispatch.binding import need_tensor
from .._ragged import construct as _construct
from .._ragged.construct import _rebuild_njt as _rebuild_njt
from .._ragged.history import as_view as _as_view
from .._ragged.history import wrap as _wrap
from .._ragged.parts import is_nested
from .._ragged.tensors import NestedTensor as _NestedTensor
from .._serialization.allowed import KNOWN as _KNOWN

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_PROTOTYPE = (
    "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend "
    "specifying layout=torch.jagged when constructing a nested tensor, as this layout receives active development, "
    "has better operator coverage, and works with torch.compile."
)


def _warn() -> None:
    if not _WARNED:
        _WARNED.append(True)
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=3)


_WARNED: list[bool] = []
# As in PyTorch, files with jagged nested tensors can be loaded once this is.
_KNOWN.update({f"torch.nested._internal.nested_tensor.{v.__name__}": v for v in (_NestedTensor, _rebuild_njt)})


def _layout(layout: Any) -> Any:
    """The layout asked for; the strided one where none is."""
    if layout not in (None, torch.strided, torch.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return torch.strided if layout is None else layout


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """A nested tensor that keeps the history of the tensors it is made of, or of the rows of one."""
    tensors = isinstance(ts, (list, tuple)) and all(isinstance(t, torch.Tensor) for t in ts)
    if not isinstance(ts, torch.Tensor) and not tensors:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, torch.Tensor):
        if ts.dim() < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        if is_nested(ts):
            if layout == ts.layout:
                return ts.to(device=device, dtype=dtype)
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
    if _layout(layout) is torch.jagged:
        return _jagged_of(ts, dtype, device)
    _warn()
    if not isinstance(ts, torch.Tensor):
        return _construct.strided_from_list(list(ts), dtype, device)
    buffer = ts.reshape(-1).to(device=device, dtype=dtype)
    sizes = [tuple(ts.shape[1:])] * ts.shape[0]
    return _as_view(_wrap(buffer, _construct.packed(sizes, ts.dim() - 1)), ts)


def _jagged_of(ts: Any, dtype: Any, device: Any) -> Any:
    if not isinstance(ts, torch.Tensor):
        return _construct.jagged_from_list(list(ts), device=device, dtype=dtype)[0]
    device = ts.device if device is None else device
    values = ts.contiguous().flatten(0, 1).to(device=device, dtype=dtype)
    batch, length = ts.shape[0], ts.shape[1]
    offsets = torch.arange(batch + 1, device=device, dtype=torch.int64) * length
    return _construct.from_jagged(values, offsets, None, 1, length, length)


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Any:
    """A dense tensor of the many, with `padding` behind each."""
    if not is_nested(input):
        raise RuntimeError("to_padded_tensor(): expected a nested tensor")
    found = _construct.padded(input, padding, output_size)
    return found if out is None else out.resize_(found.shape).copy_(found)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor of copies of tensors, or of what `torch.tensor` takes; a leaf."""
    jagged = _layout(layout) is torch.jagged
    if not isinstance(tensor_list, (list, tuple)) and not isinstance(tensor_list, torch.Tensor):
        raise TypeError("Only a list of items is supported")
    if isinstance(tensor_list, torch.Tensor) and not jagged:
        raise TypeError(f"Expected a list of Tensors, but got {type(tensor_list).__name__}")
    many = [t if isinstance(t, torch.Tensor) else torch.as_tensor(t) for t in tensor_list]
    with torch.no_grad():
        if jagged:
            found = _construct.jagged_from_list(many, device=device, dtype=dtype)[0]
        else:
            _warn()
            found = _construct.strided_from_list(many, dtype, device)
    found.requires_grad_(requires_grad)
    return found.pin_memory() if pin_memory else found


def narrow(tensor: Any, dim: int, start: Any, length: Any, layout: Any = torch.strided) -> Any:
    """Rows of a dense tensor, each with its own start and length, as a nested tensor: a view if jagged."""
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, torch.Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout == torch.strided:
        if isinstance(start, torch.Tensor) or isinstance(length, torch.Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(torch.unbind(tensor), layout=torch.strided).narrow(dim, start, length)
    if layout != torch.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    given = [
        v if isinstance(v, torch.Tensor) else torch.tensor([v], device=tensor.device, dtype=torch.int64)
        for v in (start, length)
    ]
    return _construct.jagged_from_tensor_and_lengths(tensor, *given)[0]


def nested_tensor_from_jagged(
    values: Any,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A view of values as a nested tensor, by offsets, or lengths, or both where rows have holes between them."""
    from ..fx._symbolic_trace import is_fx_tracing

    if is_fx_tracing():
        raise RuntimeError(
            "torch.nested.nested_tensor_from_jagged does not support tracing with fx.symbolic_trace. Use fx.wrap to "
            "wrap the function that calls nested_tensor_from_jagged."
        )
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    need_tensor("_nested_view_from_jagged", "offsets", 2, offsets)
    if offsets.dim() != 1:
        raise AssertionError(f"offsets must be 1D, but got {offsets.dim()}D")
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    ragged = 1 if jagged_dim is None else jagged_dim
    return _construct.from_jagged(values, offsets, lengths, ragged, min_seqlen, max_seqlen)


def masked_select(tensor: Any, mask: Any) -> Any:
    """The elements of each row of a dense tensor where the mask is True, as a jagged nested tensor."""
    if tensor.layout != torch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout != torch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    taken = tensor.masked_select(mask)
    mask = mask.expand(tensor.shape) if mask.shape != tensor.shape else mask
    lengths = mask.flatten(1).sum(1) if mask.dim() > 1 else mask.sum(dim=-1)
    return _construct.from_jagged(taken, torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), None, 1, None, None)
