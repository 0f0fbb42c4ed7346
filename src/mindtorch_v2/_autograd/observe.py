"""What users asked to be done with every recorded call: packing of saved values, stacks for anomaly detection.

Invariant: called only while `WATCH.on`, for nodes that have their edges. Not compiled.
"""

from __future__ import annotations

from typing import Any

from .._tensor_base import TensorBase
from .anomaly import remember
from .node import WATCH, Node, hooks_of
from .saved_hooks import pack_function, pack_inputs, pack_results, top_hooks


def started(node: Node) -> None:
    """An operator that is about to run."""
    if WATCH.anomaly:
        remember(node)
    pack_inputs(node)


def finished(node: Node, result: Any) -> None:
    """A functional operator or a view that has run."""
    pack_results(node, result)


def wrote(node: Node, target: TensorBase) -> None:
    """An operator that has written, and is now in the history of `target`."""
    pack_results(node, target)
    base = target._base_field
    fn = None if base is None else base._grad_fn
    if fn is not None:
        # Written through a view: the engine runs the base's node, which runs this one.
        if WATCH.anomaly:
            remember(fn)
        if top_hooks() is not None:
            hooks_of(fn)


def applied(node: Node, tensors: Any) -> None:
    """A user's Function."""
    if WATCH.anomaly:
        remember(node)
    if tensors is not None:
        pack_function(node, tensors)
