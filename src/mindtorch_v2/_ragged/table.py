"""Which kernels serve calls with nested tensors: by layout, then by name or by kind of row.

Invariant: `serve` answers every call: by a kernel that is made of recorded dense operators, or by a refusal that names
operator and layout. A kernel is a function of the operator and its arguments in schema order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.inplace import check_inplace
from .._dispatch.keys import BATCHED
from .._dispatch.op import Kernel, Op, Overrider
from .._dispatch.state import is_grad_enabled
from .._layout import jagged
from .._operators import overload_for
from .._ops.rules.dtype_checks import Accept
from .._ops.rules.pointwise import Pointwise
from .._tensor_base import TensorBase, bump, requires_grad
from ..autograd import no_grad
from .history import adopt, as_view, values_of, wrap
from .parts import is_nested, parts

JAGGED: dict[str, Any] = {}
STRIDED: dict[str, Any] = {}

# Rules of shape that say "elementwise", and rows that are so though their rule does not say it.
_RULES = ("Additive", "Choose", "Power", "Clamp", "Lerp", "AddScaled", "Where", "MaskedFill")
_ELEMENTWISE = frozenset(
    "complex polar polygamma polygamma.method nan_to_num angle hardtanh log_sigmoid softshrink heaviside ldexp "
    "mvlgamma frexp.Tensor native_dropout_backward fill conj real imag _conj_physical alias positive resolve_conj "
    "resolve_neg hardshrink isreal isfinite isneginf isposinf".split()
)
# Composites that are made of operators of one tensor, or of operands that broadcast, and look at no size.
_COMPOSITES = frozenset(
    "isclose max.other min.other square absolute negative true_divide divide multiply subtract greater greater_equal "
    "less less_equal not_equal clip fix arccos arcsin arctan arctanh arcsinh arccosh arctan2 celu selu relu6 rrelu "
    "hardswish logsigmoid float_power isreal isfinite isneginf isposinf real imag conj log_sigmoid mish tanhshrink "
    "softsign silu elu hardsigmoid special_expit special_exp2 special_expm1 special_log1p special_round special_sinc "
    "special_xlogy special_logit special_psi special_digamma special_gammaln special_erf special_erfc special_erfinv "
    "special_i0 special_polygamma special_multigammaln special_ndtr var std norm softmax log_softmax square_ relu6_ "
    "prelu threshold alpha_dropout feature_dropout xlogy special_gammainc special_gammaincc resolve_conj resolve_neg "
    "type_as float double half bfloat16 int long masked_fill_ rsub clamp_max clamp_min nan_to_num_ fmax fmin "
    "logical_or contiguous view_as reshape_as swapaxes swapdims arctan2_ dropout_ positive conj_physical hstack vstack "
    "dstack column_stack dsplit.int dsplit.array".split()
)
# Elementwise operators that PyTorch has for the strided layout, by its names.
_STRIDED_ELEMENTS = frozenset(
    "abs abs_ add.Tensor add_.Tensor add.Scalar add_.Scalar copy_ cos div.Tensor div.Scalar eq.Scalar eq.Tensor "
    "fill_.Scalar fill_.Tensor ge.Scalar gelu gelu_ gelu_backward gt.Scalar isinf isnan isneginf isposinf logical_not "
    "logical_not_ masked_fill.Scalar mul.Scalar mul.Tensor mul_.Scalar mul_.Tensor native_dropout_backward neg neg_ "
    "normal_ relu relu_ sgn sgn_ silu silu_ silu_backward sin sqrt sub.Tensor sub.Scalar tanh tanh_ "
    "threshold_backward where.self zero_ alias conj _conj real imag resolve_conj resolve_neg dropout_".split()
)
# Operators that ask for the sizes of such a tensor before anything else.
_SIZED = frozenset(
    "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d batch_norm combinations cosine_embedding_loss "
    "cosine_similarity cross cross_entropy_loss dsplit.int expand_as flatten.using_ints group_norm hsplit.int kron "
    "nanquantile.scalar nll_loss_nd one_hot quantile.scalar rms_norm sum_to_size take_along_dim "
    "vsplit.int".split()
)
# Operators that PyTorch does not have for the jagged layout.
_REFUSED = frozenset(
    "floor_divide complex polar log_sigmoid logsigmoid prelu rrelu count_nonzero linalg_vector_norm nansum std "
    "var var.correction std.correction hash_tensor logsumexp norm addcmul addcdiv clamp.Tensor view_as_real "
    "view_as_complex hardswish bernoulli normal_ uniform_ exponential_ geometric_ log_normal_ cauchy_".split()
)
# In-place operators that write every element by itself.
_FILLS = frozenset(
    "fill_ zero_ normal_ uniform_ bernoulli_ bernoulli_.float random_ random_.from random_.to exponential_ geometric_ "
    "log_normal_ cauchy_ dropout_".split()
)


def serves(table: dict[str, Any], *names: str) -> Callable[[Any], Any]:
    """Register a function of the operator and its arguments."""

    def register(fn: Any) -> Any:
        for name in names:
            table[name] = fn
        return fn

    return register


def elementwise(op: Op) -> bool:
    rule = op.rule
    return (
        isinstance(rule, (Pointwise, Accept)) or type(rule).__name__ in _RULES or op.name in _ELEMENTWISE
    ) and op.composite is None


def tensors_in(args: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for a in args:
        if isinstance(a, TensorBase):
            out.append(a)
        elif isinstance(a, (tuple, list)):
            out.extend([t for t in a if isinstance(t, TensorBase)])
    return out


def first_nested(args: tuple[Any, ...]) -> Any:
    return next(t for t in tensors_in(args) if is_nested(t))


def shown(op: Op, args: tuple[Any, ...]) -> str:
    """PyTorch's name of an operator: 'add.Tensor'."""
    return str(overload_for(op, args)).removeprefix("aten.")


def refused(op: Op, args: tuple[Any, ...]) -> Exception:
    """The error for an operator that has no kernel for the layouts of its arguments."""
    name = shown(op, args)
    if parts(first_nested(args)).layout is not jagged and name.removesuffix(".default") in _SIZED:
        return sized(name.removesuffix(".default"))
    return refusal(name, first_nested(args))


def sized(name: str) -> RuntimeError:
    """The error of an operator that asks for the sizes of a tensor of the strided layout."""
    return RuntimeError(
        "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.\n"
        f"'{name}' has no kernel for nested tensors of layout torch.strided."
    )


def refusal(name: str, nested: Any) -> NotImplementedError:
    """The error of an operator, by PyTorch's name, that has no kernel for a nested tensor."""
    if parts(nested).layout is jagged:
        return NotImplementedError(f"aten.{name}: no kernel for nested tensors of layout torch.jagged")
    where = {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1"}.get(nested.device.type, "")
    return NotImplementedError(
        f"Could not run 'aten::{name.removesuffix('.default')}' with arguments from the 'NestedTensor{where}' backend. "
        "This could be because the operator doesn't exist for this backend, or was omitted during the selective/custom "
        "build process (if using custom build). It has no kernel for nested tensors of layout torch.strided."
    )


def refused_in_place(op: Op, args: tuple[Any, ...]) -> NotImplementedError:
    """The same for the form of a view that changes the tensor itself."""
    name = shown(op, args)
    title, dot, overload = name.partition(".")
    return NotImplementedError(f"aten.{title}_{dot}{overload}: no kernel for nested tensors")


def serve(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """A call with a nested tensor among its arguments."""
    _load()
    if keys & BATCHED and op.name not in _WAYS:
        return _in_vmap(op, args, keys)
    layouts = {parts(t).layout for t in tensors_in(args) if is_nested(t)}
    if len(layouts) > 1:
        raise RuntimeError(
            f"{op.title()}(): nested tensors of the layouts torch.jagged and torch.strided cannot be mixed"
        )
    table, pointwise = (JAGGED, _jagged_pointwise()) if jagged in layouts else (STRIDED, _strided_pointwise())
    if table is JAGGED and (op.name in _REFUSED or _by_tensor(op, args)):
        raise refused(op, args)
    fn = table.get(op.name)
    if fn is not None:
        return _with_base(op, fn(op, *args), args[0])
    if table is STRIDED and _lacks(op, args):
        raise refused(op, args)
    if op.mutates and not op.is_out:
        return _write(op, args, table, pointwise)
    if elementwise(op):
        return _with_base(op, pointwise(op, *args), args[0])
    if op.composite is not None and op.name in _COMPOSITES:
        return op.composite.run(op, args, keys)
    raise refused(op, args)


def _by_tensor(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether an operator is there for numbers only, and was given a tensor."""
    place = {"rsub": 1, "masked_fill": 2}.get(op.name)
    return place is not None and isinstance(args[place], TensorBase)


def _lacks(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether an elementwise operator is not there for the strided layout."""
    func = op.functional if op.mutates and not op.is_out else op
    if op.name not in _FILLS and (func is None or not elementwise(func)):
        return False
    return shown(op, args).removesuffix(".default") not in _STRIDED_ELEMENTS


# The ways into a level of `vmap` and out of it.
_WAYS = frozenset(("_add_batch_dim", "_remove_batch_dim"))


def _in_vmap(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    from . import mapped

    if any([mapped.is_mapped(t) for t in tensors_in(args)]):
        return mapped.serve(op, args)
    if any([t._keys & BATCHED for t in tensors_in(args)]):
        raise RuntimeError(
            f"vmap: {shown(op, args)} of a nested tensor that is not mapped over and a tensor that is is not supported"
        )
    return serve(op, args, keys & ~int(BATCHED))


# Composites and functions of PyTorch's that give views of nested tensors.
_VIEWS = frozenset("chunk unflatten flatten narrow real conj reshape view_as expand_as".split())


def _with_base(op: Op, found: Any, source: Any) -> Any:
    """Results that show the memory of the first argument say so."""
    if (op.is_view or op.name in _VIEWS) and is_nested(source):
        for t in found if isinstance(found, (tuple, list)) else (found,):
            if is_nested(t) and t is not source and parts(t).values._storage is parts(source).values._storage:
                as_view(t, source)
    return found


def _write(op: Op, args: tuple[Any, ...], table: dict[str, Any], pointwise: Any) -> Any:
    """An in-place operator: the values are written; with history, the functional operator's goes on."""
    target, func = args[0], op.functional
    known = func is not None and (elementwise(func) or func.name in table or func.name in _COMPOSITES)
    if not is_nested(target) or not (known or op.name in _FILLS):
        raise refused(op, args)
    if is_grad_enabled() and any([requires_grad(t) for t in tensors_in(args)]):
        check_inplace(target)
        if func is None:
            raise refused(op, args)
        # What is saved for the gradient must not be what is written.
        before = wrap(values_of(target).clone(), parts(target).structure)
        result = func.call(tuple([before if a is target else a for a in args]))
        with no_grad():
            parts(target).values.copy_(parts(result).values)
        return adopt(target, result)
    if op.name in _FILLS:
        op.call((parts(target).values, *args[1:]))
    else:
        assert func is not None
        result = func.call(args)
        if result._shape != target._shape:
            here, there = (parts(t).values for t in (target, result))
            if is_nested(result) and len(here._shape) == len(there._shape):
                raise RuntimeError(
                    f"output with shape {list(here._shape)} doesn't match the broadcast shape {list(there._shape)}"
                )
            raise RuntimeError(
                f"{op.title()}(): the result of size {tuple(result._shape)} does not fit the nested tensor of size "
                f"{tuple(target._shape)} that is written to"
            )
        parts(target).values.copy_(parts(result).values)
    bump(target)
    return target


def _jagged_pointwise() -> Any:
    from .jagged import pointwise

    return pointwise


def _strided_pointwise() -> Any:
    from .strided import pointwise

    return pointwise


def _load() -> None:
    """Register the kernels."""
    if not JAGGED:
        from . import attention, jagged, mapped, products, reductions, strided, views  # noqa: F401


SERVED = Overrider(serve)


def find(op: Op, keys: int) -> Kernel:
    """The kernel for a call with a nested tensor among its arguments."""
    return SERVED
