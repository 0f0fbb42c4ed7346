"""The native module: CPU storage, its allocator, and the kernels (sources in csrc/kernels).

Invariant: an operand is four arguments (storage, offset, strides, dtype code), offset and strides in elements; shapes
and strides are tuples of ints. A kernel checks them against the size of the storage before it touches memory.
"""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final, SupportsIndex, TypeVar, final, overload

from typing_extensions import Self

_T = TypeVar("_T")
_Ints = tuple[int, ...]

class Shape(tuple[int, ...]):
    """What `Size` derives from: a tuple whose slices and sums are sizes again."""

    def __new__(cls, sizes: Iterable[SupportsIndex] = (), /) -> Self: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Self: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...

@final
class Function:
    """A public function of operators."""

    def __new__(cls, forms: tuple[Any, ...], write: Callable[[], Callable[..., Any]], /) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Self: ...
    @property
    def written(self) -> Any:
        """The same function in Python, which serves what is no plain case."""
    instead: Any
    __name__: str
    __qualname__: str

@final
class Method:
    """A public method of operators."""

    def __new__(cls, forms: tuple[Any, ...], write: Callable[[], Callable[..., Any]], /) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    @property
    def written(self) -> Any:
        """The same function in Python, which serves what is no plain case."""
    instead: Any
    __name__: str
    __qualname__: str

@final
class Overridable:
    """A public function written in Python, which handlers and modes see as a whole. `looks`: at all arguments (0), at
    the first one (1), or at the only one (2). `direct()` describes the calls that come to those of one
    operator, if there are any."""

    def __new__(
        cls,
        fn: Callable[..., Any],
        asking: Callable[..., Any],
        looks: int = 0,
        direct: Callable[[], tuple[Any, ...] | None] = ...,
        /,
    ) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    __name__: str
    __qualname__: str

class TensorMeta(type):
    """The class of Tensor and of its subclasses."""

def define_operators(cls: type[Any], /) -> None:
    """Operators of a compiled class answer NotImplemented for operands they do not know."""

def define_tensor_class(
    cls: type,
    kinds: frozenset[type],
    known: dict[str, tuple[Any, Any]],
    shown: Callable[[str, Any], Any],
    construct: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any],
    /,
) -> None: ...
def define_functions(
    call_out: Callable[..., Any],
    named: Callable[..., Any],
    default_device: Callable[[], Any],
    foreign: frozenset[str],
    watched: int,
    retold: Callable[[Any, tuple[Any, ...], dict[str, Any], BaseException], Exception | None],
    /,
) -> None: ...
def add_plain(cls: type, /) -> None: ...
def add_silent(cls: type, /) -> None: ...
def define_members(getattr: Callable[..., Any], call: Callable[..., Any], /) -> None: ...
def quicken(cls: type, /) -> None: ...
def show_modules(on: bool, /) -> None: ...
def begin_module(capsule: object, /) -> ModuleType: ...
def keep_instances(cls: type, known: dict[Any, Any], /) -> None: ...

@final
class Storage:
    """Uninitialised CPU memory, 64-byte aligned; a writable buffer of bytes."""

    def __new__(cls, nbytes: int, /) -> Storage: ...
    @staticmethod
    def wrap(address: int, nbytes: int, owner: object, /) -> Storage:
        """Foreign memory, kept alive by owner."""
    def exchange(self, other: Storage, /) -> bool:
        """Take the memory of a storage of the same size and give it this one's. Whether the old one may be in use."""
    def part(self) -> Storage:
        """A storage over all of this one's memory, which stays where it is meanwhile."""
    def fix(self) -> None:
        """The memory stays where it is from now on: its address was given away."""
    def lazy_clone(self) -> Storage | None:
        """The same bytes, copied by the first that is to write; None where the memory cannot be shared."""
    def materialize(self) -> bool:
        """Bytes of its own where lazy clones share them; whether they did."""
    def resize(self, nbytes: int, /) -> None:
        """In place; the common prefix is kept."""
    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def resizable(self) -> bool: ...
    @property
    def shared(self) -> bool: ...
    @property
    def owner(self) -> Any: ...
    wrapper: Any
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

def add_at(address: int, more: int, /) -> int: ...
def map_shared(fd: int, nbytes: int, /) -> int: ...
def unmap(address: int, nbytes: int, /) -> None: ...
def make_abstract(cls: type[Any], /) -> None: ...
def alloc_instance(base: type[Any], cls: type[_T], /) -> _T: ...
def object_at(address: int, /) -> Any: ...
def track(*objects: object) -> None: ...
def untrack(*objects: object) -> None: ...
def searchsorted(
    rows: Storage,
    rows_offset: int,
    rows_strides: _Ints,
    rows_code: int,
    rows_shape: _Ints,
    values: Storage,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    values_shape: _Ints,
    out: Storage,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    right: bool,
    /,
) -> bool:
    """Where values stand in sorted rows; False for dtypes that are not served."""

def equal(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    b: Storage,
    b_offset: int,
    b_strides: _Ints,
    b_code: int,
    shape: _Ints,
    /,
) -> bool | None:
    """Whether all elements are equal; None for dtypes that are not served."""

def bincount(
    x: Storage, offset: int, strides: _Ints, code: int, n: int, minlength: int, /
) -> tuple[Storage, int] | None:
    """How often each int occurs, and how many are counted; None for what is not counted here."""

def unique(
    x: Storage, offset: int, strides: _Ints, code: int, n: int, inverse: bool, counts: bool, few: int, /
) -> tuple[Storage, int, Storage, Storage] | None:
    """Distinct values in order, how many, the run of each element, the lengths of the runs; the last two have no
    elements unless wanted. None for other dtypes, and for more than `few` elements that need a sort."""

def unique_consecutive(
    x: Storage, offset: int, strides: _Ints, code: int, n: int, inverse: bool, counts: bool, /
) -> tuple[Storage, int, Storage, Storage] | None:
    """The same of neighbours that are equal."""

# Operands of n elements: storage, offset, strides, code. False for dtypes that are not served.
#   histc(x(4), n, out(4), bins, low, high)             how many fall into each of equal bins
#   mode(x(4), shape, values(4), places(4))             the commonest of each row, the smallest of several
#   isin(x(4), n, tests(4), count, out(4), invert)      which are among others
def histc(*args: Storage | int | float | _Ints) -> bool: ...
def mode(*args: Storage | int | _Ints) -> bool: ...
def isin(*args: Storage | int | _Ints) -> bool: ...

# Batches of small matrices, row-major: count, n, code, then storage and offset of each (csrc/kernels/linear.cpp).
# False where a matrix is singular, not finite or not positive definite: results are then anything.
def lu_small(*args: Storage | int) -> bool: ...
def solve_small(*args: Storage | int | None) -> bool: ...
def det_small(*args: Storage | int | None) -> bool: ...
def cholesky_small(*args: Storage | int) -> bool: ...
def triangular_small(*args: Storage | int) -> None: ...

# Of matrices of other shapes too: count, m, n, code (csrc/kernels/orthogonal.cpp).
def qr_small(*args: Storage | int | None) -> bool: ...
def qr_blocked(*args: Storage | int | None) -> bool: ...
def lstsq_small(*args: Storage | float) -> bool: ...
def spectrum_small(*args: Storage | int) -> bool: ...
def unpack_lu(*args: Storage | int | None) -> bool: ...
def cross3(*args: Storage | int | _Ints) -> None: ...

# Losses of sequences (csrc/kernels/ctc.cpp); False where a label is no class.
def ctc(*args: Storage | int | _Ints) -> bool: ...
def ctc_backward(*args: Storage | int | _Ints) -> bool: ...

# The same of larger ones, one after the other (csrc/kernels/linear_blocked.cpp).
def lu_blocked(*args: Storage | int) -> bool: ...
def solve_blocked(*args: Storage | int | None) -> bool: ...
def det_blocked(*args: Storage | int | None) -> bool: ...
def cholesky_blocked(*args: Storage | int) -> bool: ...
def triangular_blocked(*args: Storage | int) -> None: ...

# Transforms along the middle of [outer][n][inner], where n is a power of two. Modes: complex; reals to the first half
# and one more; back from those; reals to all. The code is that of the parts.
def fourier(
    mode: int,
    code: int,
    source: Storage,
    offset: int,
    out: Storage,
    out_offset: int,
    outer: int,
    n: int,
    inner: int,
    forward: bool,
    scale: float,
    /,
) -> None: ...
def tls_get() -> int: ...
def tls_set(word: int, /) -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(count: int, /) -> None: ...
def cpu_avx10() -> int: ...
def cpu_caches() -> tuple[int, int]: ...
def cpu_products() -> tuple[bool, bool]: ...
def cpu_level() -> str: ...
def set_flush_denormal(on: int, /) -> bool: ...
def empty_cache() -> None: ...
def memory_stats() -> dict[str, int]: ...
def watch_memory(on: bool, /) -> list[tuple[int, int, int, int]]: ...
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
    *numbers: float,
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
    *numbers: float,
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
def from_list(*args: Any) -> Any: ...
def item(*args: Any) -> Any: ...
def list_shape(*args: Any) -> Any: ...
def random_bernoulli(*args: Any) -> Any: ...
def random_fill(*args: Any) -> Any: ...
def random_given(*args: Any) -> Any: ...
def random_permutation(*args: Any) -> Any: ...
def random_places(*args: Any) -> int: ...
def random_seed(*args: Any) -> Any: ...
def join(*args: Any) -> Any: ...
def fused_adam(*args: Any) -> bool: ...
def fused_sgd(*args: Any) -> bool: ...
def fused_adagrad(*args: Any) -> bool: ...
def array_info(*args: Any) -> Any: ...
def tolist(*args: Any) -> Any: ...

# Unary, binary and ternary operators, by the names in csrc/kernels/pointwise.h.
def __getattr__(name: str) -> int: ...

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
NORM1: Final[int]
NORM2: Final[int]
NANSUM: Final[int]

# ---------------------------------------------------------------- fused, indexing, scanning, products

_Indices = tuple[tuple[Storage, int, _Ints], ...] | list[tuple[Storage, int, _Ints]]

# Fused, indexing, scanning and product kernels (nn, norm, index, masking, scan, arrange, matmul). An out of None
# makes a new Storage, which is returned; its strides then describe a dense layout. [dense]: the elements lie one
# after the other and the strides are not read.

def softmax(
    log: int,
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    dim: int,
    /,
) -> Storage:
    """float32, float64, float16, bfloat16, as all kernels of this group."""

def logsumexp(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    dim: int,
    /,
) -> Storage:
    """Along dim, which the result does not have."""

def softmax_backward(
    log: int,
    grad: Storage,
    grad_offset: int,
    grad_strides: _Ints,
    grad_code: int,
    y: Storage,
    y_offset: int,
    y_strides: _Ints,
    y_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    dim: int,
    /,
) -> Storage:
    """y: the result of the forward."""

def layer_norm(
    x: Storage,
    x_offset: int,
    x_strides: _Ints,
    x_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_strides: _Ints,
    weight_code: int,
    bias: Storage | None,
    bias_offset: int,
    bias_strides: _Ints,
    bias_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    mean: Storage | None,
    mean_offset: int,
    mean_strides: _Ints,
    mean_code: int,
    rstd: Storage | None,
    rstd_offset: int,
    rstd_strides: _Ints,
    rstd_code: int,
    outer: int,
    inner: int,
    eps: float,
    /,
) -> Storage:
    """All [dense]; weight, bias, mean, rstd None: there is none, not wanted."""

def lstm_cell(*operands_rows_width: Any) -> None:
    """input_gates.., hidden_gates.., cx.., input_bias|None.., hidden_bias|None.., hy.., cy.., workspace.., rows,
    width"""

def lstm_cell_backward(*operands_rows_width: Any) -> None:
    """grad_hy|None.., grad_cy|None.., cx.., cy.., workspace.., gates.., dcx.., rows, width"""

def gru_cell(*operands_rows_width: Any) -> None:
    """input_gates.., hidden_gates.., hx.., input_bias|None.., hidden_bias|None.., hy.., workspace.., rows, width"""

def gru_cell_backward(*operands_rows_width: Any) -> None:
    """grad_hy.., workspace.., input_gates.., hidden_gates.., dhx.., rows, width"""

def layer_norm_backward(
    grad: Storage,
    grad_offset: int,
    grad_strides: _Ints,
    grad_code: int,
    x: Storage,
    x_offset: int,
    x_strides: _Ints,
    x_code: int,
    mean: Storage,
    mean_offset: int,
    mean_strides: _Ints,
    mean_code: int,
    rstd: Storage,
    rstd_offset: int,
    rstd_strides: _Ints,
    rstd_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_strides: _Ints,
    weight_code: int,
    dx: Storage | None,
    dx_offset: int,
    dx_strides: _Ints,
    dx_code: int,
    dweight: Storage | None,
    dweight_offset: int,
    dweight_strides: _Ints,
    dweight_code: int,
    dbias: Storage | None,
    dbias_offset: int,
    dbias_strides: _Ints,
    dbias_code: int,
    outer: int,
    inner: int,
    /,
) -> None:
    """All [dense]; dx, dweight, dbias None: not wanted."""

def nll_loss(
    logp: Storage,
    logp_offset: int,
    logp_strides: _Ints,
    logp_code: int,
    target: Storage,
    target_offset: int,
    target_strides: _Ints,
    target_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_strides: _Ints,
    weight_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    total_weight: Storage,
    total_weight_offset: int,
    total_weight_strides: _Ints,
    total_weight_code: int,
    n: int | tuple[int, int],
    c: int,
    reduction: int,
    ignore_index: int,
    /,
) -> Storage:
    """logp: strides (row, class), or (image, place, class) where n is (images, places). target: (row,), int64 or uint8.
    out: (row,) for reduction 0, () for 1 and 2.

    reduction: 0 none, 1 mean, 2 sum. weight and total_weight (one element, written) are [dense]."""

def nll_loss_backward(
    grad: Storage,
    grad_offset: int,
    grad_strides: _Ints,
    grad_code: int,
    target: Storage,
    target_offset: int,
    target_strides: _Ints,
    target_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_strides: _Ints,
    weight_code: int,
    total_weight: Storage,
    total_weight_offset: int,
    total_weight_strides: _Ints,
    total_weight_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    n: int | tuple[int, int],
    c: int,
    reduction: int,
    ignore_index: int,
    /,
) -> Storage:
    """out: strides (row, class), all written."""

def var(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    mean: Storage | None,
    mean_offset: int,
    mean_strides: _Ints,
    mean_code: int,
    shape: _Ints,
    correction: float,
    take_sqrt: int,
    /,
) -> Storage:
    """Strides of out and mean: one per dimension of shape, 0 where it is reduced. dtypes: as a. mean may be None."""

# Indices are int64 or int32 and are checked before anything is written. Data of all dtypes.

def gather(
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    index_shape: _Ints,
    src_shape: _Ints,
    dim: int,
    /,
) -> Storage: ...
def scatter(
    out: Storage,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    src: Storage | complex,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    index_shape: _Ints,
    out_shape: _Ints,
    dim: int,
    reduce: int,
    /,
) -> None:
    """reduce: 0 assign, 1 add, 2 multiply, 3 amax, 4 amin. A number as src: pass (number, 0, (), 0)."""

def index_select(
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    src_shape: _Ints,
    dim: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    n: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    /,
) -> Storage:
    """index: one stride, or () for a scalar."""

def index_add(
    out: Storage,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    out_shape: _Ints,
    dim: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    n: int,
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    alpha: complex,
    /,
) -> None: ...
def index_get(
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    indices: _Indices,
    dims: _Ints,
    sizes: _Ints,
    steps: _Ints,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    /,
) -> Storage:
    """src_strides are over the result `shape`, 0 where an index decides; an index has strides over `shape` too.

    For each index: the dimension named in the error, the size of what it indexes, and its stride in src."""

def index_put(
    dst: Storage,
    dst_offset: int,
    dst_strides: _Ints,
    dst_code: int,
    indices: _Indices,
    dims: _Ints,
    sizes: _Ints,
    steps: _Ints,
    src: Storage | complex,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    shape: _Ints,
    accumulate: int,
    /,
) -> None: ...
def sparse_product(
    outer: Storage,
    outer_offset: int,
    outer_strides: _Ints,
    outer_code: int,
    inner: Storage,
    inner_offset: int,
    inner_strides: _Ints,
    inner_code: int,
    values: Storage,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    dense: Storage,
    dense_offset: int,
    dense_strides: _Ints,
    dense_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    rows: int,
    inner_count: int,
    columns: int,
    nnz: int,
    /,
) -> Storage: ...
def sparse_merge(
    first: Storage,
    first_offset: int,
    first_strides: _Ints,
    first_code: int,
    second: Storage,
    second_offset: int,
    second_strides: _Ints,
    second_code: int,
    first_places: Storage,
    first_places_offset: int,
    first_places_strides: _Ints,
    first_places_code: int,
    second_places: Storage,
    second_places_offset: int,
    second_places_strides: _Ints,
    second_places_code: int,
    n: int,
    m: int,
    /,
) -> int: ...
def embedding(
    weight: Storage,
    weight_offset: int,
    weight_strides: _Ints,
    weight_code: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    n: int,
    rows: int,
    dim: int,
    /,
) -> Storage:
    """weight: strides (row, column). index and out: [dense]."""

def embedding_backward(
    grad: Storage,
    grad_offset: int,
    grad_strides: _Ints,
    grad_code: int,
    index: Storage,
    index_offset: int,
    index_strides: _Ints,
    index_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    n: int,
    rows: int,
    dim: int,
    padding_idx: int,
    scale_by_freq: int,
    /,
) -> Storage:
    """grad: strides (row, column). index and out (rows x dim, all written): [dense]."""

def nonzero_count(a: Storage, a_offset: int, a_strides: _Ints, a_code: int, shape: _Ints, /) -> int: ...
def nonzero(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    shape: _Ints,
    out: Storage,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    n: int,
    /,
) -> None:
    """out: int64, strides (element, dimension) over (n, ndim)."""

def masked_fill(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    mask: Storage,
    mask_offset: int,
    mask_strides: _Ints,
    mask_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    value: complex,
    /,
) -> Storage: ...
def masked_select(
    src: Storage,
    src_offset: int,
    src_strides: _Ints,
    src_code: int,
    mask: Storage,
    mask_offset: int,
    mask_strides: _Ints,
    mask_code: int,
    shape: _Ints,
    out: Storage | None,
    out_offset: int,
    /,
) -> tuple[Storage, int]:
    """The elements one after the other, and their number."""

def masked_scatter(
    out: Storage,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    mask: Storage,
    mask_offset: int,
    mask_strides: _Ints,
    mask_code: int,
    source: Storage,
    source_offset: int,
    source_strides: _Ints,
    source_code: int,
    source_numel: int,
    shape: _Ints,
    /,
) -> None:
    """source: [dense]."""

def cumsum(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    dim: int,
    compute_code: int,
    op: int,
    /,
) -> Storage:
    """op: 0 sum, 1 product. a is cast to compute_code first; out has that dtype."""

def cumulative_extreme(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    values: Storage,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    indices: Storage,
    indices_offset: int,
    indices_strides: _Ints,
    indices_code: int,
    shape: _Ints,
    dim: int,
    largest: bool,
    /,
) -> None:
    """The largest or smallest so far along a dimension, and its place."""

def topk(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    values: Storage,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    indices: Storage,
    indices_offset: int,
    indices_strides: _Ints,
    indices_code: int,
    shape: _Ints,
    dim: int,
    k: int,
    largest: bool,
    /,
) -> None:
    """The k largest, or smallest, elements in order; NaN is the largest."""

def kth(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    values: Storage,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    indices: Storage,
    indices_offset: int,
    indices_strides: _Ints,
    indices_code: int,
    shape: _Ints,
    dim: int,
    rank: int,
    nans: int,
    /,
) -> None:
    """The element of a rank of each lane, or its median, and its place."""

def sort(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    values: Storage | None,
    values_offset: int,
    values_strides: _Ints,
    values_code: int,
    indices: Storage | None,
    indices_offset: int,
    indices_strides: _Ints,
    indices_code: int,
    shape: _Ints,
    dim: int,
    descending: int,
    /,
) -> tuple[Storage, Storage]:
    """Always stable; NaN is the largest."""

def flip(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    dims: _Ints,
    /,
) -> Storage: ...
def tri(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    a_code: int,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    out_code: int,
    shape: _Ints,
    k: int,
    upper: int,
    /,
) -> Storage: ...
def arange(out: Storage | None, code: int, n: int, start: float, step: float, /) -> Storage:
    """Dense, from the first byte of out on, as linspace and eye."""

def linspace(out: Storage | None, code: int, n: int, start: complex, end: complex, /) -> Storage: ...
def triangle(out: Storage | None, code: int, n: int, rows: int, columns: int, k: int, upper: bool, /) -> Storage: ...
def eye(out: Storage | None, code: int, rows: int, columns: int, /) -> Storage: ...

# Matrices have strides (row, column), batches (batch, row, column); all operands have the dtype `code`.

def gemm_bytes(
    a: Storage,
    a_offset: int,
    a_stride: _Ints,
    a_code: int,
    b: Storage,
    b_offset: int,
    b_stride: _Ints,
    b_code: int,
    out: Storage,
    out_offset: int,
    out_stride: _Ints,
    out_code: int,
    m: int,
    n: int,
    k: int,
    /,
) -> bool: ...
def gemm(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    b: Storage,
    b_offset: int,
    b_strides: _Ints,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    code: int,
    m: int,
    n: int,
    k: int,
    alpha: complex,
    beta: complex,
    /,
) -> Storage:
    """beta * out + alpha * a @ b; with beta 0 out is not read."""

def addmm(
    c: Storage,
    c_offset: int,
    c_strides: _Ints,
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    b: Storage,
    b_offset: int,
    b_strides: _Ints,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    code: int,
    m: int,
    n: int,
    k: int,
    alpha: complex,
    beta: complex,
    /,
) -> Storage:
    """beta * c + alpha * a @ b; c may be broadcast."""

def bgemm(
    a: Storage,
    a_offset: int,
    a_strides: _Ints,
    b: Storage,
    b_offset: int,
    b_strides: _Ints,
    out: Storage | None,
    out_offset: int,
    out_strides: _Ints,
    code: int,
    batch: int,
    m: int,
    n: int,
    k: int,
    alpha: complex,
    beta: complex,
    /,
) -> Storage: ...
def dot(
    a: Storage,
    a_offset: int,
    a_stride: int,
    b: Storage,
    b_offset: int,
    b_stride: int,
    n: int,
    code: int,
    out: Storage | None,
    out_offset: int,
    /,
) -> Storage: ...
def im2col(
    x: Storage,
    x_offset: int,
    x_code: int,
    columns: Storage,
    columns_offset: int,
    columns_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    /,
) -> None:
    """Planes to columns of their windows."""

def col2im(
    columns: Storage,
    columns_offset: int,
    columns_code: int,
    x: Storage,
    x_offset: int,
    x_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    /,
) -> None:
    """Columns of windows added into planes."""

def conv(
    x: Storage,
    x_offset: int,
    x_code: int,
    weight: Storage,
    weight_offset: int,
    weight_code: int,
    bias: Storage | None,
    bias_offset: int,
    bias_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    images: int,
    groups: int,
    channels: int,
    results: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    /,
) -> bool:
    """Convolution; False for proportions that it leaves to others."""

def conv_input(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    weight: Storage,
    weight_offset: int,
    weight_code: int,
    bias: Storage | None,
    bias_offset: int,
    bias_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    images: int,
    groups: int,
    channels: int,
    results: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    /,
) -> bool:
    """The gradient of a convolution's input, or a transposed convolution."""

def conv_weight(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    x: Storage,
    x_offset: int,
    x_code: int,
    bias: Storage | None,
    bias_offset: int,
    bias_code: int,
    dweight: Storage,
    dweight_offset: int,
    dweight_code: int,
    images: int,
    groups: int,
    channels: int,
    results: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    /,
) -> bool:
    """The gradient of a convolution's weights."""

def channel_norm(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_code: int,
    bias: Storage | None,
    bias_offset: int,
    bias_code: int,
    mean: Storage,
    mean_offset: int,
    mean_code: int,
    var: Storage,
    var_offset: int,
    var_code: int,
    rstd: Storage | None,
    rstd_offset: int,
    rstd_code: int,
    images: int,
    channels: int,
    places: int,
    groups: int,
    last: bool,
    eps: float,
    given: bool,
    /,
) -> None:
    """Batch norm (no groups), or group norm, of planes of places; last: of places with their channels side by side."""

def running_update(
    running: Storage | None,
    running_offset: int,
    running_code: int,
    seen: Storage | None,
    seen_offset: int,
    seen_code: int,
    count: int,
    momentum: float,
    factor: float,
) -> None:
    """Running statistics of batch norm."""

def channel_norm_backward(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    x: Storage,
    x_offset: int,
    x_code: int,
    mean: Storage,
    mean_offset: int,
    mean_code: int,
    rstd: Storage,
    rstd_offset: int,
    rstd_code: int,
    weight: Storage | None,
    weight_offset: int,
    weight_code: int,
    dx: Storage | None,
    dx_offset: int,
    dx_code: int,
    dweight: Storage | None,
    dweight_offset: int,
    dweight_code: int,
    dbias: Storage | None,
    dbias_offset: int,
    dbias_code: int,
    images: int,
    channels: int,
    places: int,
    groups: int,
    last: bool,
    fixed: bool,
    /,
) -> None:
    """The gradients of channel_norm."""

def pad_number(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    before: _Ints,
    value: complex,
    /,
) -> None:
    """Planes with a number around them."""

def pad_planes(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    before: _Ints,
    mode: int,
    /,
) -> None:
    """Planes with their surroundings: mirrored (0), the edge (1), or around the corner (2)."""

def pad_planes_backward(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    before: _Ints,
    mode: int,
    /,
) -> None:
    """Each place's gradient added where pad_planes read it."""

def plane_sums(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    images: int,
    channels: int,
    places: int,
    /,
) -> None:
    """The sum of each channel."""

def pool_line(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    rows: int,
    n: int,
    places: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    /,
) -> None:
    """The largest element of each window of a row."""

def bessel(
    kind: int, x: Storage, x_offset: int, x_code: int, out: Storage, out_offset: int, out_code: int, n: int, /
) -> None:
    """A modified Bessel function of each element."""

def frexp(
    x: Storage,
    x_offset: int,
    x_code: int,
    mantissa: Storage,
    mantissa_offset: int,
    mantissa_code: int,
    exponent: Storage,
    exponent_offset: int,
    exponent_code: int,
    n: int,
    /,
) -> None:
    """Mantissas and exponents of floats."""

def dlpack_make(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    code: int,
    bits: int,
    device_type: int,
    device: int,
    version: int,
    flags: int,
    owner: Any,
    /,
) -> Any:
    """A capsule of a tensor."""

def dlpack_take(capsule: Any, /) -> tuple[Any, ...] | None:
    """What a capsule says, which is used up."""

def bag_rows(
    weight: Storage,
    weight_offset: int,
    weight_code: int,
    indices: Storage,
    indices_offset: int,
    indices_code: int,
    starts: Storage,
    starts_offset: int,
    starts_code: int,
    scale: Storage | None,
    scale_offset: int,
    scale_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    where: Storage,
    where_offset: int,
    where_code: int,
    sizes: Storage,
    sizes_offset: int,
    sizes_code: int,
    n: int,
    bags: int,
    rows: int,
    width: int,
    mean: bool,
    padding: int,
    /,
) -> bool:
    """Sums or means of rows of a table, bag by bag; whether starts and indices were in order."""

def pair_distances(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    rows: int,
    width: int,
    p: float,
    /,
) -> None:
    """Distances of all pairs of rows."""

def pair_distances_backward(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    x: Storage,
    x_offset: int,
    x_code: int,
    distances: Storage,
    distances_offset: int,
    distances_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    rows: int,
    width: int,
    p: float,
    /,
) -> None:
    """The gradient of pair_distances."""

def cross_distances(
    a: Storage,
    a_offset: int,
    a_code: int,
    b: Storage,
    b_offset: int,
    b_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    batch: int,
    rows: int,
    columns: int,
    width: int,
    p: float,
    /,
) -> None:
    """Distances of the rows of two matrices."""

def grid_sample(
    x: Storage,
    x_offset: int,
    x_code: int,
    grid: Storage,
    grid_offset: int,
    grid_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    images: int,
    channels: int,
    sizes: _Ints,
    out_sizes: _Ints,
    rank: int,
    mode: int,
    padding: int,
    align: int,
    /,
) -> None:
    """Images read at the places of a grid: zeros, border or reflection around them; linear, nearest or cubic."""

def grid_sample_backward(*args: Storage | int | _Ints | None) -> None:
    """Gradients of `grid_sample`: grad, x, grid, dx or None, dgrid or None, and its numbers."""

def pool_max(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    places: Storage,
    places_offset: int,
    places_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    dilation: _Ints,
    /,
) -> None:
    """The largest element of each window, and its place."""

def pool_mean(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    counts: _Ints,
    divisor: int,
    /,
) -> None:
    """The mean of each window; divisor 0: by the product of its counts."""

def pool_mean_backward(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    counts: _Ints,
    divisor: int,
    /,
) -> None:
    """Each mean's gradient shared out over its window."""

def resample(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    planes: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    taps: _Ints,
    places: _Ints,
    weights: tuple[float, ...],
    backward: bool,
    /,
) -> None:
    """Weighted sums of taps per dimension, or their transpose."""

def resample_bytes(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    outer: int,
    size: int,
    inner: int,
    results: int,
    counts: _Ints,
    places: _Ints,
    weights: _Ints,
    bits: int,
    /,
) -> None:
    """Bytes resampled along one dimension, in fixed point."""

def pool_fractional(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    places: Storage,
    places_offset: int,
    places_code: int,
    starts: Storage,
    starts_offset: int,
    starts_code: int,
    planes: int,
    input: _Ints,
    output: _Ints,
    kernel: _Ints,
    /,
) -> None:
    """The largest of windows that are listed, and its place."""

def pool_max_last(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    places: Storage,
    places_offset: int,
    places_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    dilation: _Ints,
    /,
) -> None:
    """pool_max, channels last."""

def pool_mean_last(
    x: Storage,
    x_offset: int,
    x_code: int,
    out: Storage,
    out_offset: int,
    out_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    counts: _Ints,
    divisor: int,
    /,
) -> None:
    """pool_mean, channels last."""

def pool_mean_backward_last(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    starts: _Ints,
    ends: _Ints,
    counts: _Ints,
    divisor: int,
    /,
) -> None:
    """pool_mean_backward, channels last."""

def pool_max_backward_last(
    grad: Storage,
    grad_offset: int,
    grad_code: int,
    places: Storage,
    places_offset: int,
    places_code: int,
    dx: Storage,
    dx_offset: int,
    dx_code: int,
    images: int,
    channels: int,
    input: _Ints,
    output: _Ints,
    /,
) -> None:
    """Gradients of maxima added at their places, channels last."""

# Convolution of each channel by itself, channels last. Storage, offset, code of input, weight, bias (or None), result
# (or gradient, weight, None, gradient of the input; gradient, input, None, gradient of the weight); images, channels,
# then triples: in, out, kernel, stride, padding, dilation.

def depthwise_last(*args: Storage | int | _Ints | None) -> None: ...
def conv_channels(*args: Storage | int | _Ints | None) -> bool: ...
def conv_input_channels(*args: Storage | int | _Ints | None) -> bool: ...
def depthwise_input_last(*args: Storage | int | _Ints | None) -> None: ...
def depthwise_weight_last(*args: Storage | int | _Ints | None) -> None: ...

# A layer of a recurrent network in one direction, and its gradient: storage, offset, code of each operand (None: not
# there), then kind, steps, rows, width, whether it runs backwards; csrc/kernels/recurrent.cpp says which operands.

def recurrent(*args: Storage | int | _Ints | None) -> None: ...
def recurrent_backward(*args: Storage | int | _Ints | None) -> None: ...

# Attention. Both begin with: batch, heads, heads of keys, queries, keys, width, width of values, whether only earlier
# keys are seen, scale; then storage, offset, strides, code of queries, keys, values and the mask (None: none). Behind
# them: the result and the logarithms of its rows' sums; or gradient, result, sums, and three gradients to be written.

def attention(*args: Storage | float | _Ints | None) -> None: ...
def attention_backward(*args: Storage | float | _Ints | None) -> None: ...

# Sizes

def vendor_function(
    create: int,
    destroy: int,
    create_list: int,
    destroy_list: int,
    phase1: int,
    phase2: int,
    destroy_executor: int,
    letters: bytes,
    name: str,
    make_repeatable: int | None,
    last_message: int | None,
    /,
) -> object: ...
def vendor_launch(
    function: object,
    arguments: list[Any],
    operator: str,
    device: int,
    stream: int,
    whole: bool | Callable[[int, int], Any],
    keep: int,
    /,
) -> tuple[int, int, int, int, list[int], list[int]] | None: ...
def vendor_kept() -> int: ...
def vendor_forget() -> int: ...
def vendor_phase2(function: int, workspace: int, size: int, executor: int, stream: int, /) -> int: ...
def vendor_destroy(function: int, handles: list[Any], /) -> int: ...
def vendor_record(function: str, operator: str, device: int, stream: int, /) -> None: ...
@overload
def vendor_launches() -> int: ...
@overload
def vendor_launches(n: int, /) -> tuple[str, str, int, int, Any, int]: ...
def vendor_ours(prefixes: tuple[str, ...], /) -> None: ...
def vendor_thread(value: Any = ..., /) -> Any: ...
def define_size(cls: type, checked: Any, joined: Any, /) -> None:
    """The class of sizes, and what serves its rarer cases: other iterables, and other sums."""
