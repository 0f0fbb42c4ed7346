"""Comparison of tensors, numbers and containers of them, with messages that say what differs and where.

A comparison has two halves: `originate_pairs` takes containers apart into pairs of leaves, each of the first kind of
`Pair` that can deal with it, and `Pair.compare` raises an `ErrorMeta` where the leaves differ. Invariant: what reaches
a user is the error an `ErrorMeta` stands for, with the place in the containers.
"""

from __future__ import annotations

import abc
import cmath
import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import mindtorch_v2 as torch

from .._dtype import dtype as dtype_type
from .._tensor import Tensor
from .._warn import warn

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_allclose",
    "assert_close",
    "default_tolerances",
    "get_tolerances",
    "make_scalar_mismatch_msg",
    "make_tensor_mismatch_msg",
    "not_close_error_metas",
    "originate_pairs",
]

Identifier = str | Callable[[str], str] | None

_FILE_AN_ISSUE = (
    "If you are a user and see this message during normal operation please file an issue at "
    "https://github.com/pytorch/pytorch/issues. If you are a developer and working on the comparison functions, please "
)


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """The whole of tensors that are spread over processes; others as they are."""
    spread = sys.modules.get("mindtorch_v2.distributed.tensor")
    kind = getattr(spread, "DTensor", None)
    if kind is None:
        return actual, expected
    whole = [x.full_tensor() if isinstance(x, kind) else x for x in (actual, expected)]
    return whole[0], whole[1]


class ErrorMeta(Exception):
    """An error that will be raised, and where in nested containers it was found."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(_FILE_AN_ISSUE + "`raise ErrorMeta.to_error()` for user facing errors.")
        self.type = type
        self.msg = msg
        self.id = id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error itself; `msg` replaces its text, or makes one of it."""
        if isinstance(msg, str):
            return self.type(msg)
        text = self.msg
        if self.id:
            text += f"\n\nThe failure occurred for item {_path(self.id)}"
        return self.type(msg(text) if callable(msg) else text)


def _path(id: tuple[Any, ...]) -> str:
    return "".join(str([item]) for item in id)


# -- tolerances -------------------------------------------------------------------------------------------------------
# Relative and absolute; dtypes that are not here have to be equal.
_DTYPE_PRECISIONS: dict[dtype_type, tuple[float, float]] = {
    torch.float16: (0.001, 1e-5),
    torch.bfloat16: (0.016, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


def default_tolerances(
    *inputs: Any, dtype_precisions: dict[dtype_type, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """The larger tolerances, relative and absolute, of tensors or dtypes."""
    precisions = dtype_precisions or _DTYPE_PRECISIONS
    found = []
    for item in inputs:
        dtype = item.dtype if isinstance(item, Tensor) else item
        if not isinstance(dtype, dtype_type):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(item)} instead.")
        found.append(precisions.get(dtype, (0.0, 0.0)))
    rtols, atols = zip(*found)
    return max(rtols), max(atols)


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """The tolerances that were given, or those of the inputs; one alone is refused."""
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    missing = "rtol" if rtol is None else "atol"
    raise ErrorMeta(
        ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", id=id
    )


# -- messages ---------------------------------------------------------------------------------------------------------
def _headline(default: str, identifier: Identifier, relation: str) -> str:
    name = default if identifier is None else identifier(default) if callable(identifier) else identifier
    return f"{name} are not {relation}!"


def _relation(equality: bool) -> str:
    return "equal" if equality else "close"


def _allowed(tolerance: float, equality: bool) -> str:
    return "" if equality else f" (up to {tolerance} allowed)"


def make_scalar_mismatch_msg(
    actual: Any, expected: Any, *, rtol: float, atol: float, identifier: Identifier = None
) -> str:
    """How two numbers differ."""
    equality = rtol == 0 and atol == 0
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return (
        _headline("Scalars", identifier, _relation(equality))
        + f"\n\nExpected {expected} but got {actual}."
        + f"\nAbsolute difference: {difference}{_allowed(atol, equality)}"
        + f"\nRelative difference: {relative}{_allowed(rtol, equality)}"
    )


def _is_small_float(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1


def make_tensor_mismatch_msg(
    actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float, identifier: Identifier = None
) -> str:
    """How many elements of two tensors differ, and where they differ most; `matches` says which do not."""
    count = matches.numel()
    wrong = count - int(matches.sum())
    mismatched = f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"
    if _is_small_float(actual):
        first = tuple(torch.nonzero(~matches)[0].tolist())
        return (
            _headline("Tensor-likes", identifier, "'equal'")
            + f"\n\n{mismatched}\nThe first mismatched element is at index {first}."
        )
    left, right, equal = actual.flatten(), expected.flatten(), matches.flatten()
    if not left.dtype.is_floating_point and not left.dtype.is_complex:
        # Differences of small or unsigned integers would wrap, and bools cannot be subtracted.
        left, right = left.to(torch.int64), right.to(torch.int64)
    equality = rtol == 0 and atol == 0
    text = _headline("Tensor-likes", identifier, _relation(equality)) + "\n\n" + mismatched
    difference = torch.abs(left - right)
    difference[equal] = 0
    relative = difference / torch.abs(right)
    relative[equal] = 0
    for name, values, tolerance in (("absolute", difference, atol), ("relative", relative, rtol)):
        value, place = torch.max(values, 0)
        index = _unravel(int(place), tuple(matches.shape))
        text += f"\nGreatest {name} difference: {value.item()} at index {index}{_allowed(tolerance, equality)}"
    return text


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        place, inner = divmod(place, size)
        index.insert(0, inner)
    return tuple(index)


# -- pairs ------------------------------------------------------------------------------------------------------------
class UnsupportedInputs(Exception):
    """A kind of pair cannot deal with what it was given."""


class Pair(abc.ABC):
    """Two leaves to compare. A kind of pair raises `UnsupportedInputs` for leaves that are none of its business."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any) -> None:
        self.actual = actual
        self.expected = expected
        self.id = id
        # Options of other kinds of pairs.
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(item, cls) for item in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @abc.abstractmethod
    def compare(self) -> None:
        """Raise an `ErrorMeta` if the two differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or names with values, that `repr` shows."""
        return []

    def __repr__(self) -> str:
        shown: list[str | tuple[str, Any]] = ["id", "actual", "expected", *self.extra_repr()]
        lines = [(item, getattr(self, item)) if isinstance(item, str) else item for item in shown]
        return "\n".join([f"{type(self).__name__}(", *(f"    {name}={value!s}," for name, value in lines), ")"])


class ObjectPair(Pair):
    """Anything, by `==`."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            text = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, text, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """None, which equals None only."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


def _numpy_types(name: str) -> tuple[type, ...]:
    """A type of NumPy, if somebody has imported it: without that no object can be of the type."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


class BooleanPair(Pair):
    """Python's and NumPy's booleans."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...], **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        # As in PyTorch the place in containers is not passed on.
        super().__init__(actual, expected, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, *_numpy_types("bool_"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        if isinstance(bool_like, self._supported_types):
            return bool(bool_like)
        raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Python's and NumPy's numbers. Bools are integers here, as they are in Python."""

    _TYPE_TO_DTYPE = {int: torch.int64, float: torch.float64, complex: torch.complex128}
    _NUMBER_TYPES = tuple(_TYPE_TO_DTYPE)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [self._TYPE_TO_DTYPE[type(number)] for number in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_dtype = check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, *_numpy_types("number"))

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> Any:
        value: Any = number_like
        if isinstance(number_like, _numpy_types("number")):
            return value.item()
        if isinstance(number_like, self._NUMBER_TYPES):
            return value
        raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(expected):
            return
        self._fail(AssertionError, make_scalar_mismatch_msg(actual, expected, rtol=self.rtol, atol=self.atol))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


# Names of compressed layouts, and of the methods that give their places.
_COMPRESSED = {
    torch.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    torch.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    torch.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    torch.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}
_WIDE_UNSIGNED = (torch.uint64, torch.uint32, torch.uint16)


class TensorLikePair(Pair):
    """Tensors, and what `torch.as_tensor` makes tensors of."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=self.id)
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool
    ) -> tuple[Tensor, Tensor]:
        if not isinstance(actual, type(expected)) and not isinstance(expected, type(actual)):
            self._inputs_not_supported()
        if not allow_subclasses and type(actual) is not type(expected):
            self._inputs_not_supported()
        left, right = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in (left, right):
            self._check_supported(tensor, id=id)
        return left, right

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            made: Tensor = torch.as_tensor(tensor_like)
            return made
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        if tensor.layout not in (torch.strided, torch.jagged, torch.sparse_coo, *_COMPRESSED):
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        self._compare_attributes(self.actual, self.expected)
        if "meta" in (self.actual.device.type, self.expected.device.type):
            return
        self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        """Strides, device, dtype where asked for, and the shape always."""
        for name, left, right, checked in (
            ("shape", actual.shape, expected.shape, True),
            ("layout", actual.layout, expected.layout, self.check_layout),
            ("stride()", *self._strides(actual, expected), self.check_stride),
            ("device", actual.device, expected.device, self.check_device),
            ("dtype", actual.dtype, expected.dtype, self.check_dtype),
        ):
            if checked and left != right:
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {left} != {right}.")

    def _strides(self, actual: Tensor, expected: Tensor) -> tuple[Any, Any]:
        """Of two dense tensors: no other layout has any."""
        dense = self.check_stride and actual.layout is torch.strided and expected.layout is torch.strided
        return (actual.stride(), expected.stride()) if dense else (None, None)

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """Both on one device and of one dtype, where a difference is allowed."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            # Wide unsigned integers promote with nothing else.
            kinds = [torch.int64 if t.dtype in _WIDE_UNSIGNED else t.dtype for t in (actual, expected)]
            dtype = torch.promote_types(*kinds)
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout is not expected.layout:
            actual, expected = (t.to_dense() if t.layout is not torch.strided else t for t in (actual, expected))
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        if _is_small_float(actual) and (self.rtol != 0.0 or self.atol != 0.0):
            raise ErrorMeta(
                AssertionError,
                f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low dimensional "
                "floats. Please use rtol=0.0 and atol=0.0.",
            )
        if actual.layout is torch.jagged:
            actual, expected = actual.values(), expected.values()
        tolerance: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        if actual.layout is torch.sparse_coo:
            self._compare_sparse_coo_values(actual, expected, **tolerance)
        elif actual.layout in _COMPRESSED:
            self._compare_sparse_compressed_values(actual, expected, **tolerance)
        else:
            self._compare_regular_values_close(actual, expected, **tolerance)

    def _compare_sparse_coo_values(self, actual: Tensor, expected: Tensor, **tolerance: Any) -> None:
        """Sparse dimensions, the number of entries, their places and their values."""
        for what, left, right in (
            ("sparse dimensions", actual.sparse_dim(), expected.sparse_dim()),
            ("specified values", actual._nnz(), expected._nnz()),
        ):
            if left != right:
                text = f"The number of {what} in sparse COO tensors does not match: {left} != {right}"
                self._fail(AssertionError, text)
        self._compare_regular_values_equal(actual._indices(), expected._indices(), identifier="Sparse COO indices")
        self._compare_regular_values_close(
            actual._values(), expected._values(), identifier="Sparse COO values", **tolerance
        )

    def _compare_sparse_compressed_values(self, actual: Tensor, expected: Tensor, **tolerance: Any) -> None:
        """The number of entries, their compressed and plain places, and their values."""
        format_name, compressed, plain = _COMPRESSED[actual.layout]
        if actual._nnz() != expected._nnz():
            self._fail(
                AssertionError,
                f"The number of specified values in sparse {format_name} tensors does not match: "
                f"{actual._nnz()} != {expected._nnz()}",
            )
        for name in (compressed, plain):
            # Places may be of either width of integers.
            left, right = (getattr(t, name)().to(torch.int64) for t in (actual, expected))
            self._compare_regular_values_equal(left, right, identifier=f"Sparse {format_name} {name}")
        self._compare_regular_values_close(
            actual.values(), expected.values(), identifier=f"Sparse {format_name} values", **tolerance
        )

    def _compare_regular_values_close(
        self,
        actual: Tensor,
        expected: Tensor,
        *,
        rtol: float,
        atol: float,
        equal_nan: bool,
        identifier: Identifier = None,
    ) -> None:
        matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if bool(torch.all(matches)):
            return
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "identifier": identifier}
        if actual.ndim == 0:
            text = make_scalar_mismatch_msg(actual.item(), expected.item(), **options)
        else:
            text = make_tensor_mismatch_msg(actual, expected, matches, **options)
        self._fail(AssertionError, text)

    def _compare_regular_values_equal(
        self, actual: Tensor, expected: Tensor, *, equal_nan: bool = False, identifier: Identifier = None
    ) -> None:
        self._compare_regular_values_close(actual, expected, rtol=0, atol=0, equal_nan=equal_nan, identifier=identifier)

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")


# -- containers -------------------------------------------------------------------------------------------------------
def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """The pairs of leaves of two containers of the same structure; keys of mappings in sorted order where they sort."""

    def inner(keys: Collection[Any] | range) -> Iterator[Pair]:
        for key in keys:
            yield from originate_pairs(
                actual[key],
                expected[key],
                pair_types=pair_types,
                sequence_types=sequence_types,
                mapping_types=mapping_types,
                id=(*id, key),
                **options,
            )

    if all(isinstance(item, sequence_types) and not isinstance(item, str) for item in (actual, expected)):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        return list(inner(range(len(actual))))
    if all(isinstance(item, mapping_types) for item in (actual, expected)):
        return list(inner(_common_keys(set(actual), set(expected), id)))
    return [_pair(actual, expected, pair_types, id, options)]


def _common_keys(actual: set[Any], expected: set[Any], id: tuple[Any, ...]) -> Collection[Any]:
    if actual != expected:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(expected - actual)}\n"
            f"Additional keys in the actual mapping: {sorted(actual - expected)}",
            id=id,
        )
    with contextlib.suppress(Exception):
        return sorted(actual)
    return actual


def _pair(
    actual: Any, expected: Any, pair_types: Sequence[type[Pair]], id: tuple[Any, ...], options: dict[str, Any]
) -> Pair:
    for kind in pair_types:
        try:
            return kind(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(
                f"Originating a {kind.__name__}() at item {_path(id)} with\n\n"
                f"{type(actual).__name__}(): {actual}\n\nand\n\n{type(expected).__name__}(): {expected}\n\n"
                f"resulted in the unexpected exception above. {_FILE_AN_ISSUE}except the previous error and raise an "
                "expressive `ErrorMeta` instead."
            ) from error
    raise ErrorMeta(
        TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", id=id
    )


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """What differs between two containers, leaf by leaf; containers of another structure raise."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            **options,
        )
    except ErrorMeta as meta:
        raise meta.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as meta:
            # The traceback would keep the frames, and with them the tensors, alive.
            found.append(meta.with_traceback(None))
        except Exception as error:
            raise RuntimeError(
                f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above. {_FILE_AN_ISSUE}except the "
                "previous error and raise an expressive `ErrorMeta` instead."
            ) from error
    return found


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that tensors, numbers, or containers of them are close: `|actual - expected| <= atol + rtol * |expected|`.

    Tolerances are those of the dtypes unless both are given. The first difference is raised; `msg` is the text of the
    error, or a function of the text.
    """
    __tracebackhide__ = True
    metas = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
        msg=msg,
    )
    if metas:
        raise metas[0].to_error(msg)


# The wider tolerances that `assert_allclose` has always had.
_OLD_PRECISIONS = {torch.float16: (1e-3, 1e-3), torch.float32: (1e-4, 1e-5), torch.float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated: `assert_close` that compares no dtypes and takes a NaN for a NaN."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    left = actual if isinstance(actual, Tensor) else torch.tensor(actual)
    right = expected if isinstance(expected, Tensor) else torch.tensor(expected, dtype=left.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(left, right, dtype_precisions=_OLD_PRECISIONS)
    assert_close(left, right, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
