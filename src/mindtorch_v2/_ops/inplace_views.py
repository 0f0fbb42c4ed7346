"""In-place changes of a tensor's geometry, storage or history: `transpose_`, `squeeze_`, `resize_`, `set_`, `detach_`.

Invariant: no element changes. What autograd would refuse is refused before anything changes, and the version goes up by
one where PyTorch's does.
"""
from __future__ import annotations

from operator import index
from typing import Any

from .._autograd.forward import UNSUPPORTED, UNSUPPORTED_TAIL, put, reshaped_tangents
from .._autograd.inplace import check_inplace
from .._autograd.node import add_meta
from .._autograd.record import Formulas
from .._backends.common.kernels import check_bounds, resize
from .._backends.common.runtime import allocate_storage
from .._dispatch.binding import BAD, fitted, is_element, is_index, need, plain_ints
from .._dispatch.keys import AUTOGRAD, BACKENDS, CPU, NESTED, SPARSE, TORCH_DISPATCH, VIEW
from .._dispatch.op import Op, plain_name, type_name
from .._dispatch.schema import Arg
from .._dispatch.state import is_grad_enabled, is_inference_mode
from .._dtype_names import cpp_name
from .._layout import preserve_format
from .._sizes import long, numel_of, strided_bytes
from .._strides import contiguous_strides, format_strides
from .._tensor_base import DETACHED, TensorBase, bump, is_dual, requires_grad, set_history, version
from .._unbound import of_tensor
from . import view
from .determinism import STATE as DETERMINISM
from .determinism import fill_grown
from .rules.layout import copy_strides

Ints = tuple[int, ...]


def _renamed(o: Op, node: str) -> Formulas:
    """The derivative of a view under the name PyTorch gives to its in-place form."""
    found: Any = o.derivative
    return Formulas(o.name, o.schema, {"self": found.formulas[0].fn}, node, ())


def _become(t: Any, o: Op, formulas: Formulas, args: tuple[Any, ...]) -> Any:
    """Give `t` the geometry of its own view `o(*args)`."""
    if t._keys == CPU:
        # Plain and without history, as most are.
        seen = o.row.view_kernel.run(o, args, CPU)
        t._shape, t._stride, t._offset = seen._shape, seen._stride, seen._offset
        t._numel, t._contig = -1, 0
        bump(t)
        return t
    if t._keys & (SPARSE | NESTED):
        return _become_other_layout(t, o, args)
    record = requires_grad(t) and is_grad_enabled()
    if record:
        check_inplace(t)
    # A wrapper whose class says so holds other tensors, which become views as well.
    follow = getattr(type(t), "_follow_view", None) if t._keys & TORCH_DISPATCH else None
    inner = None if follow is None else _without_gradients(o, args)
    seen = o.row.view_kernel.run(o, args, t._keys & BACKENDS)
    tangents = reshaped_tangents(t, o, args[1:]) if is_dual(t) else []
    node = None
    if record:
        node = formulas.start(args, 1)
        formulas.keep(node, args, 1)
    t._shape, t._stride, t._offset = seen._shape, seen._stride, seen._offset
    t._numel, t._contig = -1, 0
    bump(t)
    if follow is not None:
        follow(t, inner)
    for level, tangent in tangents:
        put(t, level, tangent)
    if node is not None:
        add_meta(node, t._shape, t._dtype, t._device)
        set_history(t, node, 0)
        t._attr_version = version(t)
    return t


def _without_gradients(o: Op, args: tuple[Any, ...]) -> Any:
    from ..autograd.grad_mode import no_grad

    with no_grad():
        return o.call(args)


def _become_other_layout(t: Any, o: Op, args: tuple[Any, ...]) -> Any:
    """Of a tensor whose memory is more than one block."""
    if t._keys & NESTED:
        from .._ragged.table import refused_in_place

        raise refused_in_place(o, args)
    from .._sparse.resize import become

    return become(t, o.title(), args[1:])


def _reshaping(name: str, o: Op) -> Any:
    """`transpose_` and the like."""
    formulas = _renamed(o, f"{_camel(o.title())}Backward1")
    schema = o.schema.args
    only_dims = all(a.kind == "int" and not a.is_list for a in schema[1:])
    is_t = name == "t_"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if only_dims and not kwargs and len(args) + 1 == len(schema) and (is_t or plain_ints(args)):
            if not is_t or len(self._shape) <= 2:
                return _become(self, o, formulas, (self, *args))
        values = [self]
        for i, a in enumerate(schema[1:]):
            if i < len(args):
                value = args[i]
            elif a.name in kwargs:
                value = kwargs.pop(a.name)
            elif a.has_default:
                value = a.default
            else:
                raise TypeError(f'{name}() missing 1 required positional arguments: "{a.name}"')
            got = fitted(name, a, value)
            if got is BAD:
                raise TypeError(f"{name}(): argument '{a.name}' (position {i + 1}) must be {a.kind}, not "
                                f"{type_name(value)}")
            values.append(got)
        if kwargs or len(args) >= len(schema):
            raise TypeError(f"{name}() got unexpected arguments")
        if is_t and self.dim() > 2 and not self._keys & SPARSE:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
        return _become(self, o, formulas, tuple(values))

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"In-place version of {o.title()}: changes this tensor's geometry."
    return method


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_SQUEEZES = (view.SQUEEZE, view.SQUEEZE_DIM, view.SQUEEZE_DIMS)
_SQUEEZE_FORMULAS = tuple(_renamed(o, f"SqueezeBackward{3 + i}") for i, o in enumerate(_SQUEEZES))


def squeeze_(self: Any, dim: Any = None) -> Any:
    """squeeze_(dim=None): in-place version of squeeze."""
    if dim is None:
        return _become(self, _SQUEEZES[0], _SQUEEZE_FORMULAS[0], (self,))
    given_dim = dim
    form = 2 if isinstance(dim, (tuple, list)) else 1
    if form == 2:
        dim = fitted("squeeze_", _SQUEEZES[2].schema.args[1], dim)
    if dim is BAD or form == 1 and not is_index(dim):
        raise TypeError(f"squeeze_() received an invalid combination of arguments - got ({type_name(given_dim)})")
    return _become(self, _SQUEEZES[form], _SQUEEZE_FORMULAS[form], (self, tuple(dim) if form == 2 else dim))


# -- storage ------------------------------------------------------------------------------------------------------
_NO_RESIZE = "cannot resize variables that require grad"


def _check_resizable(t: TensorBase) -> None:
    if requires_grad(t) and not (is_inference_mode() and t.is_inference()):
        raise RuntimeError(_NO_RESIZE)
    if is_dual(t):
        raise RuntimeError("cannot resize variables that has a forward grad")


def _bytes_if_filled(t: Any) -> int:
    """The size of a tensor's storage, where deterministic mode will ask for it."""
    return int(t.untyped_storage().nbytes()) if DETERMINISM.on and t._device.type != "meta" else 0


def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """resize_(*size, memory_format=torch.contiguous_format): another shape over the same storage, grown when needed."""
    single = len(size) == 1 and (isinstance(size[0], (tuple, list)) or not is_element(size[0]))
    shape = need("resize_", _SIZE, 1, size[0] if single else size)
    _check_resizable(self)
    if self._keys & SPARSE:
        from .._sparse.resize import resized

        return resized(self, shape)
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    numel_of(shape)
    if shape != self._shape or memory_format is not None:
        before = _bytes_if_filled(self)
        resize(self, shape, format_strides(shape, memory_format))
        fill_grown(self, before)
    bump(self)
    return self


_SIZE = view.VIEW.schema.args[1]


def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """resize_as_(the_template): the shape of another tensor."""
    for i, (name, given) in enumerate((("input", self), ("the_template", the_template))):
        if not isinstance(given, TensorBase):
            raise TypeError(f"resize_as_(): argument '{name}' (position {i + 1}) must be Tensor, not "
                            f"{type_name(given)}")
    _check_resizable(self)
    if (self._keys | the_template._keys) & NESTED:
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.\n"
                           "'resize_as_' takes no nested tensors.")
    if self._keys & SPARSE:
        from .._sparse.resize import resized_as

        return resized_as(self, the_template)
    shape = tuple(the_template._shape)
    if shape != self._shape or memory_format is not None:
        stride = contiguous_strides(shape) if memory_format is None else copy_strides(the_template, memory_format)
        before = _bytes_if_filled(self)
        resize(self, shape, stride)
        fill_grown(self, before)
    bump(self)
    return self


def _ints(name: str, given: Any) -> tuple[int, ...]:
    got: tuple[int, ...] = need("set_", Arg(name, "int", False, True, 0, "", False, False, False, None, True), 0, given)
    return got


_ABSENT = object()
_LISTS = (list, tuple, type(None))


def _fits(source: Any, storage_offset: Any, size: Any, stride: Any) -> bool:
    """Whether PyTorch has a signature of `set_` for these: no memory, all of another's, or a part of it."""
    if storage_offset is _ABSENT and size is _ABSENT and stride is None:
        whole = True
    else:
        whole = is_index(storage_offset) and isinstance(size, (list, tuple)) and isinstance(stride, _LISTS)
    if source is _ABSENT:
        return size is _ABSENT and whole
    return whole and (isinstance(source, TensorBase) or hasattr(source, "untyped") or hasattr(source, "_raw"))


def set_(
    self: Any, source: Any = _ABSENT, storage_offset: Any = _ABSENT, size: Any = _ABSENT, stride: Any = None
) -> Any:
    """set_(source, storage_offset, size, stride=None): another tensor's or storage's memory."""
    if not _fits(source, storage_offset, size, stride):
        from .._dispatch.complaint import complaint

        given = [x for x in (source, storage_offset, size, stride) if x is not _ABSENT]
        raise complaint("set_", [], True, tuple(given if stride is not None or size is None else given[:-1]), {})
    if source is _ABSENT:
        source = None
    storage_offset, size = (0, None) if size is _ABSENT else (long(index(storage_offset)), size)
    if requires_grad(self) and is_grad_enabled():
        check_inplace(self)
        raise RuntimeError("the derivative for 'set_' is not implemented")
    if is_dual(self):
        raise NotImplementedError(UNSUPPORTED.format("set_").removesuffix(UNSUPPORTED_TAIL) + ".")
    item = self._dtype.itemsize
    shape: tuple[int, ...] = (0,)
    strides: tuple[int, ...] = (1,)
    if source is None:
        raw = allocate_storage(0, self._device)
    elif isinstance(source, TensorBase):
        if source._dtype is not self._dtype:
            raise RuntimeError(
                f"Could not set tensor of type {cpp_name(source._dtype)} to a tensor of type {cpp_name(self._dtype)}")
        _check_same_device(self, source._device)
        raw, shape = source._storage, tuple(source._shape) if size is None else _ints("size", size)
        strides = tuple(source._stride)
        if size is not None:
            strides = contiguous_strides(shape) if stride is None else _ints("stride", stride)
        storage_offset = source._offset if size is None else storage_offset
    else:
        from .._storage import root

        if hasattr(source, "dtype"):
            if source.dtype is not self._dtype:
                raise RuntimeError(
                    f"Expected a Storage of type {cpp_name(self._dtype)} or an UntypedStorage, but got type "
                    f"{source.dtype.scalar_name} for argument 1 'storage'")
            untyped = source.untyped()
        else:
            untyped = source
        _check_same_device(self, untyped.device)
        untyped._check_memory("set_")
        shape = (untyped.nbytes() // item,) if size is None else _ints("size", size)
        strides = contiguous_strides(shape) if stride is None else _ints("stride", stride)
        raw, first = root(untyped._raw, item)
        storage_offset += first
    if len(shape) != len(strides):
        raise RuntimeError(
            f"unequal size length ({len(shape)}) and stride length ({len(strides)})")
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    numel_of(shape)
    # PyTorch's errors show the strides that were given.
    shown = strides if stride is not None or isinstance(source, TensorBase) else ()
    strided_bytes(shape, strides, storage_offset, item, shown)
    if shape == self._shape and strides == self._stride and self._device.type != "meta":
        # A geometry that stays as it is asks for no memory: PyTorch grows a storage for another one only.
        check_bounds(shape, strides, storage_offset, item, raw.nbytes, shown)
    self._storage, self._offset = raw, storage_offset
    resize(self, shape, strides)
    bump(self)
    return self


def _check_same_device(t: TensorBase, dev: Any) -> None:
    if dev != t._device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{t._device}" to a storage on different device '
            f'"{dev}".  This is no longer allowed; the devices must match.')


_DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)


def detach_(self: Any) -> Any:
    """Forget how this tensor was computed."""
    if not isinstance(self, TensorBase):
        raise TypeError(f"detach_(): argument 'input' (position 1) must be Tensor, not {plain_name(self)}")
    if self._keys & VIEW:
        raise RuntimeError(_DETACH_VIEW)
    if self._grad_fn is not None:
        self._cmeta = DETACHED
    self._grad_fn = None
    self._output_nr = 0
    self._keys &= ~AUTOGRAD
    return self


METHODS: dict[str, Any] = {
    "transpose_": _reshaping("transpose_", view.TRANSPOSE), "swapaxes_": _reshaping("swapaxes_", view.TRANSPOSE),
    "swapdims_": _reshaping("swapdims_", view.TRANSPOSE), "t_": _reshaping("t_", view.T),
    "unsqueeze_": _reshaping("unsqueeze_", view.UNSQUEEZE), "as_strided_": _reshaping("as_strided_", view.AS_STRIDED),
    "squeeze_": squeeze_, "resize_": resize_, "resize_as_": resize_as_, "set_": set_, "detach_": detach_,
}
METHODS = {name: of_tensor(method) for name, method in METHODS.items()}
# A function of `torch` as well.
as_strided_ = METHODS["as_strided_"]
