"""`__torch_dispatch__`: subclasses and modes that take over operators below autograd.

Invariant: a handler runs after gradients were recorded, with recording hidden, and sees an operator (`OpOverload`) with
arguments as its schema orders them. While a mode's handler runs, that mode is off.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ._api import factories
from ._autograd.record import NO_GRADIENT
from ._core_operators import HOOKS
from ._dispatch.binding import BAD, convert, refuse
from ._dispatch.keys import AUTOGRAD, DEVICE_BITS, INFERENCE, TORCH_DISPATCH, VIEW
from ._dispatch.op import FnKernel, Op
from ._dispatch.schema import Arg, parse
from ._dispatch.state import BELOW_AUTOGRAD, LOCAL, is_inference_mode, modes, set_modes
from ._numbers import is_number
from ._operators import definitions, overload_for
from ._overrides import _disabled_torch_dispatch_impl, check_class, demand_grad, entered, handler_of
from ._strides import contiguous_strides, format_strides
from ._tensor_base import TensorBase, bump, counter, instance_of, numel, version

_NOT_RECORDED = int(AUTOGRAD) << 32
_HIDDEN = int(TORCH_DISPATCH) << 32


# Handlers that an operator has for a mode or a subclass, in the place of its own: by operator and class.
RULES: dict[tuple[str, type], Any] = {}


def takes_over(cls: Any) -> bool:
    """Whether operators on instances of `cls` go to its handler."""
    handler = getattr(cls, "__torch_dispatch__", None)
    return handler is not None and handler is not _disabled_torch_dispatch_impl


# -- modes --------------------------------------------------------------------------------------------------------
def mode_stack() -> list[Any]:
    """The modes this thread is in, the innermost last."""
    found: list[Any] | None = getattr(LOCAL, "dispatch_modes", None)
    if found is None:
        found = []
        LOCAL.dispatch_modes = found
    return found


class TorchDispatchMode:
    """Sees every operator that runs inside `with mode:`, below autograd; override `__torch_dispatch__`."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                f"TorchDispatchMode(): argument '_dispatch_key' must be None, got {_dispatch_key}"
            )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        before = modes()
        mode_stack().append(self)
        entered("dispatch_entered").append(before)
        set_modes((before | TORCH_DISPATCH) & ~_HIDDEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        mode_stack().pop()
        before = entered("dispatch_entered").pop()
        mask = int(TORCH_DISPATCH) | _HIDDEN
        # Other modes may have changed inside; only the bits of this one go back.
        set_modes((modes() & ~mask) | (before & mask))

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        return False


class without_modes:
    """Inside, the innermost `count` modes (all of them by default) are off; those below are asked as before."""

    def __init__(self, count: int = -1) -> None:
        self.count = count

    def __enter__(self) -> list[Any]:
        stack = mode_stack()
        count = len(stack) if self.count < 0 else self.count
        self.taken = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        self.before = modes()
        if not stack:
            set_modes(self.before & ~int(TORCH_DISPATCH))
        return self.taken

    def __exit__(self, *exc: object) -> None:
        mode_stack().extend(self.taken)
        set_modes(self.before)


class DisableTorchDispatch:
    """Inside, neither subclasses nor modes take operators over."""

    def __enter__(self) -> None:
        self.before = modes()
        set_modes(self.before | _HIDDEN)

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


# -- a call with handlers -----------------------------------------------------------------------------------------
def _given(a: Arg, value: Any) -> Any:
    """Lists come to handlers as lists."""
    return list(value) if a.is_list and isinstance(value, tuple) else value


def as_given(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position, those only known by name in a dict, and defaults at the end left out."""
    positional: list[Any] = []
    kwargs: dict[str, Any] = {}
    last = 0
    for a, value in zip(op.schema.args, args):
        usual = (
            a.has_default
            and not isinstance(value, TensorBase)
            and type(value) is type(a.default)
            and value == a.default
        )
        if not a.kwonly:
            positional.append(_given(a, value))
            if not usual:
                last = len(positional)
        elif not usual:
            kwargs[a.name] = _given(a, value)
    return tuple(positional[:last]), kwargs


def _tensors(op: Op, args: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for a, value in zip(op.schema.args, args):
        if a.kind == "Tensor" and value is not None:
            out.extend(value) if isinstance(value, (tuple, list)) else out.append(value)
    return out


def handlers_of(values: list[Any]) -> list[Any]:
    """The values that take operators over, one of each type, subclasses before their bases."""
    found: list[Any] = []
    kinds: list[type] = []
    for v in values:
        kind = type(v)
        if kind is HOOKS.tensor or kind in kinds or not isinstance(v, TensorBase) or not takes_over(kind):
            continue
        at = next((i for i, k in enumerate(kinds) if issubclass(kind, k)), len(kinds))
        kinds.insert(at, kind)
        found.insert(at, v)
    return found


def dispatch(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Serve the key: the innermost mode, then the subclasses among the arguments, else nobody."""
    stack = mode_stack()
    handlers = handlers_of(_tensors(op, args))
    if not stack and not handlers:
        below = keys & ~int(TORCH_DISPATCH)
        return op.below(below, args).run(op, args, below)
    func = overload_for(op, args)
    # By the names of the overload: results of a form with `out=` have PyTorch's there.
    positional, kwargs = as_given(func._op if op.is_out else op, args)
    if op.device_slot >= 0 and not op.slots and not op.is_out:
        func, positional = factories.shown(op, func, args, positional, kwargs)
    written = (
        []
        if not op.mutates
        else [t for a, v in zip(op.schema.args, args) if a.mutates for t in (v if a.is_list else (v,)) if t is not None]
    )
    versions = [version(t) for t in written]
    before = modes()
    # With recording switched off by the user, views made inside remember that; otherwise they are ordinary ones.
    set_modes(before | _NOT_RECORDED | (0 if before & _NOT_RECORDED else BELOW_AUTOGRAD))
    try:
        result = _ask(func, handlers, positional, kwargs)
    finally:
        set_modes(before)
    for t, old in zip(written, versions):
        # A wrapper's handler wrote to what it wraps; whoever saved the wrapper must notice.
        if version(t) == old and not t._keys & INFERENCE:
            bump(t)
    if op.is_view:
        if op.name != "detach":
            _track(op, args, result)
        elif isinstance(result, TensorBase) and takes_over(type(result)) and not result._keys & INFERENCE:
            result._vc = counter(args[0])
    _check_results(op, result)
    if written:
        back = _written_back(op, args)
        if back:
            return back[0] if len(back) == 1 else tuple(back)
    return tuple(result) if isinstance(result, list) else result


def _written_back(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """The arguments that a call which writes gives back, whatever its handler gives; none where it gives others too."""
    found: list[Any] = []
    for r in op.schema.returns:
        given = [v for a, v in zip(op.schema.args, args) if r.mutates and a.mutates and a.alias == r.alias]
        if r.is_list or len(given) != 1 or given[0] is None:
            return []
        found += given
    return found


def _check_results(op: Op, result: Any) -> None:
    """A handler gives what the schema says: tensors (or None for one), a number, a truth value."""
    returns = op.schema.returns
    if len(returns) == 1:
        _check_result(returns[0], result)
        return
    if returns and not isinstance(result, (tuple, list, str)):
        raise RuntimeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
    if returns and len(result) < len(returns):
        raise RuntimeError("Expected Tensor but got None")
    if len(result or ()) > len(returns):
        raise RuntimeError(f"{op.qualified()} has {len(returns)} results, but its handler gave {len(result)}")
    for r, value in zip(returns, result or ()):
        _check_result(r, value)


def _check_result(r: Arg, value: Any) -> None:
    if r.kind == "Tensor" and not r.is_list:
        if value is not None and not isinstance(value, TensorBase):
            raise RuntimeError(f"Unable to cast {value} to Tensor")
    elif r.kind == "Scalar":
        if not is_number(value):
            raise RuntimeError(f"Cannot cast {value} to number")
    elif (
        (r.is_list and not isinstance(value, (tuple, list)))
        or (r.is_list and r.kind == "Tensor" and not all(isinstance(v, TensorBase) for v in value))
        or (r.kind == "bool" and not isinstance(value, bool))
    ):
        raise RuntimeError(
            f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define "
            "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
        )


def _ask(func: Any, handlers: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(type(h) for h in handlers)
    asked: list[str] = []
    stack = mode_stack()
    if stack:
        mode = stack[-1]
        with without_modes(1):
            rule = RULES.get((func._op.name, type(mode)))
            result = (
                handler_of(mode, "__torch_dispatch__")(func, types, args, kwargs)
                if rule is None
                else rule(mode, func, types, args, kwargs)
            )
        if result is not NotImplemented:
            return result
        asked.append(f"  - mode object {mode}")
    for h in handlers:
        cls: Any = type(h)
        rule = RULES.get((func._op.name, cls))
        result = (
            h.__torch_dispatch__(func, types, args, kwargs) if rule is None else rule(cls, func, types, args, kwargs)
        )
        if result is not NotImplemented:
            return result
        asked.append(f"  - tensor subclass {type(h)}")
    shown = "\n".join(asked)
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented:\n\n{shown}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _track(op: Op, args: tuple[Any, ...], result: Any) -> None:
    """A wrapper that a handler made for a view tracks its base, as a plain tensor's view does."""
    src = args[0]
    for t in result if isinstance(result, (tuple, list)) else (result,):
        if (
            isinstance(t, TensorBase)
            and t is not src
            and t._base_field is None
            and takes_over(type(t))
            and not (t._keys | src._keys) & INFERENCE
            and t._grad_fn is None
        ):
            t._base_field = src if src._base_field is None else src._base_field
            t._keys |= VIEW
            t._view_op, t._view_args = op, args
            t._vc = counter(src)
            t._attr_version = t._vc.value


# -- making subclasses --------------------------------------------------------------------------------------------
def make_wrapper(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Any:
    """`Tensor._make_wrapper_subclass`: shape, dtype and device without memory; its handler computes."""
    from ._backends.meta import MetaStorage
    from ._creation import _device_arg
    from ._device import CPU
    from ._dispatch.keys import device_bit
    from ._dtype import get_default_dtype
    from ._layout import strided
    from ._native import alloc_instance
    from ._ops.rules.shape import placed

    check_class(cls)
    if not takes_over(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"_make_wrapper_subclass(): argument 'layout' must be torch.strided, got {layout}")
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    t: Any = alloc_instance(TensorBase, cls)
    t._shape = _numbers("size", 2, size)
    if strides is None:
        t._stride = contiguous_strides(t._shape) if memory_format is None else format_strides(t._shape, memory_format)
    else:
        t._stride = _numbers("strides", 3, strides)
    if len(t._stride) != len(t._shape):
        raise RuntimeError(
            f"dimensionality of sizes ({len(t._shape)}) must match dimensionality of strides ({len(t._stride)})"
        )
    t._offset = 0 if storage_offset is None else int(storage_offset)
    t._dtype = get_default_dtype() if dtype is None else dtype
    t._device = CPU if device is None else placed(_device_arg("_make_wrapper_subclass", device))
    t._keys = device_bit(t._device.type) | HOOKS.class_keys(cls) | (int(INFERENCE) if is_inference_mode() else 0)
    elements = 1 + sum((n - 1) * s for n, s in zip(t._shape, t._stride)) if 0 not in t._shape else 0
    t._storage = MetaStorage((elements + t._offset) * t._dtype.itemsize if storage_size is None else storage_size)
    if requires_grad:
        if not t._dtype.is_inexact:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        demand_grad(t)
    answered(t, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    if _extra_dispatch_keys is not None:
        # Its handler computes, whatever they are; they are there to be asked for.
        t._extra_keys = [key.name for key in _extra_dispatch_keys._keys]
    return t


def answered(
    t: Any, dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False, dispatch_layout: bool = False
) -> None:
    """Let the handler of a new tensor answer for what the arguments of its maker say."""
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        from . import _asked

        asked = _asked.policy(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
        _asked.ask(t, asked)


def _numbers(name: str, position: int, given: Any) -> tuple[int, ...]:
    got = convert(parse(f"_make_wrapper_subclass(int[] {name}) -> Tensor").args[0], given)
    if got is BAD:
        raise refuse("_make_wrapper_subclass", parse(f"f(int[] {name}) -> Tensor").args[0], position, given)
    for n in got:
        if n < 0 and name == "size":
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(got)}")
    return tuple(got)


# -- values on the host -------------------------------------------------------------------------------------------
def _value(t: Any) -> Any:
    if numel(t) == 0:
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported")
    if t._keys & TORCH_DISPATCH:
        if t._storage.ptr == 0:
            raise RuntimeError(
                f"{type(t).__name__} wraps other tensors and has no value of its own: its "
                "__torch_dispatch__ must answer aten._local_scalar_dense.default"
            )
        t = instance_of(HOOKS.tensor, t)
    return t.item()


def _operator(schema: str, kernel: Any) -> Op:
    """An operator that is only there for handlers to see."""
    name = schema.partition("(")[0]
    namespace = definitions("aten")
    op = namespace.get(name)
    if op is None:
        op = Op(f"aten::{name}", schema)
        op.derivative = NO_GRADIENT
        for kind, bit in DEVICE_BITS.items():
            if kind != "meta" or not schema.endswith("Scalar"):
                op.kernels[bit] = FnKernel(kernel)
        namespace[name] = op
    return op


def local_scalar() -> Op:
    """The operator behind `item()`."""
    return _operator("_local_scalar_dense(Tensor self) -> Scalar", _value)


def item(t: Any) -> Any:
    """`item()` of a tensor whose handler is to be asked."""
    return local_scalar().call((t,))


def _same(t: Any) -> Any:
    return t


def _cloned(t: Any) -> Any:
    return t.clone()


def copied_operator() -> Any:
    """What a graph has for a tensor that was made of numbers: a constant, copied."""
    op = _operator("lift_fresh_copy(Tensor self) -> Tensor", _cloned)
    return overload_for(op, ())


def lifted(t: Any) -> Any:
    """A tensor that was made of numbers, as modes want to have it."""
    return _operator("lift_fresh(Tensor(a) self) -> Tensor(a)", _same).call((t,))
