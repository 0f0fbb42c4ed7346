"""Arithmetic on sizes: how many elements, how many bytes, and whether 64 bits hold them.

Invariant: nothing here wraps, compiled or not. What does not fit is PyTorch's error, raised before memory is
allocated or a tensor is made. Numbers of up to 31 bits, nearly all of them, take one test more than a plain product.
"""

from __future__ import annotations

from typing import Final

from ._mypyc import i64

Ints = tuple[int, ...]

LONG_MAX: Final = 9223372036854775807
LONG_MIN: Final = -9223372036854775808
# A compiled `int` of at most this many bits is compared without a call; beyond it the exact limits are asked.
SHORT: Final = 2305843009213693951
# Values of ragged sizes: above SHORT, so that only sizes which are looked at closely are compared with them.
RAGGED: Final = 3733654098412634112
RAGGED_END: Final = RAGGED + (1 << 59)

_MOST: Final[i64] = 9223372036854775807
_ULONG: Final = 18446744073709551616


def is_long(n: int) -> bool:
    """Whether 64 bits hold the number."""
    return -SHORT <= n <= SHORT or LONG_MIN <= n <= LONG_MAX


def long(n: int) -> int:
    """An int argument, which 64 bits must hold."""
    if not is_long(n):
        raise ValueError("Overflow when unpacking long long")
    return n


def is_ragged(n: object) -> bool:
    """Whether a number is the size of a ragged dimension, of which only the name is known."""
    whole = n  # what isinstance has looked at is a plain int from there on, in compiled code: ask before it, too
    return type(n) is not int and isinstance(n, int) and hasattr(whole, "node")


def concrete(sizes: Ints) -> None:
    """No tensor but a nested one has a ragged size. In the arguments of operators these are ints from RAGGED on."""
    for n in sizes:
        if RAGGED <= n < RAGGED_END:
            raise not_concrete()


def not_concrete() -> RuntimeError:
    return RuntimeError("SymIntArrayRef expected to contain only concrete integers")


def overflows(a: i64, b: i64) -> bool:
    """Whether the product of two sizes, neither negative, exceeds 63 bits."""
    if (a | b) >> 31 == 0:
        return False
    return b != 0 and a > _MOST // b


# -- elements -----------------------------------------------------------------------------------------------------
def numel_of(shape: Ints) -> i64:
    """The number of elements of a tensor of this shape."""
    n: i64 = 1
    for s in shape:
        if s < 0 or s > SHORT:
            return _numel_slowly(shape)
        size: i64 = s
        if overflows(n, size):
            return _numel_slowly(shape)
        n *= size
    return n


def _numel_slowly(shape: Ints) -> i64:
    """From the front and without signs, as PyTorch does it: a zero only helps sizes behind it."""
    concrete(shape)
    total = 1
    fits = True
    for s in shape:
        total *= s if s >= 0 else s + _ULONG
        if total >= _ULONG:
            fits = False
            total %= _ULONG
    if not fits or total > LONG_MAX:
        raise RuntimeError("numel: integer multiplication overflow")
    return total


# -- bytes --------------------------------------------------------------------------------------------------------
def dense_bytes(shape: Ints, itemsize: i64) -> i64:
    """The bytes of a tensor without gaps."""
    n: i64 = itemsize
    for s in shape:
        if s > SHORT:
            return _dense_slowly(shape, itemsize)
        size: i64 = s
        if overflows(n, size):
            return _dense_slowly(shape, itemsize)
        n *= size
    return n


def _dense_slowly(shape: Ints, itemsize: int) -> i64:
    concrete(shape)
    if empty_before(shape):
        return 0
    total = itemsize
    for s in shape:
        total *= s
    if total > LONG_MAX:
        raise too_large(shape)
    return total


def empty_before(shape: Ints) -> bool:
    """Whether a size of zero comes before the product of those in front of it has grown too large."""
    total = 1
    for s in shape:
        total *= s
        if total == 0:
            return True
        if total > LONG_MAX:
            return False
    return False


def too_large(shape: Ints) -> RuntimeError:
    concrete(shape)
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def strides_too_large(shape: Ints) -> RuntimeError:
    """Row-major strides that do not fit: PyTorch counts the bytes first, and of no elements there are none."""
    if empty_before(shape):
        return RuntimeError("Stride calculation overflowed")
    return too_large(shape)


def strided_bytes(shape: Ints, stride: Ints, offset: int, itemsize: int, shown: Ints | None = None) -> int:
    """Bytes from the start of a storage to behind the last element of a geometry somebody asked for; no elements need
    none. `shown`: the strides as they were given, empty where they were not."""
    reach = 1
    for i, s in enumerate(shape):
        if s > SHORT or stride[i] > SHORT:
            concrete(shape)
            concrete(stride)
        if s == 0:
            expect_sizes(shape)
            return 0
        if s < 0 or stride[i] < 0:
            raise geometry_too_large(shape, stride)
        reach += stride[i] * (s - 1)
    total = (reach + offset) * itemsize
    if total > LONG_MAX:
        raise too_large(shape) if shown == () and shape else geometry_too_large(shape, stride)
    return total


def expect_sizes(shape: Ints) -> None:
    """No tensor has a negative size, whatever its others are. PyTorch makes some where another size is 0."""
    for s in shape:
        if s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(shape)}")


def resized_bytes(shape: Ints, stride: Ints, offset: int, itemsize: int) -> int:
    """Bytes that a storage must have for a shape it is to be given."""
    reach = 1
    for i, s in enumerate(shape):
        if s > SHORT or stride[i] > SHORT:
            concrete(shape)
            concrete(stride)
        if s == 0:
            expect_sizes(shape)
            return 0
        reach += stride[i] * (s - 1)
    total = (reach + offset) * itemsize
    if total > LONG_MAX:
        raise too_large(shape)
    return total


def geometry_too_large(shape: Ints, stride: Ints) -> RuntimeError:
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(stride)}")


def new_bytes(shape: Ints, stride: Ints, itemsize: i64) -> i64:
    """The bytes of a new tensor, whose strides are none of the user's affair."""
    reach: i64 = 1
    i: i64 = 0
    for s in shape:
        step = stride[i]
        if s > _SMALL or step > _SMALL or reach > _SMALL_BYTES:
            return _bytes_slowly(shape, stride, itemsize)
        if s == 0:
            return 0
        a: i64 = s
        b: i64 = step
        reach += b * (a - 1)
        i += 1
    if reach > _SMALL_BYTES:
        return _bytes_slowly(shape, stride, itemsize)
    return reach * itemsize


_SMALL: Final = 2147483647
_SMALL_BYTES: Final[i64] = 288230376151711744


def _bytes_slowly(shape: Ints, stride: Ints, itemsize: int) -> i64:
    concrete(shape)
    reach = 1
    for i, s in enumerate(shape):
        if s == 0:
            return 0
        reach += stride[i] * (s - 1)
    if reach * itemsize > LONG_MAX:
        raise too_large(shape)
    return reach * itemsize
