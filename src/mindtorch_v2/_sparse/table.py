"""Which kernels serve calls with sparse tensors, and operators that exist for sparse tensors only.

Invariant: `find` answers for every operator: a kernel, the recorder above it, or a refusal that names operator and
layout. A row of the dense tables keeps its derivative unless its entry here brings another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.inplace import InplaceDerivative
from .._autograd.record import NO_DERIVATIVE, NO_GRADIENT, Formulas
from .._dispatch import registry
from .._dispatch.keys import AUTOGRAD, BATCHED, DEVICE_BITS, FORWARD, FUNCTIONALIZE, TORCH_DISPATCH
from .._dispatch.op import RESOLVERS, Derivative, FnKernel, Kernel, Op, Overrider
from .._operators import definitions, overload_for
from .._promotion import can_cast
from .._tensor_base import TensorBase, bump
from .parts import is_sparse, parts, replace, with_values
from .refusals import refused


def tensors_in(args: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for a in args:
        if isinstance(a, TensorBase):
            out.append(a)
        elif isinstance(a, (tuple, list)):
            out.extend(t for t in a if isinstance(t, TensorBase))
    return out


def _refuse(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Serves what nothing else serves."""
    raise refused(str(overload_for(op, args)).removeprefix("aten.").removesuffix(".default"), tensors_in(args))


def written(op: Op, target: Any, result: Any) -> Any:
    """Put a result into a tensor of the user's."""
    if not is_sparse(target):
        if is_sparse(result):
            raise RuntimeError(f"{op.title()}: a sparse result does not fit a dense tensor")
        if target._shape != result._shape:
            target.resize_(result._shape)
        return target.copy_(result)
    if op.is_out and not is_sparse(result):
        raise refused(op.name, [target])
    if not is_sparse(result) or parts(result).layout is not parts(target).layout:
        raise RuntimeError(f"{op.title()}: the result's layout is not that of the tensor it is written to")
    if result._dtype is not target._dtype:
        result = with_values(result, parts(result).values.to(target._dtype))
    return replace(target, result)


def _out(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """`out=`: the functional operator, then its result put into the last argument."""
    functional = op.functional
    if functional is None or len(op.schema.returns) != 1:
        raise refused(op.name, tensors_in(args))
    target, source = args[-1], args[0]
    if functional.name in OF_VALUES and is_sparse(target) and is_sparse(source):
        # The dense operator says which dtypes it writes.
        made = functional.call(args[:-1])
        values = parts(made).values.new_empty((), dtype=target._dtype)
        op.call((parts(source).values.new_empty(()), *args[1:-1], values))
        return written(op, target, made)
    result = functional.call(args[:-1])
    both = functional.name in _CONVERTED and all(is_sparse(t) for t in (target, *args[:2]))
    if both and not can_cast(result._dtype, target._dtype):
        raise RuntimeError(
            f"Can't convert result type {result._dtype.scalar_name} to output {target._dtype.scalar_name} in "
            f"{_CONVERTED[functional.name]} operation"
        )
    return written(op, target, result)


def _in_place(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """The in-place form of a composite: the functional operator, then its result put into the first argument."""
    assert op.functional is not None
    return written(op, args[0], op.functional.call(args))


class Entry:
    """How one operator treats sparse tensors. `above`: it is made of recorded operators itself."""

    def __init__(self, kernel: Kernel, grad: Any, above: bool) -> None:
        self.kernel = kernel
        self.grad = grad
        self.above = above
        self.derivative: Derivative | None = None


TABLE: dict[str, Entry] = {}
# Functions of the values alone, which `unary` enters; and those that name themselves where a dtype does not fit `out`.
OF_VALUES: set[str] = set()
_CONVERTED = {"add": "add", "sub": "add", "mul": "mul"}
# Rows of the dense tables that are made for sparse tensors, or ask about any.
_MADE_FOR = frozenset(
    """_sparse_sum _sparse_sum.dtype _sparse_sum.dim _sparse_sum.dim_dtype _sparse_sparse_matmul _to_dense
    _sparse_softmax_backward_data _sparse_log_softmax_backward_data _assert_tensor_metadata _indices_copy _values_copy
    _has_compatible_shallow_copy_type _is_zerotensor _unsafe_masked_index _unsafe_masked_index_put_accumulate
    _segment_reduce _sparse_broadcast_to""".split()
)
# Composites that are kernels in PyTorch, or made of other parts: they are refused as a whole.
_WHOLE = frozenset(
    """bincount cholesky equal grid_sampler grid_sampler_2d grid_sampler_3d isin.Tensor_Tensor isin.Scalar_Tensor
    isin.Tensor_Scalar multi_margin_loss multilabel_margin_loss native_norm native_norm.ScalarOpt_dim_dtype
    repeat_interleave.Tensor rrelu_with_noise rrelu_with_noise_ set_ set_.source_Tensor slow_conv_dilated2d
    slow_conv_dilated3d slow_conv_transpose3d smooth_l1_loss to_padded_tensor unique_dim unique_consecutive linalg_lu
    histogramdd histogramdd.int_bins histogramdd.TensorList_bins cdist cosine_similarity ctc_loss.Tensor
    ctc_loss.IntList combinations cov corrcoef kron""".split()
)
ROWS: dict[str, Op] = {}
# Compiled classes have no interpreted ones below them: kernels written here are functions.
REFUSAL = Overrider(_refuse)
OUT = Overrider(_out)
IN_PLACE = Overrider(_in_place)


def serves(*names: str, grad: dict[Any, Any] | None = None, above: bool = False) -> Callable[[Any], Any]:
    """Register a function of the operator's arguments for rows of the dense tables."""

    def register(fn: Any) -> Any:
        for name in names:
            TABLE[name] = Entry(FnKernel(fn), grad, above)
        return fn

    return register


def row(schema: str, grad: dict[Any, Any] | None = None, node: str | None = None) -> Callable[[Any], Op]:
    """An operator for sparse tensors, or one that makes them."""

    def declare(fn: Any) -> Op:
        name = schema.partition("(")[0]
        op = Op(f"aten::{name}", schema)
        op.derivative = NO_GRADIENT if grad is None else Formulas(name, op.schema, grad, node, ())
        kernel = FnKernel(fn)
        for bit in DEVICE_BITS.values():
            op.kernels[bit] = kernel
        TABLE[op.name] = Entry(kernel, None, False)
        ROWS[name] = op
        if name not in registry.OPS:
            known = definitions("aten")
            if name not in known:
                known[name] = op
        return op

    return declare


def bumped(t: Any) -> Any:
    bump(t)
    return t


def derivative_of(op: Op, entry: Entry) -> Derivative | None:
    """What autograd does with an operator of sparse tensors; None where it knows nothing."""
    if entry.grad is None:
        return op.derivative
    if entry.derivative is None:
        source = op.functional if op.mutates and op.functional is not None else op
        named = getattr(source.derivative, "node_name", None)
        formulas = Formulas(source.name, source.schema, entry.grad, named, ())
        entry.derivative = InplaceDerivative(formulas) if op.mutates else formulas
    return entry.derivative


def _by_parts(op: Op) -> bool:
    """Whether a composite is its parts for sparse tensors too; each of them answers for itself. Operators that only
    call a method ask for themselves whether the tensor is sparse."""
    if op.row is not None and op.row.kind == "name":
        return True
    if op.name.startswith("_"):
        return op.name.startswith("_foreach_") or op.name in _MADE_FOR
    return op.name not in _WHOLE


def find(op: Op, keys: int) -> Kernel:
    """The kernel for a call with a sparse tensor among its arguments."""
    from . import kernels as _  # noqa: F401 (registers them)

    if keys & BATCHED:
        from .mapped import IN_VMAP

        return IN_VMAP
    entry = TABLE.get(op.name)
    if entry is None:
        if op.composite is not None and _by_parts(op):
            return IN_PLACE if op.mutates and op.functional is not None and not op.is_out else op.composite
        if not op.is_out:
            return REFUSAL
        entry = Entry(OUT, None, False)
    if entry.above:
        return entry.kernel
    if keys & FORWARD:
        dual: Kernel = RESOLVERS.forward
        return dual
    if keys & AUTOGRAD:
        derivative = derivative_of(op, entry)
        return NO_DERIVATIVE if derivative is None else derivative.kernel()
    if keys & TORCH_DISPATCH:
        found: Kernel = RESOLVERS.torch_dispatch
        return found
    if keys & FUNCTIONALIZE and op.mutates:
        return REFUSAL
    return entry.kernel
