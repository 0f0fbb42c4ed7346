"""The public face of the ACLNN binding: the table of vendor functions, whether they exist, and launching one.

Invariant: a question never raises where the libraries cannot be loaded: the answer is no.
"""

from __future__ import annotations

from typing import Any

from . import launch as _launch
from . import table

# What the backend cannot do without: arithmetic of the core, copies, filling, and the write-back of functionalization.
TABLE: tuple[str, ...] = (
    "aclnnAdd",
    "aclnnAdds",
    "aclnnMul",
    "aclnnMuls",
    "aclnnRelu",
    "aclnnReduceSum",
    "aclnnMm",
    "aclnnMatmul",
    "aclnnBatchMatMul",
    "aclnnCast",
    "aclnnInplaceCopy",
    "aclnnInplaceFillScalar",
    "aclnnInplaceZero",
    "aclnnArange",
    "aclnnIndexPutImpl",
)


def signature(name: str) -> table.Signature:
    """The parameters of a vendor function."""
    return table.signature(name)


def symbols_ok(*names: str) -> bool:
    """Whether both entry points of every named function resolve."""
    try:
        return all(_launch.available(n) for n in names)
    except RuntimeError:
        return False


def arange_symbols_ok() -> bool:
    return symbols_ok("aclnnArange")


def index_put_impl_symbols_ok() -> bool:
    return symbols_ok("aclnnIndexPutImpl")


def strided_slice_assign_symbols_ok() -> bool:
    return symbols_ok("aclnnStridedSliceAssignV2")


def launch(name: str, op: str, *values: Any) -> None:
    """Run a vendor function with values in its own order; `op` is the name that errors show."""
    _launch.launch(_launch.resolve(name), list(values), op)
