"""`torch.autograd.Function`: operators with a derivative written by the user.

Invariant: `ctx` is the node of the graph; `type(y.grad_fn).__name__` is the Function's name and `Backward`. Running and
recording are in `_autograd.function_node`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._autograd.function_node import MATERIALIZE, FunctionNode, run_function, saved_tensors
from .._dispatch.state import STATE, is_grad_enabled, swap_grad
from .._mypyc import hide_setup
from .._tensor_base import TensorBase, requires_grad

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What `forward` and `setup_context` may tell autograd."""

    # Fields of FunctionNode, which every ctx is.
    to_save: Any
    saved_for_forward: Any
    dirty_tensors: Any
    non_differentiable: Any
    materialize_grads: bool

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or others; None is allowed) for `ctx.saved_tensors` in backward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        for t in tensors:
            if t is not None and not isinstance(t, TensorBase):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Name the inputs that forward changes in place; each must also be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Name the outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for outputs that nobody used."""
        if not isinstance(value, bool):
            raise TypeError(MATERIALIZE)
        self.materialize_grads = value


hide_setup(FunctionNode)

_ONCE = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
    "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
)


class BackwardCFunction(FunctionCtx, FunctionNode):
    """Base of the node class that belongs to each Function."""

    _forward_cls: Any

    _given_away = False

    # PyTorch's ctx has an attribute where other nodes have a method.
    @property
    def saved_tensors(self) -> Any:
        """What was saved for backward; a Function may ask that it be given away once and not kept."""
        if not self._forward_cls.clear_saved_tensors_on_access:
            return saved_tensors(self)
        if self._given_away:
            raise RuntimeError(_ONCE)
        got = saved_tensors(self)
        self._saved, self._given_away = None, True
        return got

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        got: tuple[Any, ...] = self.saved_tensors
        return got

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, before it is unpacked."""
        from .._autograd.node import FREED
        from .._autograd.saved_hooks import SavedTensorHandle

        if self._freed:
            raise RuntimeError(FREED)
        return tuple(SavedTensorHandle(self, i) for i in range(len(self._saved or ())))

    def apply(self, *args: Any) -> Any:
        """Run the user's backward."""
        backward_fn = self._forward_cls.backward
        vjp_fn = self._forward_cls.vjp
        if vjp_fn is not Function.vjp:
            if backward_fn is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                    "implement one of them."
                )
            backward_fn = vjp_fn
        return backward_fn(self, *args)


class FunctionMeta(type):
    """Gives every Function its node class."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(
            name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        )
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Derive from it, write static `forward` and `backward`, and call `apply`."""

    _backward_cls: Any
    generate_vmap_rule = False
    # Whether `ctx.saved_tensors` can be read once only, and frees what was saved.
    clear_saved_tensors_on_access = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: `forward(ctx, *args)`, or `forward(*args)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep on ctx what backward needs, apart from forward."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient, or None, for each argument of forward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    # An alias of backward.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return a tangent, or None, for each output of forward, from one for each of its arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The rule of vmap: `info` has the size of the mapped dimension, `in_dims` says where it is in each argument.
        Returns the results, and where it is in each of them."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function and record it."""
        if STATE.transforms:
            from .._batching.users import NATURAL, function_applied, function_lifted

            found = function_applied(cls, Function, _bind(cls.forward, args, kwargs) if kwargs else args)
            if found is not NATURAL:
                return found
            args = function_lifted(args)
        setup = cls.setup_context
        if setup is not Function.setup_context:
            return run_function(cls._backward_cls, cls.forward, setup, _bind(cls.forward, args, kwargs))
        if kwargs:
            args = _by_position(cls.forward, args, kwargs)
        return run_function(cls._backward_cls, cls.forward, None, args)


def _bind(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments with forward's defaults filled in."""
    # Reading signatures takes a large module, which nobody else at import needs.
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _by_position(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments of a forward that takes ctx, those given by name in their places."""
    import inspect

    parameters = list(inspect.signature(forward).parameters.values())[1:]
    places = {p.name: i for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_OR_KEYWORD}
    for name in kwargs:
        if name not in places:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if places[name] < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    out = list(args)
    for p in parameters[len(args) : max(places[name] for name in kwargs) + 1]:
        if p.name not in kwargs and p.default is p.empty:
            raise TypeError(f"forward() missing 1 required positional argument: '{p.name}'")
        out.append(kwargs.get(p.name, p.default))
    return tuple(out)


class InplaceFunction(Function):
    """Kept for old code: remembers whether it was asked to work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """The oldest kind of Function, over nested inputs. As in PyTorch its name is left, and nothing that could run it:
    calling one raises, `apply` of its instances is gone."""

    def __call__(self, *input: Any) -> Any:
        self._nested_input = input
        parent: Any = super()
        return parent._do_forward(*input)

    def forward_extended(self, *input: Any) -> None:
        """What a subclass computed."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """What a subclass gave as gradients."""
        raise NotImplementedError


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function that applies `fn` to what fulfils a condition, in lists, tuples and dicts of such things."""

    def _map(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            mapped = [_map(x) for x in obj]
            return type(obj)(*mapped) if hasattr(obj, "_fields") else type(obj)(mapped)
        if isinstance(obj, dict):
            return {name: _map(x) for name, x in obj.items()}
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {type(obj).__name__}"
            + (f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else "")
        )

    return _map


_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that cannot itself be differentiated; doing so raises instead of giving wrong values."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        recording = is_grad_enabled()
        swap_grad(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            swap_grad(recording)
        if not recording or not any(isinstance(a, TensorBase) and requires_grad(a) for a in args):
            return outputs
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        wanted = [None if o is None else o.detach().requires_grad_() for o in outputs]
        from .._autograd.names import DelayedError

        return DelayedError(_TWICE, len(wanted))(*wanted)

    return wrapper
