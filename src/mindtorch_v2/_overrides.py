"""`__torch_function__`: tensor subclasses, tensor-like objects and modes that take over calls of operators.

Invariant: a call reaches a handler at most once. While a subclass's handler runs through the default implementation,
calls made inside see plain dispatch; while a mode's handler runs, that mode is off.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from . import _native
from ._core_operators import CORE, HOOKS
from ._dispatch.binding import bind
from ._dispatch.keys import AUTOGRAD, PYTHON, TORCH_DISPATCH
from ._dispatch.op import Op, Overrider, plain_name
from ._dispatch.registry import get
from ._dispatch.state import FUNCTION_MODE, LOCAL, NO_TORCH_FUNCTION, STATE, modes, set_modes
from ._tensor_base import TensorBase, instance_of
from ._unbound import SHOWN
from ._warn import warn_once

_F = TypeVar("_F", bound=Callable[..., Any])
_ROOT: Any = sys.modules[__package__]
_EXCLUDED = int(PYTHON) << 32
_BELOW = int(PYTHON | AUTOGRAD | TORCH_DISPATCH) << 32
# The bits that a mode switches.
_SWITCHED = int(PYTHON) | _EXCLUDED | int(FUNCTION_MODE)
# Between a user's call and its handler; compiled, these leave no frames.
_OURS = tuple(f"{__package__}.{name}" for name in ("_dispatch", "_tensor_base", "_overrides"))


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of a subclass that behaves as a plain tensor (Parameter is one)."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _disabled_torch_dispatch_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_dispatch__` of a tensor that takes nothing over: the operator runs below handlers and autograd."""
    old = modes()
    set_modes(old | _BELOW)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        set_modes(old)


# What stands in a class that calls are not shown to: the same through the class and through an instance.
DISABLED: Any = staticmethod(_disabled_torch_function_impl)


def below_only(cls: Any) -> bool:
    """Whether a class has a handler for operators and only the inherited one for functions, which it then loses."""
    return (
        cls.__torch_dispatch__ is not _disabled_torch_dispatch_impl
        and getattr(cls.__torch_function__, "__func__", None) is torch_function
    )


# -- instances of subclasses --------------------------------------------------------------------------------------
def instance_keys(cls: Any) -> int:
    """The dispatch bits that instances of `cls` carry beyond a plain tensor's: one for each kind of handler it has."""
    if cls is HOOKS.tensor:
        return 0
    keys = 0 if getattr(cls, "__torch_function__", None) is _disabled_torch_function_impl else int(PYTHON)
    if getattr(cls, "__torch_dispatch__", None) is not _disabled_torch_dispatch_impl:
        keys |= int(TORCH_DISPATCH)
    return keys


def check_class(cls: Any) -> None:
    """Whether tensors can be of this class."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, TensorBase):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )


def as_subclass(self: Any, cls: Any) -> Any:
    """`Tensor.as_subclass`: the same tensor, as a recorded view of class `cls`."""
    check_class(cls)
    return _viewed_as(self, cls)


def _viewed_as(t: Any, cls: Any) -> Any:
    new = shared(t, CORE.alias)
    return claimed(new, cls) if answers(t) else _retyped(new, cls)


def answers(t: Any) -> bool:
    """Whether operators on `t` go to the handler of its class."""
    return bool(t._keys & TORCH_DISPATCH) and not modes() >> 32 & TORCH_DISPATCH


def shared(t: Any, op: Any) -> Any:
    """The memory of `t` once more, by `op`; handlers of functions are not asked."""
    old = modes()
    set_modes(old | _EXCLUDED)
    try:
        return op.call((t,))
    finally:
        set_modes(old)


def claimed(t: Any, cls: Any) -> Any:
    """A tensor that a handler made where one of class `cls` is wanted: it has its class already."""
    if isinstance(t, cls):
        return t
    raise RuntimeError(
        f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python "
        f"object of type {type(t).__name__} which is not a subclass of the requested type"
    )


def demand_grad(t: Any) -> None:
    """`t.requires_grad = True` of a tensor that is just being made: its handler knows nothing of it yet."""
    old = modes()
    set_modes(old | _EXCLUDED)
    try:
        t.requires_grad = True
    finally:
        set_modes(old)


def make_subclass(cls: Any, data: TensorBase, require_grad: bool = False, **asked: Any) -> Any:
    """`Tensor._make_subclass`: the memory of `data` as a leaf of class `cls`."""
    check_class(cls)
    if not isinstance(data, TensorBase):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {plain_name(data)}")
    t: Any = claimed(shared(data, get("detach")), cls) if answers(data) else instance_of(cls, data)
    if require_grad:
        if not t._dtype.is_inexact:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        demand_grad(t)
    if asked:
        from ._torch_dispatch import answered

        answered(t, **asked)
    return t


def _retyped(t: Any, cls: Any) -> Any:
    """A tensor that nobody else holds, as an instance of `cls`."""
    if cls is type(t):
        return t
    new: Any = instance_of(cls, t)
    new._output_nr, new._cmeta, new._attr_version, new._grad_fn = t._output_nr, t._cmeta, t._attr_version, t._grad_fn
    new._base_field, new._view_op, new._view_args = t._base_field, t._view_op, t._view_args
    new._keys |= t._keys
    return new


def torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`Tensor.__torch_function__`: run the call plainly and give the results the subclass."""
    for kind in types:
        if not issubclass(cls, kind):
            return NotImplemented
    # As `DisableTorchFunctionSubclass`.
    before = modes()
    set_modes(before | NO_TORCH_FUNCTION | (0 if _stack() else _EXCLUDED))
    try:
        result = func(*args, **kwargs) if kwargs else func(*args)
        return result if _as_it_is(func) else _converted(result, cls)
    finally:
        set_modes(before)


@functools.cache
def _unwrapped() -> frozenset[Any]:
    return frozenset((HOOKS.tensor._base.__get__, HOOKS.tensor.grad.__get__))


def _as_it_is(func: Any) -> bool:
    """Whether a result keeps its class: gradients and bases are tensors of somebody else's making."""
    return getattr(func, "__name__", "") == "__get__" and func in _unwrapped()


def _converted(result: Any, cls: Any) -> Any:
    if cls is HOOKS.tensor:
        return result
    if isinstance(result, TensorBase):
        return result if isinstance(result, cls) else _viewed_as(result, cls)
    if isinstance(result, (tuple, list)):
        parts = [_converted(r, cls) for r in result]
        # Named results keep their type; they are built from one sequence, as plain tuples and lists are.
        return type(result)(parts) if not hasattr(result, "_make") else type(result)(*parts)
    return result


# -- a call with overrides ----------------------------------------------------------------------------------------
def _tensors(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """What could override the call: the values in the places of tensors."""
    out: list[Any] = []
    for i, a in enumerate(op.schema.args):
        if a.kind != "Tensor" or i >= len(args):
            continue
        value = args[i]
        if isinstance(value, (tuple, list)):
            out.extend(value)
        elif value is not None:
            out.append(value)
    return out


def overriding(values: Iterable[Any], plain: bool = False) -> list[Any]:
    """The values with a handler, one of each type, subclasses before their bases, otherwise from left to right.
    `plain`: a plain tensor counts, whose handler runs the call if everybody is one of its kind."""
    found: list[Any] = []
    kinds: list[type] = []
    for v in values:
        kind = type(v)
        if kind in kinds or (kind is HOOKS.tensor and not plain) or not hasattr(kind, "__torch_function__"):
            continue
        if kind.__torch_function__ is _disabled_torch_function_impl:
            continue
        at = len(kinds)
        for i, k in enumerate(kinds):
            if issubclass(kind, k):
                at = i
                break
        kinds.insert(at, kind)
        found.insert(at, v)
    return found


class OpFunction:
    """An operator without a public function, as something a handler can call."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.__name__ = self.__qualname__ = op.title()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = bind(self.op, args, kwargs, False)
        if bound is None:
            raise TypeError(f"{self.op.name}(): arguments do not fit {self.op.schema_text}")
        return self.op.call(bound)


def _public(op: Op) -> tuple[Any, dict[str, Any]]:
    """What a user called: `torch.add`, `Tensor.add`, or, with Python's own syntax, the method; and what is known of the
    call there, if it was a public function."""
    name = op.title()
    function, method = getattr(_ROOT, name, None), getattr(HOOKS.tensor, name, None)
    if not callable(function):
        function = op.public  # of another module, as `torch.linalg.solve`
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    code = None if frame is None else frame.f_code
    called = None
    if function is not None and _code(function) is code:
        called = function
    elif method is not None and _code(method) is code:
        called = method
    known: dict[str, Any] = frame.f_locals if called is not None else {}
    if op.is_out or op.row is None or not op.row.method or not callable(method):
        return function if callable(function) else OpFunction(op), known
    if not op.row.function or not callable(function):
        return method, known
    if called is not None:
        return called, known
    # Not by the module's name, which may be PyTorch's (`_torch_name`).
    ours = frame is not None and f"{frame.f_globals.get('__package__')}.".startswith(f"{__package__}.")
    return function if ours else method, known


def _code(fn: Any) -> Any:
    """What runs in Python when a public function is called and a handler looks on."""
    return getattr(getattr(fn, "written", fn), "__code__", None)


def _as_given(op: Op, args: tuple[Any, ...], known: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as a user has written them, or would have: keyword-only ones by name, defaults left out."""
    if "kwargs" in known:  # a function of several signatures keeps what it was given
        return (*((known["self"],) if "self" in known else ()), *known["args"]), dict(known["kwargs"])
    positional: list[Any] = []
    kwargs: dict[str, Any] = {}
    last = 0
    outs: list[Any] = []
    for i, (a, value) in enumerate(zip(op.schema.args, args)):
        if known:
            value = known.get(f"_given{i}", value)
        if op.is_out and a.mutates:
            outs.append(value)
        elif a.kwonly:
            if not (a.has_default and _same(value, a.default)):
                kwargs[a.name] = value
        else:
            positional.append(value)
            if not (a.has_default and _same(value, a.default)):
                last = len(positional)
        if known and f"_spread{i}" in known:
            positional[-1:] = known[f"_spread{i}"]
            last = len(positional)
    if outs:
        kwargs["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    return tuple(positional[:last]), kwargs


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, TensorBase) and value == default)


def dispatch(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Serve the Python key: the innermost mode, else the subclasses among the arguments, else nobody."""
    stack = _stack()
    with_handlers = [] if modes() & NO_TORCH_FUNCTION else overriding(_tensors(op, args))
    if not stack and not with_handlers or _skipped():
        below = keys & ~int(PYTHON)
        return op.below(below, args).run(op, args, below)
    func, known = _public(op)
    positional, kwargs = _as_given(op, args, known)
    return _ask(func, with_handlers, positional, kwargs)


def _ask(func: Any, handlers: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return _answer(func, handlers, args, kwargs)
    except Exception as error:
        # Nobody is asked a second time because of a handler's own error.
        error._torch_function_asked = True  # type: ignore[attr-defined]
        raise


def handler_of(mode: Any, name: str) -> Any:
    """A mode's handler, which belongs to the mode and not to its class."""
    handler = getattr(mode, name)
    if getattr(handler, "__self__", mode) is not mode:
        raise RuntimeError(
            f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
        )
    return handler


_PLAIN_METHOD = (
    "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define "
    "it as a classmethod."
)


def _answer(func: Any, handlers: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(type(h) for h in handlers)
    stack = _stack()
    if stack:
        mode = stack[-1]
        with _PoppedMode():
            result = handler_of(mode, "__torch_function__")(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for h in handlers:
        handler = h.__torch_function__
        if getattr(handler, "__self__", None) is h:
            warn_once(_PLAIN_METHOD)
        result = handler(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = "\n".join(f"  - tensor subclass {t}" for t in types)
    if stack:
        names = f"  - mode object {stack[-1]}\n" + names
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{getattr(func, '__name__', func)}'; all __torch_function__ handlers "
        f"returned NotImplemented:\n\n{names}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


# -- modes --------------------------------------------------------------------------------------------------------
def _stack() -> list[TorchFunctionMode]:
    found: list[TorchFunctionMode] | None = getattr(LOCAL, "function_modes", None)
    if found is None:
        found = []
        LOCAL.function_modes = found
    return found


def entered(kind: str) -> list[int]:
    """What this thread's modes found when they were entered, the innermost last."""
    found: list[int] | None = getattr(LOCAL, kind, None)
    if found is None:
        found = []
        setattr(LOCAL, kind, found)
    return found


class TorchFunctionMode:
    """Sees every call of an operator made inside `with mode:`; override `__torch_function__`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        from ._watched import enter_mode

        enter_mode()
        _stack().append(self)
        before = modes()
        entered("function_entered").append(before)
        set_modes((before | FUNCTION_MODE | PYTHON) & ~_EXCLUDED)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        from ._watched import exit_mode

        exit_mode()
        _stack().pop()
        before = entered("function_entered").pop()
        # Other modes may have changed inside; only the bits of this one go back.
        set_modes((modes() & ~_SWITCHED) | (before & _SWITCHED))

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)


class _PoppedMode:
    """Takes the innermost mode off while its handler runs."""

    def __enter__(self) -> None:
        stack = _stack()
        self.mode = stack.pop()
        self.before = modes()
        if not stack:
            set_modes(self.before & ~(FUNCTION_MODE | PYTHON))

    def __exit__(self, *exc: object) -> None:
        _stack().append(self.mode)
        set_modes((modes() & ~_SWITCHED) | (self.before & _SWITCHED))


class DisableTorchFunctionSubclass:
    """Inside, subclasses do not override calls; modes still do."""

    def __enter__(self) -> None:
        self.before = modes()
        set_modes(self.before | NO_TORCH_FUNCTION | (0 if _stack() else _EXCLUDED))

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


class DisableTorchFunction:
    """Inside, neither subclasses nor modes override calls."""

    def __enter__(self) -> None:
        self.before = modes()
        set_modes(self.before | NO_TORCH_FUNCTION | _EXCLUDED)

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


# -- for functions written in Python ------------------------------------------------------------------------------
def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a call with these arguments is to be handed to an override."""
    if type(relevant_args) is not tuple:
        try:
            relevant_args = tuple(relevant_args)  # an absurd length is refused here, not walked
        except TypeError:
            raise TypeError("expected a sequence") from None
    if STATE.active == 0:
        plain = HOOKS.tensor
        for v in relevant_args:
            if type(v) is not plain and overriding((v,)):
                return not _skipped()
        return False
    m = modes()
    if m & _EXCLUDED:
        return False
    found = bool(_stack()) or (not m & NO_TORCH_FUNCTION and _any_overrides(relevant_args))
    return found and not _skipped()


def _any_overrides(values: tuple[Any, ...]) -> bool:
    plain = HOOKS.tensor
    for v in values:
        if type(v) is not plain and overriding((v,)):
            return True
    return False


def _skipped() -> bool:
    """Whether nobody is to be asked this once (`redispatch_function`)."""
    if getattr(LOCAL, "skip_one", False):
        LOCAL.skip_one = False
        return True
    return False


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function without asking its handlers; what it calls asks them."""
    before = getattr(LOCAL, "skip_one", False)
    LOCAL.skip_one = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        LOCAL.skip_one = before


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Hand a call to the overrides among `relevant_args`. Plain tensors are among the types, as in PyTorch."""
    handlers = [] if modes() & NO_TORCH_FUNCTION else overriding(relevant_args, True)
    return _ask(public_api, handlers, args, kwargs)


def given_values(args: Iterable[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """What could override a call: its arguments, and the elements of those that are lists or tuples."""
    out: list[Any] = []
    for v in (*args, *kwargs.values()):
        if isinstance(v, (list, tuple)):
            out.extend(v)
        else:
            out.append(v)
    return out


def overridable(fn: _F, direct: Callable[[], Any] | None = None) -> _F:
    """A public function written in Python: handlers among its arguments, and modes, see it as a whole. `direct()` says,
    if anything, which calls come to those of one operator."""

    def asking(*args: Any, **kwargs: Any) -> Any:
        values = given_values(args, kwargs)
        if has_torch_function(values):
            relevant = [v for v in values if hasattr(type(v), "__torch_function__")]
            return handle_torch_function(public, relevant, *args, **kwargs)
        return fn(*args, **kwargs)

    public: Any = _native.Overridable(fn, asking) if direct is None else _native.Overridable(fn, asking, 0, direct)
    functools.update_wrapper(public, fn, SHOWN)
    return cast(_F, public)


# -- calls that were refused --------------------------------------------------------------------------------------
def can_answer(error: BaseException, values: Iterable[Any]) -> bool:
    """Whether a call that failed has an argument that is no tensor but has a handler which was not asked yet.

    Binding knows tensors only, and looks for others when it is about to refuse them: a call that succeeds pays nothing.
    """
    if modes() & (_EXCLUDED | NO_TORCH_FUNCTION) or getattr(error, "_torch_function_asked", False):
        return False
    return any(not isinstance(v, TensorBase) and hasattr(type(v), "__torch_function__") for v in values)


def ask(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hand a call of a function that is made from a schema to the overrides among its arguments."""
    return _ask(fn, overriding(given_values(args, kwargs)), args, kwargs)


# Python's operators that PyTorch has written in Python: there a plain tensor counts among the types.
_IN_PYTHON = frozenset(
    """__rsub__ __rdiv__ __rfloordiv__ __rmod__ __rpow__ __rmatmul__ __rlshift__ __rrshift__ __floordiv__
    pow pow_""".split()
)


def _operator(name: str, t: Any, other: Any) -> Any:
    if modes() & (_EXCLUDED | NO_TORCH_FUNCTION):
        return NotImplemented
    fn = getattr(HOOKS.tensor, name)
    return _ask(fn, overriding((t, other), name in _IN_PYTHON), (t, other), {})


def _getitem(self: Any, key: Any) -> Any:
    """`t[key]` of a subclass: its handler sees the whole, not the views and copies it is made of."""
    values = (self, *given_values((key,), {}))
    if has_torch_function(values):
        return _ask(HOOKS.tensor.__getitem__, _handlers(values), (self, key), {})
    return HOOKS.getitem(self, key)


def _setitem(self: Any, key: Any, value: Any) -> None:
    values = (self, value, *given_values((key,), {}))
    if has_torch_function(values):
        _ask(HOOKS.tensor.__setitem__, _handlers(values), (self, key, value), {})
    else:
        HOOKS.setitem(self, key, value)


def _factory(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a mode makes of `torch.<name>(...)`; NotImplemented if nobody is asked. Data has no handlers."""
    if not has_torch_function(()):
        return NotImplemented
    import mindtorch_v2 as torch

    return _ask(getattr(torch, name), [], args, {k: v for k, v in kwargs.items() if v is not None})


def _handlers(values: Iterable[Any]) -> list[Any]:
    return [] if modes() & NO_TORCH_FUNCTION else overriding(values)


def _can_answer_key(error: BaseException, given: tuple[Any, ...]) -> bool:
    return can_answer(error, given_values(given, {}))


def _lifted(t: Any) -> Any:
    from ._torch_dispatch import lifted

    return lifted(t)


HOOKS.lifted = _lifted
HOOKS.can_answer_key = _can_answer_key
HOOKS.asked_operator = _operator
HOOKS.asked_factory = _factory
HOOKS.asked_getitem = _getitem
HOOKS.asked_setitem = _setitem


def is_tensor_like(inp: Any) -> bool:
    return isinstance(inp, TensorBase) or hasattr(inp, "__torch_function__")


def _below_autograd(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """`__torch_dispatch__`, whose module is imported when the first handler is met."""
    from ._torch_dispatch import dispatch as served

    return served(op, args, keys)


OVERRIDER = Overrider(dispatch)
TORCH_DISPATCHER = Overrider(_below_autograd)
