"""`torch.Tensor`: everything a user touches that is not an operator row.

Invariant: this class adds no fields; what a tensor is lives in `TensorBase`. Methods that compute are rows; those here
only look at metadata, convert to and from Python, or call rows.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native, _overrides
from . import _tensor_base as base
from ._attributes import FIELDS, Attributes
from ._autograd import leaf_policy, tensor_hooks
from ._autograd.engine import backward_one
from ._autograd.node import Node
from ._backends.common.overlap import is_dense
from ._backends.common.runtime import empty, empty_contiguous, runtime_of
from ._backends.cpu.numpy_view import KNOWN, np_view, plain_array
from ._core_operators import CORE, HOOKS
from ._device import CPU as CPU_DEVICE
from ._device import device as Device
from ._dispatch.keys import (
    AUTOGRAD,
    BACKENDS,
    BATCHED,
    CONJUGATE,
    FORWARD,
    LAZY,
    META,
    NESTED,
    PYTHON,
    SPARSE,
    TORCH_DISPATCH,
)
from ._dispatch.op import plain_name
from ._dispatch.state import STATE, RecordingOff, RecordingOn, is_grad_enabled, modes, transformed
from ._dtype import FIRST_STORED
from ._dtype import dtype as DType
from ._dtype_names import cpp_name
from ._indexing import getitem, setitem
from ._layout import channels_last, sparse_csr
from ._layout import memory_format as MemoryFormat
from ._mypyc import hide_setup
from ._numbers import flag
from ._ops.rules import questions as asked
from ._ops.rules.layout import asked_contiguous
from ._ops.rules.questions import dimension
from ._ops.rules.shape import check_value
from ._strides import compare, contiguous_strides, fastest_first
from ._tensor_base import TensorBase, alias, numel, requires_grad
from ._unbound import of_tensor, refusal
from ._warn import TO_SCALAR, warn_once

_GRAD: Any = TensorBase.__dict__["grad"]
# Bits of what `data` is assigned.
_DATA = BACKENDS | SPARSE | NESTED | LAZY
_KINDS = META | SPARSE | NESTED


def _delete_grad(t: TensorBase) -> None:
    t._grad_field = None


_NO_BACKWARD = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
    "instead or call backward() outside of functorch transforms."
)


# Before there is a subclass, which takes its operators from here.
_native.define_operators(TensorBase)
hide_setup(TensorBase, Node, DType, Device, RecordingOff, RecordingOn)


class Tensor(TensorBase, metaclass=_native.TensorMeta):
    """A view of memory with a shape, a dtype and a device, and the history of how it was computed."""

    __module__ = "mindtorch_v2"
    __array_priority__ = 1000

    if TYPE_CHECKING:
        # Methods that come from rows.
        def __getattr__(self, name: str) -> Any: ...
    elif FIELDS:

        @property
        def __dict__(self):
            return Attributes(self)

        @__dict__.setter
        def __dict__(self, value):
            Attributes(self).replace(value)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The legacy constructor: `Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` holds the default dtype."""
        return HOOKS.construct(cls, args, kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """What the arguments say was done by `__new__`."""

    # -- layout ---------------------------------------------------------------------------------------------------
    def size(self, dim: int | None = None) -> Any:
        try:
            shape = self._shape
        except AttributeError as error:
            raise refusal("size", self, error) from None
        if dim is None:
            return self.shape
        if type(dim) is int and -len(shape) <= dim < len(shape):
            return shape[dim]
        return shape[dimension(self, "size", dim)]

    nelement = of_tensor(numel, "nelement", alone=True)
    ndimension = of_tensor(TensorBase.dim, "ndimension", alone=True)
    stride = of_tensor(asked.stride)
    is_contiguous = of_tensor(asked_contiguous, "is_contiguous")
    is_floating_point = of_tensor(base.is_floating_point, alone=True)
    is_complex = of_tensor(base.is_complex, alone=True)
    is_signed = of_tensor(base.is_signed, alone=True)

    layout = property(base.layout)
    itemsize = property(base.itemsize)
    nbytes = property(base.nbytes)

    @of_tensor
    def is_same_size(self, other: Tensor) -> bool:
        if not isinstance(other, TensorBase):
            raise TypeError(f"is_same_size(): argument 'other' (position 1) must be Tensor, not {plain_name(other)}")
        return self._shape == other._shape

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """Dimensions from the slowest to the fastest. `ambiguity_check`: refuse a tensor for which others would do as
        well, or which has not exactly one of the memory formats listed."""
        return dim_order(self, ambiguity_check)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Any:
        return self if not self._shape else self.flip(0)

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (TensorBase, int, float, complex)):
            found: Any = element == self
            return bool(found.any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    # -- where it lives -------------------------------------------------------------------------------------------
    is_cpu = property(asked.is_cpu)
    is_meta = property(asked.is_meta)
    is_npu = property(asked.is_npu)

    @property
    def is_cuda(self) -> bool:
        return False

    is_sparse = property(base.is_sparse)

    @property
    def is_sparse_csr(self) -> bool:
        return self.layout is sparse_csr

    @property
    def is_quantized(self) -> bool:
        return False

    @property
    def is_mkldnn(self) -> bool:
        return False

    is_nested = property(asked.is_nested)

    @of_tensor
    def is_shared(self) -> bool:
        """Whether other processes can be given this memory, and not a copy."""
        from ._storage import untyped

        return untyped(self).is_shared()

    @of_tensor
    def share_memory_(self) -> Tensor:
        """Move the memory to where other processes can be given it; views move along."""
        from ._storage import untyped

        untyped(self).share_memory_()
        return self

    @of_tensor
    def _fix_weakref(self) -> None:
        """Tensors keep their Python object here: weak references stay right by themselves."""

    get_device = of_tensor(base.get_device, alone=True)
    untyped_storage = of_tensor(base.untyped_storage, alone=True)

    def storage(self) -> Any:
        from ._typed_storage import typed

        return typed(self)

    def _typed_storage(self) -> Any:
        from ._storage import untyped
        from ._typed_storage import wrapped

        return wrapped(untyped(self), self._dtype)

    # -- autograd -------------------------------------------------------------------------------------------------
    requires_grad_ = of_tensor(asked.requires_grad_)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        if transformed():
            raise RuntimeError(_NO_BACKWARD)
        if inputs is None and isinstance(self, TensorBase) and (gradient is None or isinstance(gradient, TensorBase)):
            create_graph = flag(create_graph)
            backward_one(self, gradient, create_graph if retain_graph is None else flag(retain_graph), create_graph)
        else:
            from .autograd import backward

            backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def _set_data(self, new: Any) -> None:
        if not isinstance(new, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if (new._keys ^ self._keys) & _KINDS:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
                "tensor type."
            )
        if requires_grad(self) and not new._dtype.is_inexact:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if new._keys & TORCH_DISPATCH and not self._keys & TORCH_DISPATCH:
            from ._storage import check_allocated

            check_allocated(new)
        self._storage = new._storage
        self._offset = new._offset
        self._shape = new._shape
        self._stride = new._stride
        self._dtype = new._dtype
        self._device = new._device
        self._keys = (self._keys & ~_DATA) | (new._keys & _DATA)
        self._numel = -1
        self._contig = 0
        # The node that adds into `.grad` knows the old shape; the next use makes a new one.
        self._accumulator = None

    def _delete_data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    data = property(base.data, _set_data, _delete_data)
    del _set_data, _delete_data

    @property
    def _view_meta(self) -> dict[str, Any] | None:
        """How a view was made from the tensor it was taken of; None for a tensor that is no view."""
        if self._view_args is None:
            return None
        return {
            "op": self._view_op.name,
            "args": self._view_args[1:],
            "shape": self._shape,
            "stride": self._stride,
            "offset": int(self._offset),
        }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if _overrides.below_only(cls):
            cls.__torch_function__ = _overrides.DISABLED
        if cls.__torch_function__ is not _overrides._disabled_torch_function_impl:
            from ._watched import watch

            watch(cls)

    as_subclass = _overrides.as_subclass
    _make_subclass = staticmethod(_overrides.make_subclass)
    __torch_function__ = classmethod(_overrides.torch_function)
    __torch_dispatch__: Any = _overrides._disabled_torch_dispatch_impl

    @staticmethod
    def _make_wrapper_subclass(*args: Any, **options: Any) -> Any:
        """A tensor of a class with shape, dtype and device but no memory; its `__torch_dispatch__` computes."""
        from ._torch_dispatch import make_wrapper

        return make_wrapper(*args, **options)

    # The compiled property cannot be deleted from; `del t.grad` is `t.grad = None`.
    grad = _grad = property(_GRAD.__get__, _GRAD.__set__, _delete_grad)

    register_hook = of_tensor(tensor_hooks.register_hook)
    register_post_accumulate_grad_hook = of_tensor(tensor_hooks.register_post_accumulate_grad_hook)
    retain_grad = of_tensor(tensor_hooks.retain_grad)
    retains_grad = property(tensor_hooks.retains_grad)
    _backward_hooks = property(
        tensor_hooks.backward_hooks, tensor_hooks.set_backward_hooks, tensor_hooks.refuse("_backwards_hooks")
    )
    _post_accumulate_grad_hooks = property(
        tensor_hooks.post_accumulate_grad_hooks, None, tensor_hooks.refuse("_post_accumulate_grad_hooks")
    )

    # -- to Python ------------------------------------------------------------------------------------------------
    @of_tensor
    def __complex__(self) -> complex:
        if self._keys & AUTOGRAD:
            warn_once(TO_SCALAR)
        return complex(_single(self))

    @of_tensor
    def __index__(self) -> int:
        if numel(self) != 1 or self._dtype.is_inexact:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __dir__(self) -> list[str]:
        from ._overrides import handle_torch_function, has_torch_function

        if has_torch_function((self,)):
            asked: list[str] = handle_torch_function(Tensor.__dir__, (self,), self)
            return asked
        return sorted(set(dir(type(self))) - {"volatile", "__cuda_array_interface__"} | set(self.__dict__))

    def __format__(self, spec: str) -> str:
        if not self._shape and not self.is_meta and type(self) is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if self._keys & BATCHED:
            from ._batching.values import shown

            return shown(self)
        from ._printing import tensor_str

        if STATE.active != 0 and modes() & TORCH_DISPATCH:
            # No mode sees how a text comes about.
            from ._torch_dispatch import without_modes

            with without_modes():
                return tensor_str(self, tensor_contents)
        return tensor_str(self, tensor_contents)

    def numpy(self, *, force: bool = False) -> Any:
        """The same memory as an ndarray. force: detach and copy to the host first where needed."""
        if isinstance(self, TensorBase) and (force is False or force is True):
            array = plain_array(self)
            if array is not None:
                return array
        try:
            keys, dt = self._keys, self._dtype
        except AttributeError as error:
            raise refusal("numpy", self, error) from None
        if keys & BATCHED:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        if keys & TORCH_DISPATCH:
            raise RuntimeError(".numpy() is not supported for tensor subclasses.")
        if self._keys & SPARSE:
            raise TypeError(f"can't convert {self._storage.name} layout tensor to numpy. Use Tensor.to_dense() first.")
        if force is not False:
            if force is not True:
                raise TypeError(f"numpy(): argument 'force' must be bool, not {plain_name(force)}")
            return self.detach().cpu().resolve_conj().resolve_neg().numpy()
        if self._device.type != "cpu":
            raise TypeError(
                f"can't convert {self._device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                f"to host "
                "memory first."
            )
        if requires_grad(self) and is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if keys & LAZY:
            what, resolve = ("conjugate", "conj") if keys & CONJUGATE else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {what} bit set. Use tensor.resolve_{resolve}().numpy() instead."
            )
        if dt not in KNOWN:
            if dt.name.startswith(("bfloat", "float8", "complex32")) or dt.code >= FIRST_STORED:
                raise TypeError(f"Got unsupported ScalarType {dt.scalar_name}")
            KNOWN[dt] = True
        self._storage.fix()  # for good, as in PyTorch: the array may be gone long after the memory was to move
        return np_view(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        from ._from_data import from_numpy

        # As in PyTorch, which had no bool tensors when this was written.
        return from_numpy(array.astype("uint8") if array.dtype == bool else array)

    def __dlpack_device__(self) -> tuple[int, int]:
        from ._dlpack import device_of

        return device_of(self)

    def __dlpack__(self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        from ._dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    # -- copies ---------------------------------------------------------------------------------------------------
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        from ._overrides import handle_torch_function, has_torch_function
        from ._serialize import deep_copy

        if has_torch_function((self,)):
            return handle_torch_function(Tensor.__deepcopy__, (self,), self, memo)
        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from ._serialize import reduce_tensor

        return reduce_tensor(self)

    def __setstate__(self, state: Any) -> None:
        from ._serialize import set_state

        set_state(self, state)

    @of_tensor
    def new(self, *args: Any, **kwargs: Any) -> Any:
        from ._legacy import construct_like

        return construct_like(self, args, kwargs)

    @of_tensor
    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """Positions of the elements that are not zero: one row each, or one tensor per dimension."""
        if not isinstance(as_tuple, bool):
            raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {plain_name(as_tuple)}")
        found = CORE.nonzero.call((self,)) if self._shape or not as_tuple else CORE.nonzero.call((self.unsqueeze(0),))
        return found.unbind(1) if as_tuple else found

    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Any:
        return HOOKS.public_index_put(self, indices, values, accumulate)

    def index_put_(self, indices: Any, values: Any, accumulate: bool = False) -> Any:
        return HOOKS.public_index_put_(self, indices, values, accumulate)


def dim_order(t: Any, check: Any) -> tuple[int, ...]:
    """`Tensor.dim_order`."""
    formats = check if isinstance(check, list) else []
    if not isinstance(check, (bool, list)) or not all(isinstance(f, MemoryFormat) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if t._keys & SPARSE:
        raise AttributeError(
            f"Can't get dim order on sparse type: {t.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )
    shape, stride = t._shape, t._stride
    if check:
        several = any(a == b for a, b in zip(stride, stride[1:])) or any(n == 1 for n in shape)
        if several and sum(t.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    rows, channels = t.is_contiguous(), t.is_contiguous(memory_format=channels_last)
    if rows and not channels:
        return tuple(range(len(shape)))
    if channels and not rows:
        return (0, 2, 3, 1)
    order = fastest_first(shape, [stride])
    if check and any(compare(a, b, [stride], shape) == 0 for a, b in zip(order, order[1:])):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(reversed(order))


def _single(t: Any) -> Any:
    if numel(t) != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return t.item()


def _zeros(shape: tuple[int, ...], dt: DType, dev: Device) -> TensorBase:
    t = empty_contiguous(shape, dt, dev)
    runtime_of(t).fill(t, 0)
    return t


def _dense_like(g: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """A copy of `g` with the given strides, as part of the graph when gradients are recorded."""
    if g._keys & TORCH_DISPATCH:
        # The memory is the handler's affair, and so is its layout.
        return CORE.clone.call((g, None))
    if g._keys & BATCHED:
        batched: Any = g
        return CORE.copy_.call((batched.new_empty_strided(shape, stride), g, False))
    t = empty(shape, stride, g._dtype, g._device)
    if g._keys & (FORWARD | LAZY) or (g._keys & AUTOGRAD and is_grad_enabled()):
        return CORE.copy_.call((t, g, False))
    runtime_of(t).copy(t, g)
    return t


def _grad_copy(g: Any, leaf: TensorBase) -> Any:
    """What becomes `.grad`: a copy with the leaf's strides where those are dense, else row-major."""
    return _dense_like(g, leaf._shape, leaf._stride if is_dense(leaf) else contiguous_strides(leaf._shape))


def _sparse_grad(old: Any, grads: list[Any], recording: bool) -> Any:
    from ._sparse.gradients import accumulated

    return accumulated(old, grads, recording)


def _sparse_zeros(size: tuple[int, ...], dtype: Any, layout: Any, device: Any) -> Any:
    from ._sparse.construct import empty_of

    return empty_of(layout, tuple(size), dtype, device)


def _warn_grad(t: Any) -> None:
    if tensor_hooks.retains_grad(t):
        return
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, "
        "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
        "access the "
        "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        UserWarning,
        stacklevel=3,
    )


def _check_grad(t: TensorBase, g: Any) -> None:
    if not isinstance(g, TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}")
    if g is t:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = leaf_policy.grad_dtype(t)
    if wanted is not None and g._dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{cpp_name(g._dtype)}' to a tensor with grad_dtype "
            f"'{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            f"dtype). "
            "You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
            "Set grad_dtype "
            "with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that "
            "assume they "
            "match."
        )
    if g._device != t._device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{g._device.type}' to a tensor with device type "
            f"'{t._device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if g._shape != t._shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(g._shape)}' to a tensor of size '{list(t._shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )


def _from_data(data: Any, dt: DType | None, like: TensorBase) -> Any:
    """An index tensor from a list, on the device of the tensor it indexes."""
    from ._from_data import tensor

    return tensor(data, dtype=dt, device=like._device)


def _scalar_tensor(value: Any, like: TensorBase) -> TensorBase:
    if STATE.active != 0 and modes() & TORCH_DISPATCH:
        made = empty((), (), like._dtype, CPU_DEVICE)
        check_value(value, like._dtype)
        runtime_of(made).fill(made, value)
        number: TensorBase = HOOKS.lifted(made)
        return number
    t = empty((), (), like._dtype, like._device)
    if like._device.type != "meta" and (not like._dtype.is_inexact or isinstance(value, complex)):
        check_value(value, like._dtype)
    runtime_of(t).fill(t, value)
    return t


def _host_item(t: Any) -> Any:
    if t._keys & BATCHED:
        from ._batching.values import item_of

        return item_of(t)
    if (t._keys | modes()) & TORCH_DISPATCH:
        from ._torch_dispatch import item

        return item(t)
    if t._keys & SPARSE:
        return t.to_dense().item()
    if t._device.type == "meta":
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    return t.cpu().clone().item()


def _to_host(t: Any) -> Any:
    if t._keys & BATCHED:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if t._keys & TORCH_DISPATCH:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(t).__name__}")
    if t._keys & SPARSE:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if t._device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return t.detach().cpu().clone()


def _construct(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from ._legacy import construct

    HOOKS.construct = construct
    return construct(cls, args, kwargs)


def _asked_data(t: Any) -> Any:
    if t._keys & PYTHON and _overrides.has_torch_function((t,)):
        getter: Any = Tensor.data.__get__
        return _overrides.handle_torch_function(getter, (t,), t)
    if t._keys & BATCHED:
        raise RuntimeError("accessing `data` under vmap transform is not allowed")
    if (t._keys | modes()) & (TORCH_DISPATCH | SPARSE):
        new = t.detach()
        if t._keys & SPARSE == 0 and new is not t:
            new._vc = None
        return new
    new = alias(t, t._shape, t._stride, t._offset)
    new._vc = None
    return new


def _sparse_bytes(t: Any) -> int:
    if t.is_sparse:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
            "numel() by element_size()"
        )
    return int(numel(t) * t._dtype.itemsize)


def _untyped(t: TensorBase) -> Any:
    from ._storage import untyped

    return untyped(t)


def _of_batches(name: str) -> Any:
    """A function of `_batching.values`, which is loaded by the first call."""

    def call(*args: Any) -> Any:
        from ._batching import values

        return getattr(values, name)(*args)

    return call


HOOKS.tensor = Tensor
_native.add_plain(Tensor)
HOOKS.batched_truth = _of_batches("truth_of")
HOOKS.all_values = _of_batches("all_of")
HOOKS.at_levels_of = _of_batches("at_levels_of")
HOOKS.many_like = _of_batches("many_like")
HOOKS.zeros = _zeros
HOOKS.warn_scalar = functools.partial(warn_once, TO_SCALAR)
HOOKS.untyped_storage = _untyped
HOOKS.asked_data = _asked_data
HOOKS.construct = _construct
HOOKS.sparse_bytes = _sparse_bytes
HOOKS.dense_like = _dense_like
HOOKS.grad_copy = _grad_copy
HOOKS.sparse_grad = _sparse_grad
HOOKS.sparse_zeros = _sparse_zeros
HOOKS.warn_grad = _warn_grad
HOOKS.check_grad = _check_grad
HOOKS.from_data = _from_data
HOOKS.scalar = _scalar_tensor
HOOKS.host_item = _host_item
HOOKS.to_host = _to_host
HOOKS.getitem = getitem
HOOKS.setitem = setitem
HOOKS.class_keys = _overrides.instance_keys


def __getattr__(name: str) -> Any:
    if name in ("_rebuild_from_type", "_rebuild_from_type_v2"):
        # Where pickles of PyTorch's say these two are.
        from . import _utils

        return getattr(_utils, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
