"""Factories: operators that make a tensor from sizes and numbers. Their public functions are in `_creation.py`."""
from __future__ import annotations

from typing import Any

from .._backends.common import transfer
from .._dispatch.op import Op, Spec
from .._dtype import DEFAULTS
from .._sizes import numel_of, strided_bytes
from .rules.base import KeptRule, spec
from .rules.layout import ordered_strides
from .rules.pointwise import broadcast
from .rules.shape import (
    ArangeRule,
    EyeRule,
    FactoryRule,
    LikeRule,
    NewRule,
    PlacesRule,
    SpacedRule,
    check_options,
    check_sizes,
    check_value,
    placed,
)
from .table import op

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _made(schema: str, rule: Any, value: Any = None, at: int = -1, out: int = -1) -> Op:
    """A row served on every device by its runtime's memory and fill."""
    o = op(schema, meta=rule, nondifferentiable=True, function=False, method=False, out=out >= 0)
    transfer.everywhere(o, transfer.CreateKernel(value, at))
    if out >= 0:
        transfer.everywhere(o.row.out_op, transfer.CreateOutKernel(out))
    return o


EMPTY: Op = _made(f"empty(SymInt[] size, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
                  FactoryRule("empty", 1, 0), out=1)
ZEROS: Op = _made(f"zeros(SymInt[] size, *, {_OPTIONS}) -> Tensor", FactoryRule("zeros", 1, 0), 0, out=1)
ONES: Op = _made(f"ones(SymInt[] size, *, {_OPTIONS}) -> Tensor", FactoryRule("ones", 1, 0), 1, out=1)
FULL: Op = _made(f"full(SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor", FactoryRule("full", 2, 1), at=1,
                 out=2)

_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
EMPTY_LIKE: Op = _made(f"empty_like(Tensor self, *, {_LIKE}) -> Tensor", LikeRule("empty_like", 1))
ZEROS_LIKE: Op = _made(f"zeros_like(Tensor self, *, {_LIKE}) -> Tensor", LikeRule("zeros_like", 1), 0)
ONES_LIKE: Op = _made(f"ones_like(Tensor self, *, {_LIKE}) -> Tensor", LikeRule("ones_like", 1), 1)
FULL_LIKE: Op = _made(f"full_like(Tensor self, Scalar fill_value, *, {_LIKE}) -> Tensor", LikeRule("full_like", 2),
                      at=1)

NEW_EMPTY: Op = _made(f"new_empty(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor", NewRule("new_empty", 2))
NEW_ZEROS: Op = _made(f"new_zeros(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor", NewRule("new_zeros", 2), 0)
NEW_ONES: Op = _made(f"new_ones(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor", NewRule("new_ones", 2), 1)
NEW_FULL: Op = _made(f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor",
                 NewRule("new_full", 3), at=2)


def _empty_strided(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Spec:
    check_options("empty_strided", layout, pin_memory)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    check_sizes("empty_strided", size)
    dt = dtype or DEFAULTS.dtype
    strided_bytes(size, stride, 0, dt.itemsize)
    numel_of(size)
    return spec(size, dt, placed(device), stride)


EMPTY_STRIDED: Op = _made(f"empty_strided(SymInt[] size, SymInt[] stride, *, {_OPTIONS}) -> Tensor", _empty_strided)
NEW_EMPTY_STRIDED: Op = _made(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {_OPTIONS}) -> Tensor",
    lambda self, size, stride, dtype, layout, device, pin_memory:
    _empty_strided(size, stride, dtype or self._dtype, layout, device or self._device, pin_memory))


def _scalar_tensor(s: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Spec:
    check_options("scalar_tensor", layout, pin_memory)
    dt = dtype or DEFAULTS.dtype
    check_value(s, dt)
    return spec((), dt, placed(device))


SCALAR_TENSOR: Op = _made(f"scalar_tensor(Scalar s, *, {_OPTIONS}) -> Tensor", _scalar_tensor, at=0)


# -- sequences of numbers -----------------------------------------------------------------------------------------
def _sequence(schema: str, rule: Any, out: transfer.CreateOutKernel | None = None) -> Op:
    o = op(schema, meta=rule, nondifferentiable=True, function=False, method=False, out=out is not None)
    if out is not None:
        transfer.everywhere(o.row.out_op, out)
    return o


ARANGE: Op = _sequence(f"arange(Scalar start, Scalar end, Scalar step=1, *, {_OPTIONS}) -> Tensor", ArangeRule(),
                       transfer.CreateOutKernel(3, sequence=True, warns=True))
LINSPACE: Op = _sequence(f"linspace(Scalar start, Scalar end, int steps, *, {_OPTIONS}) -> Tensor",
                         SpacedRule("linspace", 3), transfer.CreateOutKernel(3, sequence=True))
LOGSPACE: Op = _sequence(f"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, {_OPTIONS}) -> Tensor",
                     SpacedRule("logspace", 4), transfer.CreateOutKernel(4, sequence=True))
EYE: Op = _sequence(f"eye(SymInt n, SymInt m, *, {_OPTIONS}) -> Tensor", EyeRule(), transfer.CreateOutKernel(2))


TRIL_INDICES: Op = _sequence(f"tril_indices(int row, int col, int offset=0, *, {_OPTIONS}) -> Tensor",
                             PlacesRule("tril_indices"))
TRIU_INDICES: Op = _sequence(f"triu_indices(int row, int col, int offset=0, *, {_OPTIONS}) -> Tensor",
                             PlacesRule("triu_indices"))


# -- complex numbers from parts -----------------------------------------------------------------------------------


_PARTS = ("float16", "float32", "float64")


def _parts_rule(a: Any, b: Any) -> Spec:
    if not (a._dtype.name in _PARTS and b._dtype.name in _PARTS):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{a._dtype.scalar_name} and {b._dtype.scalar_name}")
    if a._dtype is not b._dtype:
        raise RuntimeError(
            f"Expected object of scalar type {a._dtype.scalar_name} but got scalar type {b._dtype.scalar_name} for "
            "second argument")
    shape = broadcast([a, b])
    return spec(shape, a._dtype.to_complex(), a._device, ordered_strides(shape, [a, b]))


COMPLEX: Op = op("complex(Tensor real, Tensor imag) -> Tensor", meta=KeptRule(_parts_rule), out=True,
             grad=dict(real=lambda g: g.real, imag=lambda g: g.imag))
def _polar_rule(a: Any, b: Any) -> Spec:
    made = _parts_rule(a, b)
    if a._dtype.name == "float16" and a._device.type == "cpu":
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    return made


POLAR: Op = op("polar(Tensor abs, Tensor angle) -> Tensor", meta=KeptRule(_polar_rule), out=True,
           grad={("abs", "angle"): lambda g, result: _polar_grad(g, result)})


def _polar_grad(g: Any, result: Any) -> Any:
    # d result = result/abs d abs + i result d angle; at abs = 0 PyTorch takes the unit direction as 0.
    along = (g.conj() * result.sgn()).real
    around = (g.conj() * result * 1j).real
    return along, around
