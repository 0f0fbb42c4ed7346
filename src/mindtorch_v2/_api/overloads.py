"""PyTorch's overload names of rows that carry none, and its names of rows that are called otherwise here.

Invariant: a row that PyTorch has in several overloads is one row that also takes numbers; this table says what PyTorch
calls it for tensors, for a number behind a tensor, and for a number in front. Rows not listed are called `default`.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op
from .._tensor_base import TensorBase

# Rows by PyTorch's names: (tensors, a number behind, a number in front).
_GROUPS: dict[tuple[str, str, str], str] = {
    ("Tensor", "Tensor", "Tensor"):
        "add add_ sub sub_ mul mul_ div div_ true_divide true_divide_ divide divide_ multiply multiply_ subtract "
        "subtract_ slice index split slice_copy split_copy unsafe_split ldexp floor_divide_",
    ("Tensor", "Scalar", "Scalar"):
        "rsub fmod fmod_ remainder_ copysign copysign_ eq eq_ ne ne_ lt lt_ le le_ gt gt_ ge ge_ not_equal "
        "not_equal_ less less_ less_equal less_equal_ greater greater_ greater_equal greater_equal_ bitwise_and_ "
        "bitwise_or_ bitwise_xor_ lerp lerp_ fill fill_ masked_fill masked_fill_ pow_ float_power_ searchsorted "
        "bucketize lshift lshift_ rshift rshift_ _add_relu _add_relu_",
    ("Tensor", "Scalar", "Scalar_Tensor"): "remainder bitwise_and bitwise_or bitwise_xor",
    ("Tensor", "Tensor_Scalar", "Scalar_Tensor"): "bitwise_left_shift bitwise_right_shift",
    ("Tensor", "Tensor_Scalar", "Tensor_Scalar"): "bitwise_left_shift_ bitwise_right_shift_",
    ("Tensor_Tensor", "Tensor_Scalar", "Scalar"): "pow float_power",
    ("Tensor", "Scalar_Other", "Scalar_Self"): "xlogy",
    ("Tensor", "Scalar_Other", "Scalar_Other"): "xlogy_",
    ("self", "ScalarOther", "ScalarSelf"): "where",
    ("Tensor", "default", "default"): "clamp clamp_ clip clip_ clamp_min clamp_min_ clamp_max clamp_max_",
    ("int", "int", "int"):
        "unflatten transpose select unbind softmax log_softmax select_copy transpose_copy unbind_copy",
    ("using_ints", "using_ints", "using_ints"): "flatten",
    ("two", "two", "two"): "scatter_reduce scatter_reduce_",
    ("memory_format", "memory_format", "memory_format"): "empty",
    ("start_step", "start_step", "start_step"): "arange",
    ("m", "m", "m"): "eye",
    ("low", "low", "low"): "randint",
    ("low_dtype", "low_dtype", "low_dtype"): "randint_like",
    ("Scalar", "Scalar", "Scalar"): "norm",
    ("input", "input", "input"): "conv_transpose2d conv_transpose3d",
    ("dim", "dim", "dim"): "frobenius_norm",
    ("default", "other_scalar", "self_scalar"): "special_xlogy special_xlog1py special_zeta",
    ("default", "n_scalar", "x_scalar"):
        "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p",
}
_OVERLOADS = {name: forms for forms, names in _GROUPS.items() for name in names.split()}

# What PyTorch calls a row that is given two numbers.
_BOTH = {"where": "Scalar"}

# Reductions whose `dim` may be left out; PyTorch has an overload for those that name one.
_DIMMED = {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "any": "dim", "all": "dim"}

# Rows whose operator has another name in PyTorch.
_BASES = {"to_copy": "_to_copy", "lshift": "__lshift__", "lshift_": "__ilshift__", "rshift": "__rshift__",
          "rshift_": "__irshift__", "normal": "normal_functional"}
_ROWS = {theirs: ours for ours, theirs in _BASES.items()}


def base_of(row: str) -> str:
    """PyTorch's name of a row's operator."""
    return _BASES.get(row) or row.partition(".")[0]


def row_base(name: str) -> str:
    """The reverse of `base_of`."""
    return _ROWS.get(name, name)


def names_of(op: Op) -> tuple[str, ...]:
    """What PyTorch calls the overloads that a row serves, the one for tensors first."""
    base, _, own = op.name.partition(".")
    if own:
        return (own,)
    forms = _OVERLOADS.get(base)
    if forms is None:
        return ("default", _DIMMED[base]) if base in _DIMMED and op.schema.index("dim") >= 0 else ("default",)
    if base in _BOTH:
        return (*forms, _BOTH[base])
    # Where PyTorch's functions turn a number into a tensor, its operator for numbers exists all the same.
    return tuple(dict.fromkeys((*forms, "Scalar") if op.numbers and forms[1] == "Tensor" else forms))


def name_for(op: Op, args: tuple[Any, ...]) -> str:
    """What PyTorch calls the overload that serves these arguments."""
    forms = None if "." in op.name else _OVERLOADS.get(op.name)
    if forms is None:
        names, dim = names_of(op), op.schema.index("dim")
        return names[-1] if len(names) > 1 and args[dim] is not None else names[0]
    if op.name == "where":
        first, second = (isinstance(a, TensorBase) for a in args[1:])
        return forms[0] if first and second else forms[1] if first else forms[2] if second else _BOTH["where"]
    given = [args[i] for i in op.slots if args[i] is not None]
    numbers = [i for i, a in enumerate(given) if not isinstance(a, TensorBase)]
    if not numbers:
        return forms[0] if len(given) > 1 or forms[1] != "default" else forms[1]
    return forms[2] if numbers[0] == 0 else forms[1]
