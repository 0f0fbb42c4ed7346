"""What is known about the node that is running, for the nodes that are made meanwhile: stack traces and notes."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from typing import Any

from ._compatibility import compatibility
from .node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"
current_meta: dict[str, Any] = {}
current_replay_node: Node | None = None
should_preserve_node_meta = False


@compatibility(is_backward_compatible=False)
class NodeSourceAction(Enum):
    """What a pass did to a node."""

    CREATE = "create"
    REPLACE = "replace"


@compatibility(is_backward_compatible=False)
class NodeSource:
    """Where a node came from: the node before a pass, and the sources of that."""

    class NodeInfo:
        """A node by name."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name = name
            self.target = target
            self.graph_id = graph_id

    def __init__(self, node: Node | None, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        self.action: list[NodeSourceAction] = [] if action is None else action if isinstance(action, list) else [action]
        for a in self.action:
            if not isinstance(a, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(a)}")
        self.node_info = None if not node else self.NodeInfo(node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    @property
    def name(self) -> str:
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """The sources, one below the other."""
        if indent > 9:
            return ""
        line = (
            f"(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
            f"graph_id={self.graph_id})\n"
        )
        return " " * indent * 4 + line + "".join(item.print_readable(indent + 1) for item in self.from_node)

    def __repr__(self) -> str:
        return self.print_readable()

    def to_dict(self) -> dict[str, Any]:
        """The sources as plain data."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [node.to_dict() for node in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


@compatibility(is_backward_compatible=False)
@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside, new nodes are given what is known about the node that runs."""
    global should_preserve_node_meta, current_meta
    before, meta = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = before, meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Say where the program is."""
    if not should_preserve_node_meta:
        return
    if stack:
        current_meta["stack_trace"] = "".join(stack)
    else:
        current_meta.pop("stack_trace", None)


@compatibility(is_backward_compatible=False)
@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside, new nodes carry these notes in `meta["custom"]`."""
    before = copy.copy(current_meta["custom"]) if "custom" in current_meta else None
    try:
        current_meta.setdefault("custom", {}).update(annotation_dict)
        yield
    finally:
        if before is None:
            current_meta.pop("custom", None)
        else:
            current_meta["custom"] = before


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: nodes made by calls of the function carry these notes."""

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


@compatibility(is_backward_compatible=False)
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Say which node of the backward pass runs."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


@compatibility(is_backward_compatible=False)
def reset_grad_fn_seq_nr() -> None:
    """The node of the backward pass is done."""
    if not should_preserve_node_meta:
        return
    level = current_meta.get("in_grad_fn", 0)
    if level <= 1:
        current_meta.pop("in_grad_fn", None)
        current_meta.pop("grad_fn_seq_nr", None)
    else:
        current_meta["in_grad_fn"] = level - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """Where the program is: what was said, or the stack of the caller."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Whether new nodes are given what is known about the node that runs."""
    return should_preserve_node_meta


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside, `node` is the one that runs."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    try:
        current_meta = node.meta.copy()
        # Notes of the caller stay.
        current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        current_meta = before


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """What is known about the node that runs."""
    return current_meta


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Inside, `node` is the one that is made again."""
    global current_replay_node
    before = current_replay_node
    try:
        current_replay_node = node
        yield
    finally:
        current_replay_node = before


@compatibility(is_backward_compatible=False)
def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """For each node that calls something, where it came from."""
    calls = ("call_function", "call_method", "call_module")
    return {n.name: [s.to_dict() for s in n.meta.get("from_node", [])] for n in graph.nodes if n.op in calls}


@compatibility(is_backward_compatible=False)
def get_current_replay_node() -> Node | None:
    """The node that is made again."""
    return current_replay_node
