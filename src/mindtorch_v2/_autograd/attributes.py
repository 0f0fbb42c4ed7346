"""Attributes that nodes have by what they are: `grad_fn._saved_self`, `_raw_saved_self`, `AccumulateGrad.variable`.

Invariant: the names are PyTorch's; what a row calls `self_shape` is `_saved_self_sym_sizes` here. Not compiled, because
a compiled function does not become a method of the classes it is put into.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .node import ACCUMULATE, meta

_SAVED = "_saved_"
_RAW = "_raw_saved_"
# How PyTorch ends the names of saved metadata, and how rows do.
_ENDINGS = (("_sym_sizes", "_shape"), ("_sym_strides", "_stride"))


class InputMetadata(NamedTuple):
    """What a node expects of one gradient it gets."""

    device: Any
    dtype: Any
    shape: list[int]
    is_cpp_nested_tensor: bool = False
    is_nested_tensor: bool = False


def saved_attribute(node: Any, name: str) -> Any:
    """`__getattr__` of nodes."""
    formulas = node._formulas
    if formulas is not None:
        if name.startswith(_SAVED):
            return _saved(node, formulas, name[len(_SAVED) :])
        if name.startswith(_RAW) and formulas.saves_tensor(name[len(_RAW) :]):
            from .saved_hooks import SavedTensorHandle

            return SavedTensorHandle(node, formulas.names.index(name[len(_RAW) :]))
    if name == "variable" and node._kind == ACCUMULATE:
        return node._payload
    if name == "_input_metadata":
        return tuple(_described(*meta(node, i)) for i in range(node._results))
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def _described(shape: Any, dtype: Any, device: Any) -> InputMetadata:
    return InputMetadata(device, dtype, list(shape or ()))


def _saved(node: Any, formulas: Any, name: str) -> Any:
    for theirs, ours in _ENDINGS:
        if name.endswith(theirs):
            return tuple(formulas.saved_value(node, name[: -len(theirs)] + ours))
    value = formulas.saved_value(node, name)
    scalar = type(node).__name__ == "PowBackward0"  # the node of the overload whose exponent is a number
    if not scalar and formulas.saves_tensor(name) and isinstance(value, (bool, int, float, complex)):
        # A number in a tensor's place is a tensor in PyTorch, of the widest dtype of its kind.
        import mindtorch_v2 as torch

        kind = {bool: torch.bool, int: torch.int64, float: torch.float64}.get(type(value), torch.complex128)
        return torch.tensor(value, dtype=kind)
    return value


def attribute_names(node: Any) -> list[str]:
    """`__dir__` of nodes."""
    names = [*object.__dir__(node), "_input_metadata"]
    formulas = node._formulas
    if formulas is None:
        return [*names, "variable"] if node._kind == ACCUMULATE else names
    for name in formulas.names:
        shown = name
        for theirs, ours in _ENDINGS:
            if name.endswith(ours) and name not in [a.name for a in formulas.schema.args]:
                shown = name[: -len(ours)] + theirs
        names.append(_SAVED + shown)
        if formulas.saves_tensor(name):
            names.append(_RAW + name)
    return names
