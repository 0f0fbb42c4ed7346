"""Which memory may be written: PyTorch's checks on tensors that overlap themselves or each other.

Invariant: these run before a kernel writes anything, and leave the target memory of its own.
"""

from __future__ import annotations

from typing import Any, Final

from ..._mypyc import i64
from ..._strides import extent, strides_dense
from ..._tensor_base import TensorBase, is_contiguous, numel, own_memory
from ..._warn import warn

_SELF_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
_PARTIAL_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def check_no_internal_overlap(t: TensorBase) -> None:
    """An expanded tensor cannot be written."""
    if repeated_dim(t) >= 0:
        raise RuntimeError(_SELF_OVERLAP)


def repeated_dim(t: TensorBase) -> i64:
    """The first dimension along which an expanded tensor does not move, -1 if there is none."""
    if is_contiguous(t):
        return -1
    i: i64 = 0
    for n in t._shape:
        if n > 1 and t._stride[i] == 0:
            return i
        i += 1
    return -1


def is_dense(t: TensorBase) -> bool:
    """Non-overlapping and dense: some order of the dimensions is contiguous."""
    if is_contiguous(t):
        return True
    return strides_dense(t._shape, t._stride)


def check_no_partial_overlap(out: TensorBase, t: TensorBase) -> None:
    """Inputs may be the output itself, or apart from it, but not shifted over it."""
    if out is t or out._storage is not t._storage:
        return
    if out._offset == t._offset and out._shape == t._shape and out._stride == t._stride:
        return
    if numel(out) == 0 or numel(t) == 0 or not is_dense(out) or not is_dense(t):
        return
    out_size: i64 = out._dtype.itemsize
    t_size: i64 = t._dtype.itemsize
    a0 = out._offset * out_size
    a1 = a0 + extent(out._shape, out._stride) * out_size
    b0 = t._offset * t_size
    b1 = b0 + extent(t._shape, t._stride) * t_size
    if a0 == b0 and a1 == b1:
        if out._stride == t._stride:
            return
        raise RuntimeError(_PARTIAL_OVERLAP)
    if a0 < b1 and b0 < a1:
        raise RuntimeError(_PARTIAL_OVERLAP)


def check_no_overlap(out: TensorBase, t: TensorBase) -> None:
    """For operators that read their input again after writing."""
    if out is t:
        raise RuntimeError(_PARTIAL_OVERLAP)
    if out._storage is not t._storage or numel(out) == 0 or numel(t) == 0:
        return
    if is_dense(out) and is_dense(t):
        out_size: i64 = out._dtype.itemsize
        t_size: i64 = t._dtype.itemsize
        a0 = out._offset * out_size
        b0 = t._offset * t_size
        if a0 < b0 + extent(t._shape, t._stride) * t_size and b0 < a0 + extent(out._shape, out._stride) * out_size:
            raise RuntimeError(_PARTIAL_OVERLAP)


def check_inputs(out: TensorBase, args: tuple[Any, ...]) -> None:
    for a in args:
        if isinstance(a, TensorBase):
            check_no_partial_overlap(out, a)


# What an in-place form may write (`Op.overlap`). Most operators follow the usual rule, which is 0: the target does not
# overlap itself, and an input is the target or does not overlap it.
COPIES: Final[i64] = 1  # the same, but a target that is its own source is left alone
FILLS: Final[i64] = 2  # a number may be written to a place twice
REPEATS: Final[i64] = 3  # so may whatever is written, one after the other
APART: Final[i64] = 4  # the same, but no input may share memory with the target
DISTINCT: Final[i64] = 5  # the target overlaps neither itself nor an input: for what is read between writes, as indices
# A number to places of args[2] along dimension args[1], to each as often as it stands there; args[2] shares no memory
# with the target.
MARKS: Final[i64] = 6
ALONE: Final[i64] = 7  # the target does not overlap itself; inputs are not asked
PICKS: Final[i64] = 8  # for `out=`: the first input shares no memory with it, the others follow the usual rule
ADDS: Final[i64] = 9  # for `out=`: the first input follows the usual rule, the others are not asked
FINDS: Final[i64] = 10  # for `out=`: the usual rule, by operators that write one result before they read for the next


# PyTorch lets these write to expanded tensors, and warns.
_DEPRECATED: Final[dict[str, str]] = {
    "index_put": "tensor[indices] = tensor",
    "masked_fill": "tensor[mask] = scalar",
    "index_fill": "tensor[mask] = scalar",
}


def warn_repeated(name: str, target: TensorBase) -> None:
    """Warn where an expanded tensor is about to be written by an operator that will not always do so."""
    example = _DEPRECATED.get(name)
    if example is not None and repeated_dim(target) >= 0:
        warn(
            f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
            f"operation. This also applies to advanced indexing e.g. {example}"
        )


def check_write(rule: i64, target: TensorBase, args: tuple[Any, ...]) -> None:
    """Whether an in-place operator may write its target; PyTorch asks before it looks at shapes."""
    own_memory(target)
    if rule == 0:
        check_no_internal_overlap(target)
        check_inputs(target, args)
    elif rule == COPIES:
        if args[1] is not target:
            check_no_internal_overlap(target)
            check_inputs(target, args)
    elif rule == FILLS:
        if len(args) > 1 and isinstance(args[1], TensorBase):
            check_no_internal_overlap(target)
    elif rule == REPEATS:
        check_inputs(target, args[:2])
    elif rule == DISTINCT:
        check_no_internal_overlap(target)
        check_apart(target, args[1:])
    elif rule == MARKS:
        check_apart(target, args[2:3])
    elif rule == ALONE:
        check_no_internal_overlap(target)
    else:
        check_apart(target, args[1:])


def check_out(rule: i64, out: TensorBase, args: tuple[Any, ...], fits: bool = True) -> None:
    """The same for `out=`; here every argument is an input. One that does not fit is given other strides."""
    own_memory(out)
    if fits:
        check_no_internal_overlap(out)
    if rule == 0 or rule == FINDS:
        check_inputs(out, args)
    elif rule == APART:
        check_apart(out, args)
    elif rule == DISTINCT:
        check_inputs(out, args[:1])
        check_apart(out, args[1:])
    elif rule == PICKS:
        check_apart(out, args[:1])
        check_inputs(out, args[1:])
    elif rule == ADDS:
        check_inputs(out, args[:1])


def check_apart(target: TensorBase, args: tuple[Any, ...]) -> None:
    for a in args:
        if isinstance(a, TensorBase):
            check_no_overlap(target, a)
        elif isinstance(a, tuple):
            check_apart(target, a)
        elif isinstance(a, list):
            check_apart(target, tuple(a))


def needs_copy(rule: i64, target: TensorBase, args: tuple[Any, ...]) -> bool:
    """Whether inputs may lie where the target does: a kernel that writes as it reads would read what it has written."""
    if rule == ALONE or rule == ADDS or rule == FINDS:
        for a in args:
            if isinstance(a, TensorBase) and a._storage is target._storage:
                return True
    return False
