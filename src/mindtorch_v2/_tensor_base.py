"""The compiled half of `Tensor`: its fields, its operators, and the few questions asked of it on every call.

Invariant: `_keys` holds the tensor's backend bit, AUTOGRAD exactly when the tensor itself requires grad,
and VIEW exactly when it tracks a base. `_shape`, `_stride` and `_offset` count elements and always lie inside
`_storage`.
"""

from __future__ import annotations

from typing import Any, Final, final

from . import _native
from ._autograd.node import Node
from ._autograd.version_counter import VersionCounter
from ._core_operators import CORE, HOOKS
from ._device import device as Device
from ._dispatch.keys import (
    AUTOGRAD,
    BATCHED,
    CPU,
    FORWARD,
    INFERENCE,
    MEMORY,
    PYTHON,
    SPARSE,
    TORCH_DISPATCH,
    VIEW,
    WRAPPED,
)
from ._dispatch.state import BELOW_AUTOGRAD, INFERENCE_MODE, STATE, _tls_get, is_inference_mode, modes
from ._dtype import complex32
from ._dtype import dtype as DType
from ._layout import sparse_coo, strided
from ._mypyc import i64, mypyc_attr
from ._numbers import checked_number, is_numpy_scalar
from ._size import Size
from ._sizes import numel_of
from ._strides import strides_contiguous

_alloc: Final[Any] = _native.alloc_instance
_Storage: Final[Any] = _native.Storage
_item: Final[Any] = _native.item
_tolist: Final[Any] = _native.tolist

# How a view came to be; decides whether writing through it in place may be recorded.
DEFAULT_VIEW: Final[i64] = 0
IN_CUSTOM_FUNCTION: Final[i64] = 1
MULTI_OUTPUT_NODE: Final[i64] = 2
NO_GRAD_VIEW: Final[i64] = 3
INFERENCE_VIEW: Final[i64] = 4
# In the same place, on a tensor that is no view: `detach_()` took its history.
DETACHED: Final[i64] = 5


INFERENCE_WRITTEN: Final = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)


def operand(x: Any) -> Any:
    """An operand of a Python operator: tensors and plain numbers as they are, NumPy scalars as plain numbers."""
    if isinstance(x, TensorBase) or isinstance(x, float):
        return x
    if isinstance(x, int) or isinstance(x, complex):
        return checked_number(x)
    if is_numpy_scalar(x):
        return x.item()
    return None


def read_only(name: str) -> AttributeError:
    return AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")


def unknown(name: str, t: object, other: object) -> Any:
    """An operand that is neither tensor nor number may take the call over; else Python asks its reflected method."""
    if hasattr(type(other), "__torch_function__"):
        return HOOKS.asked_operator(name, t, other)
    if hasattr(type(other), "__array__") and (name == "eq" or name == "__rdiv__"):
        return HOOKS.with_array(name, t, other)
    return NotImplemented


def in_key(key: object) -> bool:
    """Whether a tensor in an index has a handler."""
    if isinstance(key, TensorBase):
        return (key._keys & PYTHON) != 0
    if isinstance(key, tuple):
        for x in key:
            if isinstance(x, TensorBase) and x._keys & PYTHON:
                return True
    elif isinstance(key, list) and len(key) < 32:
        # A longer list is data, as in PyTorch.
        for x in key:
            if isinstance(x, TensorBase) and x._keys & PYTHON:
                return True
    return False


@mypyc_attr(allow_interpreted_subclasses=True)
class TensorBase:
    """Fields and hot paths; `Tensor` derives from it and adds everything else."""

    _storage: Any
    _offset: i64 = 0
    _shape: tuple[int, ...] = ()
    _stride: tuple[int, ...] = ()
    _dtype: DType
    _device: Device
    _keys: i64 = 0
    _numel: i64 = -1
    _contig: i64 = 0
    _output_nr: i64 = 0
    _cmeta: i64 = 0
    _attr_version: i64 = 0
    _vc: VersionCounter | None = None
    _grad_fn: Node | None = None
    _grad_field: TensorBase | None = None
    _base_field: TensorBase | None = None
    _view_op: Any = None
    _view_args: tuple[Any, ...] | None = None
    _hooks: Any = None
    _accumulator: Any = None
    # By level of forward-mode differentiation; a level that is not open any more counts for nothing.
    _tangents: dict[int, TensorBase | None] | None = None

    # -- layout ---------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        s = self._shape
        if isinstance(s, Size):
            return s
        new = Size(s)
        self._shape = new
        return new

    @shape.setter
    def shape(self, value: Any) -> None:
        raise read_only("shape")

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @ndim.setter
    def ndim(self, value: Any) -> None:
        raise read_only("ndim")

    def dim(self) -> int:
        return len(self._shape)

    def numel(self) -> int:
        return numel(self)

    def storage_offset(self) -> int:
        return self._offset

    def element_size(self) -> int:
        return self._dtype.itemsize

    @property
    def dtype(self) -> DType:
        return self._dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        raise read_only("dtype")

    @property
    def device(self) -> Device:
        return self._device

    @device.setter
    def device(self, value: Any) -> None:
        raise read_only("device")

    # -- autograd -------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, on: Any) -> None:
        if on is not True and on is not False:
            raise RuntimeError("requires_grad must be a bool")
        set_requires_grad(self, on is True)

    @property
    def grad(self) -> TensorBase | None:
        g = self._grad_field
        if g is None and self._grad_fn is not None and self._keys & AUTOGRAD:
            HOOKS.warn_grad(self)
        return g

    @grad.setter
    def grad(self, g: Any) -> None:
        if g is not None:
            HOOKS.check_grad(self, g)
        self._grad_field = g

    @property
    def is_leaf(self) -> bool:
        return grad_fn_of(self) is None

    @is_leaf.setter
    def is_leaf(self, value: Any) -> None:
        raise read_only("is_leaf")

    @property
    def grad_fn(self) -> Node | None:
        return grad_fn_of(self)

    @grad_fn.setter
    def grad_fn(self, value: Any) -> None:
        raise read_only("grad_fn")

    @property
    def output_nr(self) -> int:
        return self._output_nr

    @output_nr.setter
    def output_nr(self, value: Any) -> None:
        raise read_only("output_nr")

    @property
    def _version_counter(self) -> VersionCounter:
        return counter(self)

    @property
    def _version(self) -> int:
        if self._keys & INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        vc = self._vc
        return vc.value if vc is not None else 0

    @_version.setter
    def _version(self, value: Any) -> None:
        raise read_only("_version")

    @property
    def _base(self) -> TensorBase | None:
        return self._base_field

    @_base.setter
    def _base(self, value: Any) -> None:
        raise read_only("_base")

    def _is_view(self) -> bool:
        return self._base_field is not None

    def is_inference(self) -> bool:
        return (self._keys & INFERENCE) != 0

    # -- values ---------------------------------------------------------------------------------------------------
    def item(self) -> Any:
        if numel(self) != 1 and self._keys & BATCHED == 0:
            raise RuntimeError(f"a Tensor with {numel(self)} elements cannot be converted to Scalar")
        if (self._keys & (CPU | WRAPPED)) == CPU and (modes() & TORCH_DISPATCH) == 0:
            return _item(self._storage, int(self._offset), self._dtype.code)
        return HOOKS.host_item(self)

    def tolist(self) -> Any:
        if (self._keys & (CPU | WRAPPED)) == CPU:
            return _tolist(self._storage, int(self._offset), self._stride, self._dtype.code, self._shape)
        return HOOKS.to_host(self).tolist()

    def __bool__(self) -> bool:
        n = numel(self)
        if n != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'more than one value' if n > 1 else 'no values'} is ambiguous"
            )
        if self._keys & BATCHED:
            return bool(HOOKS.batched_truth(self))
        return bool(self.item())

    def __float__(self) -> float:
        if self._keys & AUTOGRAD:
            HOOKS.warn_scalar()
        return float(_scalar(self, "double"))

    def __int__(self) -> int:
        return int(_scalar(self, "int64_t"))

    def data_ptr(self) -> int:
        if numel(self) == 0:
            return 0
        own_memory(self)
        ptr: i64 = self._storage.ptr
        if self._keys & BATCHED:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return ptr + self._offset * self._dtype.itemsize if ptr != 0 else 0

    def __getitem__(self, key: Any) -> Any:
        if (self._keys | modes()) & PYTHON or in_key(key):
            return HOOKS.asked_getitem(self, key)
        try:
            return HOOKS.getitem(self, key)
        except Exception as error:
            # What is neither tensor nor index may still answer for itself.
            if not HOOKS.can_answer_key(error, (key,)):
                raise
            return HOOKS.asked_getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if (self._keys | modes()) & PYTHON or in_key(key) or in_key(value):
            HOOKS.asked_setitem(self, key, value)
            return
        try:
            HOOKS.setitem(self, key, value)
        except Exception as error:
            if not HOOKS.can_answer_key(error, (key, value)):
                raise
            HOOKS.asked_setitem(self, key, value)

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    # -- Python operators -----------------------------------------------------------------------------------------
    def __hash__(self) -> int:
        return id(self)

    def __add__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("add", self, other) if o is None else CORE.add.call((self, o, 1))

    def __radd__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("add", self, other) if o is None else CORE.add.call((self, o, 1))

    def __sub__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("sub", self, other) if o is None else CORE.sub.call((self, o, 1))

    def __rsub__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rsub__", self, other) if o is None else CORE.rsub.call((self, o, 1))

    def __mul__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("mul", self, other) if o is None else CORE.mul.call((self, o))

    def __rmul__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("mul", self, other) if o is None else CORE.mul.call((self, o))

    def __truediv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("div", self, other) if o is None else CORE.div.call((self, o))

    def __rtruediv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rdiv__", self, other) if o is None else CORE.mul.call((CORE.reciprocal.call((self,)), o))

    def __floordiv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__floordiv__", self, other) if o is None else CORE.floor_divide.call((self, o))

    def __rfloordiv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rfloordiv__", self, other) if o is None else CORE.floor_divide.call((o, self))

    def __mod__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("remainder", self, other) if o is None else CORE.remainder.call((self, o))

    def __rmod__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rmod__", self, other) if o is None else CORE.remainder.call((o, self))

    def __pow__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("pow", self, other) if o is None else CORE.pow.call((self, o))

    def __ipow__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("pow_", self, other) if o is None else CORE.pow_.call((self, o))

    def __rpow__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rpow__", self, other) if o is None else CORE.pow.call((o, self))

    def __matmul__(self, other: Any) -> Any:
        return CORE.matmul.call((self, other)) if isinstance(other, TensorBase) else unknown("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return CORE.matmul.call((other, self)) if isinstance(other, TensorBase) else unknown("__rmatmul__", self, other)

    def __neg__(self) -> Any:
        return CORE.neg.call((self,))

    def __pos__(self) -> Any:
        return CORE.positive.call((self,))

    def __abs__(self) -> Any:
        return CORE.abs.call((self,))

    def __invert__(self) -> Any:
        if self._dtype.is_inexact:
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return CORE.bitwise_not.call((self,))

    def __and__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__and__", self, other) if o is None else CORE.bitwise_and.call((self, o))

    def __rand__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("bitwise_and", self, other) if o is None else CORE.bitwise_and.call((self, o))

    def __or__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__or__", self, other) if o is None else CORE.bitwise_or.call((self, o))

    def __ror__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("bitwise_or", self, other) if o is None else CORE.bitwise_or.call((self, o))

    def __xor__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__xor__", self, other) if o is None else CORE.bitwise_xor.call((self, o))

    def __rxor__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("bitwise_xor", self, other) if o is None else CORE.bitwise_xor.call((self, o))

    def __lshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__lshift__", self, other) if o is None else CORE.lshift.call((self, o))

    def __rshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rshift__", self, other) if o is None else CORE.rshift.call((self, o))

    def __rlshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rlshift__", self, other) if o is None else CORE.lshift.call((o, self))

    def __rrshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__rrshift__", self, other) if o is None else CORE.rshift.call((o, self))

    def __eq__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("eq", self, other) if o is None else CORE.eq.call((self, o))

    def __ne__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("ne", self, other) if o is None else CORE.ne.call((self, o))

    def __lt__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("lt", self, other) if o is None else CORE.lt.call((self, o))

    def __le__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("le", self, other) if o is None else CORE.le.call((self, o))

    def __gt__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("gt", self, other) if o is None else CORE.gt.call((self, o))

    def __ge__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("ge", self, other) if o is None else CORE.ge.call((self, o))

    def __iadd__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("add_", self, other) if o is None else CORE.add_.call((self, o, 1))

    def __isub__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("sub_", self, other) if o is None else CORE.sub_.call((self, o, 1))

    def __imul__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("mul_", self, other) if o is None else CORE.mul_.call((self, o))

    def __itruediv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("div_", self, other) if o is None else CORE.div_.call((self, o))

    def __ifloordiv__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("floor_divide_", self, other) if o is None else CORE.floor_divide_.call((self, o))

    def __imod__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("remainder_", self, other) if o is None else CORE.remainder_.call((self, o))

    def __iand__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__iand__", self, other) if o is None else CORE.bitwise_and_.call((self, o))

    def __ior__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__ior__", self, other) if o is None else CORE.bitwise_or_.call((self, o))

    def __ixor__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__ixor__", self, other) if o is None else CORE.bitwise_xor_.call((self, o))

    def __ilshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__ilshift__", self, other) if o is None else CORE.lshift_.call((self, o))

    def __irshift__(self, other: Any) -> Any:
        o = operand(other)
        return unknown("__irshift__", self, other) if o is None else CORE.rshift_.call((self, o))


def _scalar(t: TensorBase, to: str) -> Any:
    """The one number that a tensor holds, without an imaginary part."""
    if numel(t) != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    value = t.item()
    if isinstance(value, complex):
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to type {to} without overflow")
        return value.real
    return value


# -- making tensors -----------------------------------------------------------------------------------------------
def make(
    storage: Any, offset: i64, shape: tuple[int, ...], stride: tuple[int, ...], dt: DType, dev: Device, keys: i64
) -> TensorBase:
    """A tensor over given memory that shares no autograd state with anything."""
    t: TensorBase = _alloc(TensorBase, HOOKS.tensor)
    t._storage = storage
    t._offset = offset
    t._shape = shape
    t._stride = stride
    t._dtype = dt
    t._device = dev
    if STATE.active != 0:
        m: i64 = _tls_get()
        if m & INFERENCE_MODE:
            keys = keys | INFERENCE
    t._keys = keys
    if dt is complex32:
        warn_of_half_complex()
    return t


def warn_of_half_complex() -> None:
    from ._warn import warn_once

    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")


def alias(src: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], offset: i64) -> TensorBase:
    """A tensor over the same memory and version counter, without view tracking or history."""
    t: TensorBase = _alloc(TensorBase, HOOKS.tensor)
    t._storage = src._storage
    t._offset = offset
    t._shape = shape
    t._stride = stride
    t._dtype = src._dtype
    t._device = src._device
    t._keys = src._keys & (MEMORY | INFERENCE)
    if (src._keys & INFERENCE) == 0:
        t._vc = counter(src)
    return t


def instance_of(cls: Any, src: TensorBase) -> TensorBase:
    """The same memory as an instance of a subclass of Tensor, without history."""
    t: TensorBase = _alloc(TensorBase, cls)
    t._storage = src._storage
    t._offset = src._offset
    t._shape = src._shape
    t._stride = src._stride
    t._dtype = src._dtype
    t._device = src._device
    keys: i64 = HOOKS.class_keys(cls)
    t._keys = (src._keys & (MEMORY | INFERENCE)) | keys
    if (src._keys & INFERENCE) == 0:
        t._vc = counter(src)
    return t


def make_view(
    src: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], offset: i64, op: Any, args: tuple[Any, ...]
) -> TensorBase:
    """A view that tracks its base."""
    t = alias(src, shape, stride, offset)
    if (t._keys & INFERENCE) == 0:
        track(t, src, op, args)
    return t


def track(t: TensorBase, src: TensorBase, op: Any, args: tuple[Any, ...]) -> None:
    """From now on `t`, a new tensor over the memory of `src`, is the view `op(*args)` of it."""
    base = src._base_field
    t._base_field = src if base is None else base
    t._keys |= VIEW
    t._view_op = op
    t._view_args = args
    if src._cmeta != DETACHED:
        t._cmeta = src._cmeta
    vc = t._vc
    if vc is not None:
        t._attr_version = vc.value
    if STATE.active != 0:
        m: i64 = _tls_get()
        if m & INFERENCE_MODE:
            t._cmeta = INFERENCE_VIEW
        elif (m >> 32) & AUTOGRAD and not m & BELOW_AUTOGRAD:
            t._cmeta = NO_GRAD_VIEW


# -- questions asked on every call --------------------------------------------------------------------------------
def numel(t: TensorBase) -> i64:
    n = t._numel
    if n < 0:
        n = numel_of(t._shape)
        t._numel = n
    return n


def is_contiguous(t: TensorBase) -> bool:
    c = t._contig
    if c == 0:
        c = 1 if strides_contiguous(t._shape, t._stride) else 2
        t._contig = c
    return c == 1


_native.make_abstract(TensorBase)


def is_floating_point(t: TensorBase) -> bool:
    return t._dtype.is_floating_point


def is_complex(t: TensorBase) -> bool:
    return t._dtype.is_complex


def is_signed(t: TensorBase) -> bool:
    return t._dtype.is_signed


def get_device(t: TensorBase) -> int:
    index = t._device.index
    return -1 if index is None else index


def itemsize(t: TensorBase) -> int:
    return t._dtype.itemsize


def nbytes(t: TensorBase) -> int:
    # Python's ints: the bytes of an expanded tensor may be more than 64 bits count.
    return HOOKS.sparse_bytes(t) if t._keys & SPARSE else int(numel(t)) * int(t._dtype.itemsize)


def layout(t: TensorBase) -> Any:
    return t._storage.layout if t._keys & SPARSE else strided


def is_sparse(t: TensorBase) -> bool:
    return (t._keys & SPARSE) != 0 and t._storage.layout is sparse_coo


def data(t: TensorBase) -> Any:
    """The same memory without history and with a version counter of its own."""
    if (t._keys | modes()) & (PYTHON | TORCH_DISPATCH | SPARSE) or t._keys & BATCHED:
        return HOOKS.asked_data(t)
    new: TensorBase = _alloc(TensorBase, HOOKS.tensor)
    new._storage = t._storage
    new._offset = t._offset
    new._shape = t._shape
    new._stride = t._stride
    new._dtype = t._dtype
    new._device = t._device
    new._keys = t._keys & (MEMORY | INFERENCE)
    return new


def untyped_storage(t: TensorBase) -> Any:
    if t._keys & BATCHED:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
    found = t._storage.wrapper
    return HOOKS.untyped_storage(t) if found is None else found


def counter(t: TensorBase) -> VersionCounter:
    vc = t._vc
    if vc is None:
        if t._keys & INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        vc = VersionCounter(0)
        t._vc = vc
    return vc


def version(t: TensorBase) -> i64:
    vc = t._vc
    return vc.value if vc is not None else 0


@final
class _LazyClones:
    """Whether a lazy clone was ever made: until then no memory is shared, and writes ask nothing more."""

    def __init__(self) -> None:
        self.made = False


LAZY_CLONES: Final = _LazyClones()


def own_memory(t: TensorBase) -> None:
    """Before memory is written or its address given away: what lazy clones share is copied."""
    if LAZY_CLONES.made:
        storage = t._storage
        if isinstance(storage, _Storage):
            storage.materialize()


def bump(t: TensorBase) -> None:
    """One in-place write happened."""
    if t._keys & INFERENCE:
        if not is_inference_mode():
            raise RuntimeError(INFERENCE_WRITTEN)
        return
    vc = t._vc
    if vc is None:
        t._vc = VersionCounter(1)
    else:
        vc.value += 1


def requires_grad(t: TensorBase) -> bool:
    if t._keys & AUTOGRAD:
        return True
    if t._keys & VIEW:
        base = t._base_field
        return base is not None and (base._keys & AUTOGRAD) != 0 and differentiable(t._dtype)
    return False


def gained(t: TensorBase) -> i64:
    """The keys that a view has from its base: a write may have given it a history or a tangent since."""
    base = t._base_field
    if base is None or not differentiable(t._dtype):
        return 0
    return base._keys & (AUTOGRAD | FORWARD)


def is_dual(t: TensorBase) -> bool:
    """Whether tangents may go with a tensor, or with what it is a view of."""
    return (t._keys & FORWARD) != 0 or ((t._keys & VIEW) != 0 and (gained(t) & FORWARD) != 0)


def all_values(t: Any) -> Any:
    """The values that a check of values must look at: those of all that a tensor inside `vmap` stands for."""
    return HOOKS.all_values(t) if t._keys & BATCHED else t


def differentiable(dt: DType) -> bool:
    return dt.is_inexact


def grad_fn_of(t: TensorBase) -> Node | None:
    """The node that made this tensor; a view whose base was written since gets a fresh one first."""
    if t._keys & VIEW and version(t) != t._attr_version:
        HOOKS.refresh_grad_fn(t)
    return t._grad_fn


def set_requires_grad(t: TensorBase, on: bool) -> None:
    """The `requires_grad` setter: only leaves can be switched."""
    if (t._grad_fn if on else grad_fn_of(t)) is not None:
        if not on:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        return
    if on:
        if not differentiable(t._dtype):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if t._keys & INFERENCE and not is_inference_mode():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        t._keys |= AUTOGRAD
    else:
        t._keys &= ~AUTOGRAD


def set_history(t: TensorBase, node: Node, nr: i64) -> None:
    t._grad_fn = node
    t._output_nr = nr
    t._keys |= AUTOGRAD
