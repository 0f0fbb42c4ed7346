"""`torch.Tensor`: everything a user touches that is not an operator row.

Invariant: this class adds no fields; what a tensor is lives in `TensorBase`. Methods that compute are rows; methods here
only look at metadata, convert to and from Python, or call rows.
"""
from __future__ import annotations

import warnings
from typing import Any

from . import _native
from ._backends.common.runtime import empty
from ._device import device as Device
from ._dispatch.keys import AUTOGRAD, BACKENDS, INFERENCE, PYTHON
from ._dispatch.state import is_grad_enabled
from ._dtype import dtype as DType
from ._layout import layout as Layout
from ._layout import strided
from ._ops import public
from ._ops.rules.base import wrap_dim
from ._size import Size
from ._tensor_base import HOT, TensorBase, alias, contiguous_strides, is_contiguous, numel


class Tensor(TensorBase):
    """A view of memory with a shape, a dtype and a device, and the history of how it was computed."""

    __module__ = "torch"

    # -- layout ---------------------------------------------------------------------------------------------------
    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        shape = self._shape
        return shape[wrap_dim(dim, len(shape))]

    def stride(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._stride
        return self._stride[wrap_dim(dim, len(self._stride))]

    def nelement(self) -> int:
        return numel(self)

    def ndimension(self) -> int:
        return len(self._shape)

    @property
    def layout(self) -> Layout:
        return strided

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        return numel(self) * self._dtype.itemsize

    def is_floating_point(self) -> bool:
        return self._dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._dtype.is_complex

    def is_signed(self) -> bool:
        return self._dtype.is_signed

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    @property
    def is_cpu(self) -> bool:
        return self._device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self._device.type == "meta"

    @property
    def is_npu(self) -> bool:
        return self._device.type == "npu"

    @property
    def is_cuda(self) -> bool:
        return False

    def get_device(self) -> int:
        return -1 if self._device.index is None else self._device.index

    # -- autograd -------------------------------------------------------------------------------------------------
    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        from .autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _zeros(shape: tuple[int, ...], dt: DType, dev: Device) -> TensorBase:
    from ._backends.common.runtime import empty_contiguous, runtime_of

    t = empty_contiguous(shape, dt, dev)
    runtime_of(t).fill(t, 0)
    return t


def _dense_like(g: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """A copy of `g` with the given strides, as part of the graph when gradients are recorded."""
    t = empty(shape, stride, g._dtype, g._device)
    return HOT.copy_.call((t, g, False))


def _grad_copy(g: Any, leaf: TensorBase) -> Any:
    """What becomes `.grad`: a copy with the leaf's strides where those are dense, else row-major."""
    from ._backends.common.overlap import is_dense

    stride = leaf._stride if is_dense(leaf) else contiguous_strides(leaf._shape)
    if g._keys & AUTOGRAD and is_grad_enabled():
        return HOT.clone.call((g, None))
    return _dense_like(g, leaf._shape, stride)


def _warn_grad(t: Any) -> None:
    if t._grad_fn.retain_hooks is not None and int(t._output_nr) in t._grad_fn.retain_hooks:
        return
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
        "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
        "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.", UserWarning, stacklevel=3)


def _check_grad(t: TensorBase, g: Any) -> None:
    if not isinstance(g, TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}")
    if g is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if g._shape != t._shape:
        raise RuntimeError(
            f"assigned grad has data of a different size")
    if g._dtype is not t._dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{g._dtype}' to a tensor with grad_dtype '{t._dtype}'")
    if g._device != t._device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{g._device.type}' to a tensor with device type "
            f"'{t._device.type}'. Please ensure that the gradient and the tensor are on the same device")


HOT.tensor = Tensor
HOT.zeros = _zeros
HOT.dense_like = _dense_like
HOT.grad_copy = _grad_copy
HOT.warn_grad = _warn_grad
HOT.check_grad = _check_grad
_unused = (_native, BACKENDS, INFERENCE, PYTHON, Size, alias, is_contiguous, public)
