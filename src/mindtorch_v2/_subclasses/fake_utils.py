"""`torch._subclasses.fake_utils`: which results share memory with arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from ..utils._pytree import tree_leaves


def _storages(tree: Any) -> Iterator[Any]:
    for x in tree_leaves(tree):
        if isinstance(x, torch.Tensor):
            yield x.untyped_storage()._cdata


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a result shares memory with an argument."""
    given = set(_storages(inputs))
    return any(x in given for x in _storages(outputs))


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a result is an argument."""
    given = {id(x) for x in tree_leaves(inputs) if isinstance(x, torch.Tensor)}
    return any(id(x) in given for x in tree_leaves(outputs) if isinstance(x, torch.Tensor))


def output_alias_each_other(outputs: Any) -> bool:
    """Whether two results share memory."""
    found = list(_storages(outputs))
    return len(set(found)) < len(found)
