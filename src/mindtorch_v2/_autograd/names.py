"""`torch._C._functions` and the names of `torch._C._autograd` about saved values.

Invariant: a class of nodes is the one that the nodes themselves have.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._tensor_base import TensorBase
from . import saved_hooks
from .record import NAMES, Formulas, camel

SavedTensor = saved_hooks.SavedTensorHandle
_push_saved_tensors_default_hooks = saved_hooks.push_hooks
_pop_saved_tensors_default_hooks = saved_hooks.pop_hooks
_saved_tensors_hooks_disable = saved_hooks.disable_hooks
_saved_tensors_hooks_get_disabled_error_message = saved_hooks.disabled_message


def _saved_tensors_hooks_enable() -> None:
    """Allow hooks in this thread again."""
    saved_hooks.disable_hooks(None)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether this thread may use hooks for saved values."""
    return saved_hooks.disabled_message() is None


def __getattr__(name: str) -> Any:
    if name == "_unsafe_set_version_counter":
        from ..autograd.grad_mode import _unsafe_set_version_counter

        return _unsafe_set_version_counter
    from .._profiler import names  # PyTorch keeps the profiler's names here as well

    return getattr(names, name)


# -- torch._C._functions ------------------------------------------------------------------------------------------
def _checked(args: tuple[Any, ...], count: int) -> None:
    for i, a in enumerate(args):
        if a is not None and not isinstance(a, TensorBase):
            raise TypeError(f"argument {i} is not a Variable")
    if len(args) != count:
        raise TypeError(f"expected {count} arguments, got {len(args)} instead")


def _functions() -> tuple[Any, Any]:
    """The two Functions behind UndefinedGrad and DelayedError, made when first needed."""
    from ..autograd.function import Function

    class UndefinedGrad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> None:
            return None

    class Error(Function):
        @staticmethod
        def forward(ctx: Any, text: str, *xs: Any) -> Any:
            ctx.text = text
            return tuple(None if x is None else x.data for x in xs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> None:
            raise RuntimeError(ctx.text)

    Error._backward_cls.__name__ = Error._backward_cls.__qualname__ = "Error"
    return UndefinedGrad, Error


class _Made:
    functions: tuple[Any, Any] | None = None

    @classmethod
    def get(cls) -> tuple[Any, Any]:
        if cls.functions is None:
            cls.functions = _functions()
        return cls.functions


class UndefinedGrad:
    """A copy of a tensor to which no gradient flows: what lies before it sees an undefined one."""

    def __init__(self, *args: Any) -> None:
        if args:
            raise RuntimeError(f"Requires zero arguments, got {len(args)}")

    def __call__(self, *args: Any) -> Any:
        _checked(args, 1)
        return None if args[0] is None else _Made.get()[0].apply(args[0])


class DelayedError:
    """Tensors as they are, whose backward pass fails with a message."""

    def __init__(self, *args: Any) -> None:
        if len(args) != 2:
            raise RuntimeError(f"Requires two arguments, got {len(args)}")
        self._text, self._count = args

    def __call__(self, *args: Any) -> Any:
        _checked(args, self._count)
        found = _Made.get()[1].apply(self._text, *args)
        node = next((x._grad_fn for x in found if x is not None), None)
        if node is not None:
            for i, x in enumerate(args):
                if x is None:  # an edge to nowhere, where a Function has none
                    node._next = (*node._next[:i], None, *node._next[i:])
                    node._nrs.insert(i, 0)
        return found if self._count > 1 else found[0]


class NodeClasses:
    """`torch._C._functions`: the classes of nodes by name."""

    __name__ = "torch._C._functions"
    UndefinedGrad = UndefinedGrad
    DelayedError = DelayedError

    def __getattr__(self, name: str) -> Any:
        if name == "Error":
            return _Made.get()[1]._backward_cls
        if name in NAMES.classes:
            return NAMES.classes[name]
        if name in self._of_rows(name):
            return NAMES.get(name)
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def _of_rows(self, name: str) -> set[str]:
        """Names of nodes that rows make."""
        registry.find(name)  # no row has a node's name, so that every table is looked through
        found = set()
        for op in registry.ops():
            made = op.derivative
            if isinstance(made, Formulas):
                numbered = made.node_name if isinstance(made.node_name, str) else None
                found.add(numbered or f"{camel(op.title())}Backward0")
        return found

    def __repr__(self) -> str:
        return f"<module '{self.__name__}'>"


FUNCTIONS = NodeClasses()
