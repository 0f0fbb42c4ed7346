"""`torch._numpy.ndarray`: a tensor with NumPy's attributes, methods and operators.

Invariant: an array holds one tensor, and views of arrays hold views of tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from . import _math, _reductions, _selection, _shapes, _ufuncs
from ._dtypes import DType
from ._dtypes import dtype as _dtype
from ._indexing import reading, writing
from ._normalizations import array_like
from ._util import coerce_to_tensor, is_sequence, ndarrays_to_tensors

NAMES = ["array", "asarray", "ascontiguousarray", "from_dlpack", "ndarray"]

_FLAGS = {
    "C_CONTIGUOUS": "C_CONTIGUOUS",
    "C": "C_CONTIGUOUS",
    "CONTIGUOUS": "C_CONTIGUOUS",
    "F_CONTIGUOUS": "F_CONTIGUOUS",
    "F": "F_CONTIGUOUS",
    "FORTRAN": "F_CONTIGUOUS",
    "OWNDATA": "OWNDATA",
    "O": "OWNDATA",
    "WRITEABLE": "WRITEABLE",
    "W": "WRITEABLE",
}
# Flags that NumPy has and PyTorch does not answer for.
_UNANSWERED = frozenset(
    ("ALIGNED", "A", "WRITEBACKIFCOPY", "X", "FNC", "FORC", "BEHAVED", "B", "CARRAY", "CA", "FARRAY", "FA")
)


class Flags:
    """What is known of an array's memory."""

    def __init__(self, flag_to_value: dict[str, bool]) -> None:
        self._flag_to_value = flag_to_value

    def __getattr__(self, attr: str) -> Any:
        if attr.islower() and attr.upper() in _FLAGS:
            return self[attr.upper()]
        raise AttributeError(f"No flag attribute '{attr}'")

    def __getitem__(self, key: str) -> bool:
        if key in _FLAGS:
            return self._flag_to_value[_FLAGS[key]]
        if key in _UNANSWERED:
            raise NotImplementedError(f"{key=}")
        raise KeyError(f"No flag key '{key}'")

    def __setattr__(self, attr: str, value: Any) -> None:
        if attr.islower() and attr.upper() in _FLAGS:
            self[attr.upper()] = value
        else:
            super().__setattr__(attr, value)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in _FLAGS or key in _UNANSWERED:
            raise NotImplementedError("Modifying flags is not implemented")
        raise KeyError(f"No flag key '{key}'")


class _Unspecified:
    """Of an argument that was not given."""


_unspecified = _Unspecified()


class ndarray:
    """An array: a tensor with NumPy's manners."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, t: torch.Tensor | None = None) -> None:
        if t is None:
            self.tensor: Any = torch.Tensor()
        elif isinstance(t, torch.Tensor):
            self.tensor = t
        else:
            raise ValueError("ndarray constructor is not recommended; prefereither array(...) or zeros/empty(...)")

    # -- attributes -----------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.tensor.shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        self.tensor = self.tensor.reshape(value)

    @property
    def size(self) -> Any:
        """How many elements."""
        return self.tensor.numel()

    @property
    def ndim(self) -> Any:
        """How many dimensions."""
        return self.tensor.ndim

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return _dtype(self.tensor.dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, by dimension."""
        return tuple(n * self.tensor.element_size() for n in self.tensor.stride())

    @property
    def itemsize(self) -> Any:
        """Bytes of one element."""
        return self.tensor.element_size()

    @property
    def nbytes(self) -> Any:
        """Bytes of the memory that is held."""
        return self.tensor.untyped_storage().nbytes()

    @property
    def flags(self) -> Flags:
        """What is known of the memory."""
        return Flags(
            {
                "C_CONTIGUOUS": self.tensor.is_contiguous(),
                "F_CONTIGUOUS": self.T.tensor.is_contiguous(),
                "OWNDATA": self.tensor._base is None,
                "WRITEABLE": True,
            }
        )

    @property
    def data(self) -> Any:
        """Where the memory is."""
        return self.tensor.data_ptr()

    @property
    def T(self) -> Any:
        """With axes reversed."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """Real parts."""
        return _math.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        torch.real(self.tensor).copy_(asarray(value).tensor)

    @property
    def imag(self) -> Any:
        """Imaginary parts."""
        return _math.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        torch.imag(self.tensor).copy_(asarray(value).tensor)

    @property
    def flat(self) -> Any:
        """All elements in a line."""
        return self.ravel()

    # -- conversions ----------------------------------------------------------------------------------------------
    def __str__(self) -> str:
        text = str(self.tensor).replace("tensor", "torch.ndarray")
        return text.replace("dtype=torch.", "dtype=")

    __repr__ = __str__

    def __index__(self) -> int:
        try:
            return operator.index(self.tensor.item())
        except Exception:
            raise TypeError("only integer scalar arrays can be converted to a scalar index") from None

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __complex__(self) -> complex:
        try:
            return complex(self.tensor)
        except RuntimeError as error:
            raise ValueError(*error.args) from None

    def is_integer(self) -> bool:
        """Whether it is one whole number."""
        try:
            return bool(int(self.tensor) == self.tensor)
        except Exception:
            return False

    def __len__(self) -> int:
        return self.shape[0]

    def __contains__(self, x: Any) -> bool:
        return bool(self.tensor.__contains__(ndarrays_to_tensors(x)))

    def __iter__(self) -> Iterator[Any]:
        return (ndarray(part) for part in self.tensor.__iter__())

    def tolist(self) -> Any:
        """Python's numbers, in lists."""
        return self.tensor.tolist()

    def item(self, *args: Any) -> Any:
        """The only element as a number, or an element by index."""
        if args == ():
            return self.tensor.item()
        if len(args) == 1:
            return self.ravel()[args[0]]
        return self.__getitem__(args)

    def copy(self, order: Any = "C") -> Any:
        """A copy."""
        return _shapes.copy(self, order="K" if order == "C" else order)

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
        """A copy in another dtype."""
        for name, value, only in (
            *(("order", order, "K"), ("casting", casting, "unsafe")),
            *(("subok", subok, True), ("copy", copy, True)),
        ):
            if value != only:
                raise NotImplementedError(f"astype(..., {name}={value} is not implemented.")
        return ndarray(self.tensor.to(_dtype(dtype).torch_dtype))

    def view(self, dtype: Any = _unspecified, type: Any = _unspecified) -> Any:
        """The same memory, as another dtype."""
        if type is not _unspecified:
            raise NotImplementedError(f"view(..., {type=} is not implemented.".replace("'", ""))
        wanted = self.tensor.dtype if dtype is _unspecified else _dtype(dtype).torch_dtype
        return ndarray(self.tensor.view(wanted))

    # -- shapes ---------------------------------------------------------------------------------------------------
    def transpose(self, *axes: Any) -> Any:
        """Axes in another order, reversed without one."""
        return _shapes.transpose(self, axes)

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        """The elements in another shape."""
        return _shapes.reshape(self, shape, order=order)

    def flatten(self, order: Any = "C") -> Any:
        """A copy of all elements in a line."""
        return ndarray(_shapes.ravel(self, order=order).tensor.clone())

    def resize(self, *new_shape: Any, refcheck: Any = False) -> None:
        """Change the shape in place: elements are cut off or zeros put after them."""
        if refcheck:
            raise NotImplementedError(f"resize(..., {refcheck=} is not implemented.")
        if new_shape in [(), (None,)]:
            return
        if len(new_shape) == 1 and is_sequence(new_shape[0]):
            new_shape = tuple(new_shape[0])
        if any(size < 0 for size in new_shape):
            raise ValueError("all elements of `new_shape` must be non-negative")
        line = self.tensor.flatten()
        count = 1
        for size in new_shape:
            count *= size
        if count > line.numel():
            line = torch.cat((line, line.new_zeros(count - line.numel())))
        self.tensor = line[:count].reshape(new_shape)

    # -- elements -------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        tensor, key = reading(self.tensor, index)
        return ndarray(tensor[key])

    def __setitem__(self, index: Any, value: Any) -> None:
        given = value if isinstance(value, (int, float, complex)) else coerce_to_tensor(value)
        if isinstance(given, torch.Tensor):
            given = given.to(self.tensor.dtype)
        tensor, key = writing(self.tensor, index)
        tensor[key] = given

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self.tensor.fill_(array_like(value))

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> None:
        """Put elements in order, in place."""
        self.tensor.copy_(_selection.sort(self, axis, kind, order=order).tensor)

    take = _selection.take
    put = _selection.put
    choose = _selection.choose
    nonzero = _selection.nonzero
    searchsorted = _selection.searchsorted
    argsort = _selection.argsort
    ravel = _shapes.ravel
    repeat = _shapes.repeat
    squeeze = _shapes.squeeze
    swapaxes = _shapes.swapaxes
    diagonal = _shapes.diagonal
    round = _math.round
    clip = _math.clip
    dot = _math.dot
    trace = _math.trace
    conj = conjugate = vars(_ufuncs)["conjugate"]
    all = _reductions.all
    any = _reductions.any
    argmax = _reductions.argmax
    argmin = _reductions.argmin
    max = _reductions.amax
    min = _reductions.amin
    ptp = _reductions.ptp
    sum = _reductions.sum
    prod = _reductions.prod
    mean = _reductions.mean
    std = _reductions.std
    var = _reductions.var
    cumsum = _reductions.cumsum
    cumprod = _reductions.cumprod

    # -- comparisons ----------------------------------------------------------------------------------------------
    def __eq__(self, other: Any) -> Any:
        try:
            return _function("equal")(self, other)
        except (RuntimeError, TypeError, NotImplementedError):
            return ndarray(torch.full(self.shape, False, dtype=torch.bool))

    def __ne__(self, other: Any) -> Any:
        return ~(self == other)

    # -- interchange ----------------------------------------------------------------------------------------------
    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def _function(name: str) -> Any:
    return vars(_ufuncs)[name]


def _forms(name: str) -> tuple[Any, Any, Any]:
    """An operator of Python by a universal function: plain, with operands exchanged, in place."""
    function = _function(name)

    def plain(self: ndarray, other: Any) -> Any:
        return function(self, other)

    def exchanged(self: ndarray, other: Any) -> Any:
        return function(other, self)

    def in_place(self: ndarray, other: Any) -> Any:
        return function(self, other, out=self)

    return plain, exchanged, in_place


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "matmul": "matmul",
    "divmod": "divmod",
}
for _method, _name in _OPERATORS.items():
    _plain, _exchanged, _in_place = _forms(_name)
    setattr(ndarray, f"__{_method}__", _plain)
    setattr(ndarray, f"__r{_method}__", _exchanged)
    if _method != "divmod":
        setattr(ndarray, f"__i{_method}__", _in_place)
for _method, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(ndarray, f"__{_method}__", _forms(_name)[0])
for _method, _name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_method}__", _function(_name))


# -- arrays of anything -----------------------------------------------------------------------------------------------
def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
    like: Any = None,
) -> Any:
    """An array of anything that holds numbers."""
    if subok is not False:
        raise NotImplementedError("'subok' parameter is not supported.")
    if like is not None:
        raise NotImplementedError("'like' parameter is not supported.")
    if order != "K":
        raise NotImplementedError
    if isinstance(obj, ndarray) and not copy and dtype is None and ndmin <= obj.ndim:
        return obj
    wanted = None if dtype is None else _dtype(dtype).torch_dtype
    return ndarray(coerce_to_tensor(obj, wanted, bool(copy), ndmin))


def asarray(a: Any, dtype: Any = None, order: Any = "K", *, like: Any = None) -> Any:
    """An array of anything, without a copy where possible."""
    return array(a, dtype=dtype, order=order, like=like, copy=False, ndmin=0)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """An array of anything, its memory in the order of its elements."""
    arr = asarray(a, dtype=dtype, like=like)
    return arr if arr.tensor.is_contiguous() else ndarray(arr.tensor.contiguous())


def from_dlpack(x: Any, /) -> Any:
    """An array over memory that another library gives."""
    return ndarray(torch.from_dlpack(x))
