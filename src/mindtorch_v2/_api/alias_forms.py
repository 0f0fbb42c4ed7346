"""Operators of `torch.ops.aten` that are methods, properties or functions written by hand here, by PyTorch's schemas.

Invariant: an operator calls what its name says and nothing else; it runs, and differentiates, as that does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._core_operators import HOOKS
from .._dispatch.op import FnKernel, Op
from .._ops.rules.shape import check_options
from .._ops.table import Row

_ROOT = sys.modules[__package__.partition(".")[0]]
_METHODS = """
__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
coalesce(Tensor(a) self) -> Tensor(a)
indices(Tensor(a) self) -> Tensor(a)
values(Tensor(a) self) -> Tensor(a)
_indices(Tensor(a) self) -> Tensor(a)
_values(Tensor(a) self) -> Tensor(a)
_nnz(Tensor self) -> int
_dimI(Tensor self) -> int
_dimV(Tensor self) -> int
sparse_dim(Tensor self) -> int
dense_dim(Tensor self) -> int
is_coalesced(Tensor self) -> bool
crow_indices(Tensor(a) self) -> Tensor(a)
col_indices(Tensor(a) self) -> Tensor(a)
ccol_indices(Tensor(a) self) -> Tensor(a)
row_indices(Tensor(a) self) -> Tensor(a)
to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor
transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
t_(Tensor(a!) self) -> Tensor(a!)
squeeze_(Tensor(a!) self) -> Tensor(a!)
squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)
squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)
unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)
swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)
swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)
detach_(Tensor(a!) self) -> Tensor(a!)
requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
type_as(Tensor self, Tensor other) -> Tensor
item(Tensor self) -> Scalar
is_set_to(Tensor self, Tensor tensor) -> bool
is_complex(Tensor self) -> bool
is_floating_point(Tensor self) -> bool
is_inference(Tensor self) -> bool
is_signed(Tensor self) -> bool
is_nonzero(Tensor self) -> bool
is_distributed(Tensor self) -> bool
get_device(Tensor self) -> int
retain_grad(Tensor(a!) self) -> ()
sparse_mask(Tensor self, Tensor mask) -> Tensor
"""

_PROPERTIES = """
mT(Tensor(a) self) -> Tensor(a)
mH(Tensor(a) self) -> Tensor(a)
numpy_T(Tensor(a) self) -> Tensor(a)
matrix_H(Tensor(a) self) -> Tensor(a)
is_leaf(Tensor self) -> bool
output_nr(Tensor self) -> int
_version(Tensor self) -> int
retains_grad(Tensor self) -> bool
data(Tensor self) -> Tensor
"""

_FUNCTIONS = """
atleast_1d(Tensor self) -> Tensor
atleast_2d(Tensor self) -> Tensor
atleast_3d(Tensor self) -> Tensor
atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]
can_cast(ScalarType from_, ScalarType to) -> bool
promote_types(ScalarType type1, ScalarType type2) -> ScalarType
result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType
result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType
result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType
result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType
"""
# Functions with arguments that are only known by name; what was not given is left out.
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
_NAMED = f"""
arange(Scalar end, *, {_OPTIONS}) -> Tensor
arange.start(Scalar start, Scalar end, *, {_OPTIONS}) -> Tensor
bartlett_window(int window_length, *, {_OPTIONS}) -> Tensor
bartlett_window.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor
blackman_window(int window_length, *, {_OPTIONS}) -> Tensor
blackman_window.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor
eye(SymInt n, *, {_OPTIONS}) -> Tensor
fft_fftfreq(int n, float d=1.0, *, {_OPTIONS}) -> Tensor
fft_rfftfreq(int n, float d=1.0, *, {_OPTIONS}) -> Tensor
hamming_window(int window_length, *, {_OPTIONS}) -> Tensor
hamming_window.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor
hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, {_OPTIONS}) -> Tensor
hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, {_OPTIONS}) -> Tensor
hann_window(int window_length, *, {_OPTIONS}) -> Tensor
hann_window.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor
kaiser_window(int window_length, *, {_OPTIONS}) -> Tensor
kaiser_window.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor
kaiser_window.beta(int window_length, bool periodic, float beta, *, {_OPTIONS}) -> Tensor
linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, {_OPTIONS}) -> Tensor
linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, {_OPTIONS}) -> Tensor
linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, {_OPTIONS}) -> Tensor
logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, {_OPTIONS}) -> Tensor
logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, {_OPTIONS}) -> Tensor
logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, {_OPTIONS}) -> Tensor
normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, {_OPTIONS}) -> Tensor
rand.generator(SymInt[] size, *, Generator? generator, {_OPTIONS}) -> Tensor
randint(SymInt high, SymInt[] size, *, {_OPTIONS}) -> Tensor
randint.generator(SymInt high, SymInt[] size, *, Generator? generator, {_OPTIONS}) -> Tensor
randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, {_OPTIONS}) -> Tensor
randint_like(Tensor self, SymInt high, *, {_LIKE}) -> Tensor
randn.generator(SymInt[] size, *, Generator? generator, {_OPTIONS}) -> Tensor
randperm.generator(SymInt n, *, Generator? generator, {_OPTIONS}) -> Tensor
"""
# Where Python's name is another one.
_RENAMED = {"numpy_T": "T", "matrix_H": "H"}


def _method(name: str, op: Op) -> Callable[..., Any]:
    return lambda *args: getattr(HOOKS.tensor, name)(*args)


def _property(name: str, op: Op) -> Callable[..., Any]:
    return lambda self: getattr(self, name)


def _function(name: str, op: Op) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(_ROOT, name)
    return found


def _named(name: str, op: Op) -> Callable[..., Any]:
    made: Callable[..., Any] = getattr(_ROOT.fft, name[4:]) if name.startswith("fft_") else getattr(_ROOT, name)
    names = [a.name for a in op.schema.args if a.kwonly]
    count = len(op.schema.args) - len(names)

    def make(*args: Any) -> Any:
        given = {k: v for k, v in zip(names, args[count:]) if v is not None}
        if name.startswith("fft_"):
            # The public functions of `torch.fft` have no such argument.
            check_options(name, None, given.pop("pin_memory", None))
        return made(*args[:count], **given)

    return make


_KINDS = ((_METHODS, _method), (_PROPERTIES, _property), (_FUNCTIONS, _function), (_NAMED, _named))
_SCHEMAS: dict[str, list[tuple[str, Callable[[str, Op], Callable[..., Any]]]]] = {}
for _text, _kind in _KINDS:
    for _line in _text.strip().splitlines():
        _SCHEMAS.setdefault(_line.partition("(")[0].partition(".")[0], []).append((_line, _kind))
NAMES = frozenset(_SCHEMAS)
_MADE: dict[str, Op] = {}


def add(base: str, found: dict[str, Op]) -> None:
    """Add the overloads that no row serves."""
    for schema, kind in _SCHEMAS.get(base, ()):
        name = schema.partition("(")[0]
        overload = name.partition(".")[2] or "default"
        if overload not in found:
            if name not in _MADE:
                op = _MADE[name] = Op(name, schema)
                op.composite = FnKernel(kind(_RENAMED.get(base, base), op))
                op.row = Row("name", op, False, False)
            found[overload] = _MADE[name]
