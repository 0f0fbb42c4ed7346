"""The nodes of a graph: calls, inputs and the result, in a doubly linked list.

Invariant: `users` of a node are exactly the nodes whose arguments contain it; assigning `args` or `kwargs` keeps that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import mindtorch_v2 as torch

from .._operators import OpOverload
from ._compatibility import compatibility
from ._names import find_module, pretty_target, qualified_name
from ._names import type_repr as _type_repr
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph
    from .operator_schemas import ArgsKwargsPair

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

base_types: tuple[type, ...] = (
    *(str, int, float, bool, complex, torch.dtype, torch.Tensor, torch.device, torch.memory_format, torch.layout),
    *(OpOverload, torch.SymInt, torch.SymBool, torch.SymFloat),
)
# For annotations: what a node calls, and what its arguments are.
Target = Callable[..., Any] | str
BaseArgumentTypes = Any
Argument = Any
_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])
# As PyTorch calls them here.
_find_module_of_method, _get_qualified_name = find_module, qualified_name
_side_effectful_functions: set[Any] = {torch._assert, operator.setitem}


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: Any) -> Any:
    """Tell `eliminate_dead_code` to keep calls of `fn`."""
    _side_effectful_functions.add(fn)
    return fn


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        shown: str = arg._custom_fx_repr_fn()
        return shown
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(a) for i, a in enumerate(arg) if i < max_list_len)
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{rest}]"
        return f"({items}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _stringify_shape(shape: Any) -> str:
    return f"[{', '.join(str(x) for x in shape)}]"


# -- arguments ------------------------------------------------------------------------------------------------------
def _mapped(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of every leaf; lists and dicts become immutable ones."""
    if isinstance(a, tuple):
        parts = [_mapped(v, fn) for v in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([_mapped(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict({k: _mapped(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(_mapped(a.start, fn), _mapped(a.stop, fn), _mapped(a.step, fn))
    return fn(a)


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of everything in a structure of lists, tuples, dicts and slices."""
    return _mapped(a, fn)


@compatibility(is_backward_compatible=True)
def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`fn` of every node in a structure of lists, tuples, dicts and slices."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return _mapped(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _key_between(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """A key that sorts between those of two neighbours."""
    if len(before) > len(after):
        *prefix, last = before[: len(after) + 1]
        return (*prefix, last + 1)
    if len(before) < len(after):
        *prefix, last = after[: len(before) + 1]
        return (*prefix, last - 1)
    return (*before, 0)


# -- nodes ----------------------------------------------------------------------------------------------------------
ArgumentT = TypeVar("ArgumentT", bound=Any)


@compatibility(is_backward_compatible=True)
class Node:
    """One step of a graph: `op` says of what kind, `target` what is called, `args` and `kwargs` with what."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any | None = None,
    ) -> None:
        wanted = None
        if op == "call_function":
            wanted = None if callable(target) else "Callable"
        elif op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        elif not isinstance(target, str):
            wanted = "str"
        if wanted is not None:
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} "
                f"but a {wanted} is expected"
            )
        fields = self.__dict__
        fields.update(graph=graph, name=name, op=op, target=target, type=return_type, meta={}, users={})
        fields.update(_sort_key=(), _args=(), _kwargs=immutable_dict(), _erased=False, _repr_fn=None, _input_nodes={})
        fields.update(_prev=self, _next=self)
        self._update_args_kwargs(args, kwargs)

    if TYPE_CHECKING:
        graph: Graph
        name: str
        op: str
        target: Any
        type: Any
        meta: dict[str, Any]
        users: dict[Node, None]
        _input_nodes: dict[Node, None]
        _repr_fn: Any
        _sort_key: tuple[int, ...]
        _erased: bool
        _prev: Node
        _next: Node
        _args: tuple[Any, ...]
        _kwargs: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if name == "name" and "name" in fields:
            for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                for user in self.users:
                    hook(old=self, new=value, user=user)
        table = self.graph._find_nodes_lookup_table if name in ("op", "target") and "graph" in fields else None
        moved = table is not None and self in table
        if table is not None and moved:
            table.remove(self)
        object.__setattr__(self, name, value)
        if table is not None and moved:
            table.insert(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self._sort_key < other._sort_key

    def __ge__(self, other: Node) -> bool:
        return self is other or self._sort_key > other._sort_key

    # -- the list ---------------------------------------------------------------------------------------------------
    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _prepend(self, x: Node) -> None:
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        x._sort_key = _key_between(before._sort_key, self._sort_key)

    def prepend(self, x: Node) -> None:
        """Put `x`, a node of the same graph, in front of this one."""
        self._prepend(x)

    def append(self, x: Node) -> None:
        """Put `x`, a node of the same graph, behind this one."""
        self._next._prepend(x)

    # -- arguments --------------------------------------------------------------------------------------------------
    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        inputs: dict[Node, None] = {}

        def seen(x: Any) -> Any:
            if isinstance(x, Node):
                inputs[x] = None
            return x

        fields = self.__dict__
        fields["_args"], fields["_kwargs"] = _mapped(args, seen), _mapped(kwargs, seen)
        for old in self._input_nodes:
            if old not in inputs:
                old.users.pop(self, None)
        for new in inputs:
            new.users.setdefault(self)
        fields["_input_nodes"] = inputs

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; may be assigned."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name; may be assigned."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument in front of the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set the argument with name `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old: Node, new: Node) -> None:
        def swapped(n: Node) -> Node:
            return new if n is old else n

        self._update_args_kwargs(map_arg(self._args, swapped), map_arg(self._kwargs, swapped))

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever `old_input` is an argument."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Let every user take `replace_with` instead of this node; gives the users that were changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None) or ()
        changed = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            for hook in hooks:
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    # -- questions --------------------------------------------------------------------------------------------------
    @property
    def stack_trace(self) -> str | None:
        """Where the node was recorded, if its tracer was told to note that."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        if self._repr_fn:
            shown: str = self._repr_fn(self)
            return shown
        return self.name

    _pretty_print_target = staticmethod(pretty_target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """A line that describes the node, as printed graphs have it."""
        kind = f"{_type_repr(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}{self.target}: {_type_repr(self.type)}" if self.type else "")
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={pretty_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value", None)))
        if include_tensor_metadata and isinstance(value, torch.Tensor):
            from ..utils._dtype_abbrs import dtype_abbrs

            kind = (
                f'Tensor "{dtype_abbrs[value.dtype]}{_stringify_shape(value.shape)}'
                f'{_stringify_shape(value.stride())}{value.device}"'
            )
            head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        return (
            f"{head}[target={pretty_target(self.target)}]("
            f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether dropping the node when nobody uses it would change what the graph does."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False))
        if self.op == "call_function":
            from ._effects import is_impure

            return is_impure(self.target, impure_random)
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments, completed with defaults, by the signature of what is called; None where that is unknown."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        name = self.graph._graph_namespace.create_name(candidate, None)
        self.name = name
        self.graph._graph_namespace._rename_object(self, name)
