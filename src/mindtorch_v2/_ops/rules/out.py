"""What an `out=` tensor must be: the dtypes it may have, the words of the refusal, and what happens to its layout.

Invariant: a target is looked at before anything is written to it.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._device import CPU
from ..._dtype import dtype
from ..._dtype_names import cpp_name, tensor_type
from ..._promotion import can_cast
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase

# How the warning about resizing shows shapes.
AS_IS: Final = -1
TURNED: Final = -2

_CASTABLE: Final = "result type {want} can't be cast to the desired output type {got}"


@final
class Target:
    """One result's `out=`: which dtypes it may have beside the result's own, and what is said of others.

    accepts: "cast", what the result can be cast to; "same", none; "any", all; "float", "inexact", "complex", "real",
    those kinds; "byte", uint8.
    In `text`, {want} and {got} are PyTorch's names of the dtypes, {c_want} and {c_got} its names of C++ types, {t_want}
    and {t_got} those of tensor types.
    on_complex: the words for a complex one, where they differ.
    quiet: it is resized without a warning. last: it is resized after the others.
    shown: the warning shows shapes with the last two dimensions exchanged (TURNED), or with one more of size 1 there.
    order: its strides after resizing: "column" or "row" major matrices, "result", those of the result where that is
    made first; "full" is row major if it had elements. Otherwise the rule decides, and row major where there is none.
    overlap_first: it may not overlap itself even if it is resized.
    decides: where the last argument, a dtype, is not given, the operator computes in the dtype of `out`.
    early: a function of the arguments that gives the result's dtype where PyTorch looks at it before it looks at sizes,
    or None where the arguments are refused anyway.
    """

    def __init__(self, accepts: str = "cast", text: str = _CASTABLE, *, error: type[Exception] = RuntimeError,
                 on_complex: str = "", quiet: bool = False, last: bool = False, shown: int = AS_IS, order: str = "",
                 overlap_first: bool = False, decides: bool = False, early: Any = None) -> None:
        self.accepts: Final = accepts
        self.text: Final = text
        self.error: Final = error
        self.on_complex: Final = on_complex
        self.quiet: Final = quiet
        self.last: Final = last
        self.shown: Final = shown
        self.order: Final = order
        self.overlap_first: Final = overlap_first
        self.decides: Final = decides
        self.early: Final[Any] = early
        self.looks: Final = decides or early is not None

    def beside(self, args: tuple[Any, ...], got: dtype) -> tuple[Any, ...]:
        """The operator's arguments as they are meant beside an `out` of this dtype."""
        if self.decides:
            last = len(args) - 1
            if args[last] is None:
                return args[:last] + (got,)
        if self.early is not None and not are_of(args, got):
            want = self.early(*args)
            if isinstance(want, dtype):
                self.check(want, got)
        return args

    def check(self, want: dtype, got: dtype) -> None:
        if got is want or self.takes(want, got):
            return
        text = self.on_complex if self.on_complex != "" and got.is_complex else self.text
        raise self.error(text.format(want=want.scalar_name, got=got.scalar_name, c_want=cpp_name(want),
                                     c_got=cpp_name(got), t_want=tensor_type(want, CPU), t_got=tensor_type(got, CPU)))

    def takes(self, want: dtype, got: dtype) -> bool:
        kind = self.accepts
        if kind == "cast":
            return can_cast(want, got)
        if kind == "float":
            return got.is_floating_point if want.is_floating_point else can_cast(want, got)
        if kind == "inexact":
            return got.is_floating_point or got.is_complex
        if kind == "complex" or kind == "real":
            return got.is_complex == (kind == "complex")
        return kind == "any" or (kind == "byte" and got.name == "uint8")

    def strides(self, shape: tuple[int, ...], given: tuple[int, ...], full: bool) -> tuple[int, ...]:
        """Those of a target resized to `shape`, where the result has `given` ones; `full`: it had elements."""
        n = len(shape)
        if self.order == "row" or (self.order == "full" and full):
            return contiguous_strides(shape)
        if self.order == "column" and n > 1:
            turned = contiguous_strides(shape[:n - 2] + (shape[n - 1], shape[n - 2]))
            return turned[:n - 2] + (turned[n - 1], turned[n - 2])
        return given

    def show(self, shape: tuple[int, ...]) -> list[int]:
        sizes = list(shape)
        if self.shown >= 0:
            sizes.insert(self.shown, 1)
        elif self.shown == TURNED and len(sizes) > 1:
            sizes[-1], sizes[-2] = sizes[-2], sizes[-1]
        return sizes


def are_of(args: tuple[Any, ...], dt: dtype) -> bool:
    """Whether all tensors among these, and in lists of theirs, have this dtype; then so has what is made of them."""
    for a in args:
        if isinstance(a, TensorBase):
            if a._dtype is not dt:
                return False
        elif isinstance(a, (tuple, list)):
            for x in a:
                if isinstance(x, TensorBase) and x._dtype is not dt:
                    return False
    return True


CAST: Final = Target()
