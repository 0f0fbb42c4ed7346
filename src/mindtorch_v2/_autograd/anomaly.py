"""Anomaly detection: nodes remember the forward call that made them, and an error in backward shows it.

Invariant: what is remembered is in `node.metadata`, under PyTorch's keys. Not compiled: none of this runs unless it is
switched on.
"""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

from .._dispatch.state import LOCAL, swap_grad
from .._tensor_base import TensorBase
from .node import Node

TRACEBACK = "traceback_"
PARENT = "parent_"

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def enter(node: Node) -> Any:
    """Note that a node runs; returns the one that ran before."""
    outer = getattr(LOCAL, "running_node", None)
    LOCAL.running_node = node
    return outer


def leave(outer: Any) -> None:
    LOCAL.running_node = outer


def remember(node: Node) -> None:
    """Keep the stack of the call that made a node, and the node whose backward made that call."""
    frames = traceback.extract_stack()
    while frames and _is_inner(frames[-1].filename):
        frames.pop()
    node.metadata[TRACEBACK] = traceback.format_list(frames)
    parent = getattr(LOCAL, "running_node", None)
    if parent is not None:
        node.metadata[PARENT] = parent


def _is_inner(path: str) -> bool:
    """Whether a frame belongs to the machinery of a call, where PyTorch has no Python frame."""
    return path.startswith("<torch.") or (path.startswith(_PACKAGE) and path[len(_PACKAGE) :].startswith("_"))


def report(node: Node) -> None:
    """Show the forward call behind a node that failed, and what led to that call if it was made in a backward pass."""
    shown = node.metadata
    if TRACEBACK not in shown:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            UserWarning,
            stacklevel=2,
        )
        return
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
        + "".join(shown[TRACEBACK]),
        UserWarning,
        stacklevel=2,
    )
    parent = shown.get(PARENT)
    while parent is not None:
        above = parent.metadata
        if TRACEBACK not in above:
            warnings.warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. No forward pass information available. "
                "Enable detect anomaly during forward pass for more information.",
                UserWarning,
                stacklevel=2,
            )
            return
        warnings.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            "previous calculation:\n" + "".join(above[TRACEBACK]),
            UserWarning,
            stacklevel=2,
        )
        parent = above.get(PARENT)


def refuse_nan(node: Node, out: list[Any]) -> None:
    was = swap_grad(False)
    try:
        for i, g in enumerate(out):
            if isinstance(g, TensorBase) and _has_nan(g):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    finally:
        swap_grad(was)


def _has_nan(g: Any) -> bool:
    return g.device.type != "meta" and bool((g != g).any())
