"""The native module: CPU storage, its allocator, and the kernels (sources in csrc/kernels).

Invariant: an operand is four arguments (storage, offset, strides, dtype code), offset and strides in elements; shapes
and strides are tuples of ints. A kernel checks them against the size of the storage before it touches memory.
"""

from typing import Any, Final, TypeVar, final

_T = TypeVar("_T")
_Ints = tuple[int, ...]

@final
class Storage:
    """Uninitialised CPU memory, 64-byte aligned; a writable buffer of bytes."""

    def __new__(cls, nbytes: int, /) -> Storage: ...
    @staticmethod
    def wrap(address: int, nbytes: int, owner: object, /) -> Storage:
        """Foreign memory, kept alive by owner."""
    def resize(self, nbytes: int, /) -> None:
        """In place; the common prefix is kept."""
    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def resizable(self) -> bool: ...
    @property
    def owner(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

def alloc_instance(base: type[Any], cls: type[_T], /) -> _T: ...
def tls_get() -> int: ...
def tls_set(word: int, /) -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(count: int, /) -> None: ...
def empty_cache() -> None: ...
def memory_stats() -> dict[str, int]: ...
def copy(
    dst: Storage,
    dst_offset: int,
    dst_strides: _Ints,
    dst_code: int,
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    shape: _Ints,
    /,
) -> None: ...
def fill(dst: Storage, offset: int, strides: _Ints, code: int, shape: _Ints, value: complex, /) -> None: ...

# Pointwise and reducing operators. Inputs may be Python numbers instead of storages (their other three arguments are
# then not read); out may be None, then a new Storage is returned.

def unary(
    op: int,
    a: Storage | complex,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    compute_code: int,
    /,
) -> Storage: ...
def binary(
    op: int,
    a: Storage | complex,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    b: Storage | complex,
    b_offset: int,
    b_strides: _Ints,
    b_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    compute_code: int,
    alpha: complex,
    /,
) -> Storage: ...
def ternary(
    op: int,
    a: Storage | complex,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    b: Storage | complex | None,
    b_offset: int,
    b_strides: _Ints,
    b_code: int,
    c: Storage | complex | None,
    c_offset: int,
    c_strides: _Ints,
    c_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    compute_code: int,
    alpha: complex,
    /,
) -> Storage: ...
def reduce(
    op: int,
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    compute_code: int,
    out_numel: int = ...,
    /,
) -> Storage: ...

# Kernels with arguments of their own; the comment at the head of each source file lists them.
def addmm(*args: Any) -> Any: ...
def arange(*args: Any) -> Any: ...
def bgemm(*args: Any) -> Any: ...
def cumsum(*args: Any) -> Any: ...
def dot(*args: Any) -> Any: ...
def embedding(*args: Any) -> Any: ...
def embedding_backward(*args: Any) -> Any: ...
def eye(*args: Any) -> Any: ...
def flip(*args: Any) -> Any: ...
def from_list(*args: Any) -> Any: ...
def gather(*args: Any) -> Any: ...
def gemm(*args: Any) -> Any: ...
def index_add(*args: Any) -> Any: ...
def index_get(*args: Any) -> Any: ...
def index_put(*args: Any) -> Any: ...
def index_select(*args: Any) -> Any: ...
def item(*args: Any) -> Any: ...
def layer_norm(*args: Any) -> Any: ...
def layer_norm_backward(*args: Any) -> Any: ...
def linspace(*args: Any) -> Any: ...
def list_shape(*args: Any) -> Any: ...
def masked_fill(*args: Any) -> Any: ...
def masked_scatter(*args: Any) -> Any: ...
def masked_select(*args: Any) -> Any: ...
def nll_loss(*args: Any) -> Any: ...
def nll_loss_backward(*args: Any) -> Any: ...
def nonzero(*args: Any) -> Any: ...
def nonzero_count(*args: Any) -> Any: ...
def random_bernoulli(*args: Any) -> Any: ...
def random_fill(*args: Any) -> Any: ...
def random_permutation(*args: Any) -> Any: ...
def random_seed(*args: Any) -> Any: ...
def scatter(*args: Any) -> Any: ...
def softmax(*args: Any) -> Any: ...
def softmax_backward(*args: Any) -> Any: ...
def sort(*args: Any) -> Any: ...
def tolist(*args: Any) -> Any: ...
def tri(*args: Any) -> Any: ...
def var(*args: Any) -> Any: ...

# Unary operators.
NEG: Final[int]
ABS: Final[int]
SIGN: Final[int]
SGN: Final[int]
SQRT: Final[int]
RSQRT: Final[int]
SQUARE: Final[int]
EXP: Final[int]
EXP2: Final[int]
EXPM1: Final[int]
LOG: Final[int]
LOG2: Final[int]
LOG10: Final[int]
LOG1P: Final[int]
SIN: Final[int]
COS: Final[int]
TAN: Final[int]
ASIN: Final[int]
ACOS: Final[int]
ATAN: Final[int]
SINH: Final[int]
COSH: Final[int]
TANH: Final[int]
ASINH: Final[int]
ACOSH: Final[int]
ATANH: Final[int]
FLOOR: Final[int]
CEIL: Final[int]
ROUND: Final[int]
TRUNC: Final[int]
FRAC: Final[int]
RECIPROCAL: Final[int]
RELU: Final[int]
SIGMOID: Final[int]
GELU: Final[int]
GELU_TANH: Final[int]
SILU: Final[int]
ERF: Final[int]
ERFC: Final[int]
LOGICAL_NOT: Final[int]
BITWISE_NOT: Final[int]
ISNAN: Final[int]
ISINF: Final[int]
ISFINITE: Final[int]
SIGNBIT: Final[int]
POSITIVE: Final[int]
CONJ: Final[int]
REAL_ABS: Final[int]
ANGLE: Final[int]
LGAMMA: Final[int]
DIGAMMA: Final[int]
ERFINV: Final[int]
SINC: Final[int]

# Binary operators.
ADD: Final[int]
SUB: Final[int]
MUL: Final[int]
DIV: Final[int]
FLOOR_DIV: Final[int]
TRUNC_DIV: Final[int]
REMAINDER: Final[int]
FMOD: Final[int]
POW: Final[int]
MAXIMUM: Final[int]
MINIMUM: Final[int]
FMAX: Final[int]
FMIN: Final[int]
ATAN2: Final[int]
HYPOT: Final[int]
COPYSIGN: Final[int]
EQ: Final[int]
NE: Final[int]
LT: Final[int]
LE: Final[int]
GT: Final[int]
GE: Final[int]
LOGICAL_AND: Final[int]
LOGICAL_OR: Final[int]
LOGICAL_XOR: Final[int]
BITWISE_AND: Final[int]
BITWISE_OR: Final[int]
BITWISE_XOR: Final[int]
LSHIFT: Final[int]
RSHIFT: Final[int]
XLOGY: Final[int]
THRESHOLD_BACKWARD: Final[int]
SIGMOID_BACKWARD: Final[int]
TANH_BACKWARD: Final[int]
GELU_BACKWARD: Final[int]
GELU_TANH_BACKWARD: Final[int]
SILU_BACKWARD: Final[int]

# Ternary operators.
WHERE: Final[int]
ADDCMUL: Final[int]
ADDCDIV: Final[int]
LERP: Final[int]
CLAMP: Final[int]

# Reducing operators.
SUM: Final[int]
PROD: Final[int]
AMAX: Final[int]
AMIN: Final[int]
ANY: Final[int]
ALL: Final[int]
ARGMAX: Final[int]
ARGMIN: Final[int]
MEAN: Final[int]
