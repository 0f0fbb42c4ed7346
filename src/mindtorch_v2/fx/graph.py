"""Graphs of nodes: a program as data, made by tracing or by hand, from which Python code is generated.

Invariant: nodes stand in an order in which they can run as long as whoever edits keeps it; `lint` checks that.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import mindtorch_v2 as torch

from ._codegen import CodeGen, PythonCode, TransformCodeFunc
from ._codegen import _BoxedCodeGen as _BoxedCodeGen
from ._codegen import _format_target as _format_target
from ._codegen import _override_sym_repr as _override_sym_repr
from ._codegen import _parse_stack_trace as _parse_stack_trace
from ._codegen import _PyTreeCodeGen as _PyTreeCodeGen
from ._codegen import _PyTreeInfo as _PyTreeInfo
from ._compatibility import compatibility
from ._names import is_from_torch, qualified_name, target_name, type_repr
from ._namespace import _custom_builtins as _custom_builtins
from ._namespace import _CustomBuiltin as _CustomBuiltin
from ._namespace import _illegal_names as _illegal_names
from ._namespace import _is_magic, _Namespace, _snake_case
from ._namespace import _register_custom_builtin as _register_custom_builtin
from .immutable_collections import immutable_dict
from .node import Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# As PyTorch calls them here.
_is_from_torch, _get_qualified_name, _type_repr = is_from_torch, qualified_name, type_repr
_legal_ops = dict.fromkeys(["call_function", "call_method", "get_attr", "call_module", "placeholder", "output"])


class _InsertPoint:
    """Where nodes are put until the block ends."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert = graph._insert
        graph._insert = new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph; nodes may be added and erased while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def _walk(self, backwards: bool) -> Iterator[Node]:
        root = self.graph._root
        current = root._prev if backwards else root._next
        while current is not root:
            if not current._erased:
                yield current
            current = current._prev if backwards else current._next

    def __iter__(self) -> Iterator[Node]:
        return self._walk(self.direction == "_prev")

    def __reversed__(self) -> Iterator[Node]:
        return self._walk(self.direction == "_next")


class _FindNodesLookupTable:
    """Nodes by what they call."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, Any], dict[Node, None]] = {}

    def _of(self, node: Node) -> dict[Node, None]:
        key = (node.op, node.target if node.op == "call_function" else None)
        return self.table.setdefault(key, {})

    def __contains__(self, node: Node) -> bool:
        return node in self._of(node)

    def insert(self, node: Node) -> None:
        self._of(node)[node] = None

    def remove(self, node: Node) -> None:
        self._of(node).pop(node)

    def find_nodes(self, *, op: str, target: Target | None = None) -> list[Node]:
        if op == "call_function":
            if target is None:
                raise AssertionError("target must not be None for call_function op")
            return list(self.table.get((op, target), ()))
        found = self.table.get((op, None), {})
        return [n for n in found if target is None or n.target == target]


@compatibility(is_backward_compatible=True)
class Graph:
    """A program: nodes in order, each a call, an input or the result."""

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._find_nodes_lookup_table = _FindNodesLookupTable()
        self._owning_module = owning_module
        self._root: Node = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; `reversed` walks them backwards."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node that returns the result."""
        last = next(iter(reversed(self.nodes)))
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Nodes of a kind that call `target`, which must be given for functions."""
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    # -- copying ----------------------------------------------------------------------------------------------------
    def graph_copy(self, g: Graph, val_map: dict[Any, Any], return_output_node: bool = False) -> Any:
        """Copy the nodes of `g` that `val_map` does not have yet, and note copies there; gives the copied result."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = memo if memo else {}
        g = Graph(tracer_cls=self._tracer_cls)
        copied = g.graph_copy(self, val_map=memo, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if copied is not None:
            value, old = copied
            new = g.output(value, type_expr=getattr(old, "type", None))
            new.meta = copy.copy(old.meta)
        return g

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node of another graph; `arg_transform` gives what stands for its arguments here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"Expected kwargs to be dict, got {type(kwargs)}")
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    # -- making nodes -----------------------------------------------------------------------------------------------
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """A new node at the place where nodes are inserted, which is the end unless said otherwise."""
        if not args:
            args = ()
        elif not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not kwargs:
            kwargs = immutable_dict()
        elif not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        n = Node(self, name, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(n)
        self._graph_namespace.associate_name_with_obj(name, n)
        self._insert(n)
        self._find_nodes_lookup_table.insert(n)
        self._len += 1
        return n

    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """An input."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """A parameter, buffer or module of the owning module, by its path."""
        if self.owning_module is not None and not _holds(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """A call of a module, by its path."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any | None = None) -> Node:
        """The return statement."""
        return self.create_node(op="output", target="output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            op = target_name(target)
        else:
            if not isinstance(target, str):
                raise AssertionError(f"Expected target to be str, got {type(target)}")
            op = target[2:-2] if _is_magic(target) else target
        return _snake_case(op)

    # -- editing ----------------------------------------------------------------------------------------------------
    def erase_node(self, to_erase: Node) -> None:
        """Take a node out; nobody may use it any more."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(map_arg(to_erase._args, lambda n: None), map_arg(to_erase._kwargs, lambda n: None))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes in front of `n` from now on, or for a `with` block; None is the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes behind `n` from now on, or for a `with` block; None is the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose result nobody uses and that do nothing else; says whether there were any."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            from .graph_module import GraphModule

            inner = {n.target for n in self.find_nodes(op="get_attr", sort=False)}
            for name, child in self.owning_module.named_children():
                if name in inner and isinstance(child, GraphModule):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def lint(self) -> None:
        """Raise where the graph is not well formed: order, ownership, names, targets."""
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node not in self._find_nodes_lookup_table:
                raise RuntimeError(f"Node '{node}' is not added to the side table")
            for arg in node._input_nodes:
                self._lint_argument(arg, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module:
            for node in self.nodes:
                self._lint_target(node)

    def _lint_argument(self, arg: Node, node: Node, seen: set[Node]) -> None:
        if arg.graph is not self:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' does not belong to this Graph, "
                "but was used as an argument! If you are copying nodes from another graph, make "
                f"sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if arg not in seen:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' was used before it has been "
                f"defined! Please check that Nodes in the graph are topologically ordered\n{self}"
            )

    def _lint_target(self, node: Node) -> None:
        target = node.target
        if node.op == "call_function":
            wanted = None if callable(target) else "Callable"
        else:
            wanted = None if isinstance(target, str) else "str"
        if wanted is not None:
            raise ValueError(
                f"Node {node} target {target} has type {torch.typename(target)} but a {wanted} is expected"
            )
        if node.op not in ("get_attr", "call_module"):
            return
        parts = target.split(".")
        holder = self.owning_module
        for i, part in enumerate(parts):
            found, path = getattr(holder, part, None), ".".join(parts[:i])
            if found is None:
                raise RuntimeError(f"Node {node} target {target} references nonexistent attribute {part} of {path}")
            if node.op == "call_module" and not isinstance(found, torch.nn.Module):
                raise RuntimeError(f"Node {node} target {target} {part} of {path} does not reference an nn.Module")
            holder = found

    # -- code -------------------------------------------------------------------------------------------------------
    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs from those of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The generated function's result from the graph's."""
        return self._codegen.process_outputs(out)

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as Python code, in which `root_module` (usually `self`) holds modules and parameters."""
        # Values and globals share the names of one function, so nodes are named anew.
        namespace = _Namespace()
        before = {node: node._repr_fn for node in self.nodes}
        for node in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._python_code(
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                record_func=record_func,
                additional_meta=additional_meta,
            )
        finally:
            for node, shown in before.items():
                node._repr_fn = shown

    def _python_code(self, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another writer make the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Change the lines of generated code: `make_transformer` is given the transformer there is and makes the new
        one. The result, used in `with`, brings the old one back."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        return f"graph({', '.join(names)}):" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the library `tabulate`."""
        try:
            tabulate = import_module("tabulate").tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, "
                "which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))


def _holds(module: Any, qualified_name: str) -> bool:
    """Whether a path leads to a module, parameter or buffer."""
    path, _, name = qualified_name.rpartition(".")
    try:
        holder = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    found = getattr(holder, name, None)
    return isinstance(found, (torch.nn.Module, torch.nn.Parameter)) or (
        hasattr(holder, name) and name in holder._buffers
    )
