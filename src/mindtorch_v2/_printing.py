"""The text of tensors, equal to PyTorch's, and its options.

Invariant: elements are read through `tolist()` and formatted as Python numbers, so that printing runs no operator but
`detach` and slicing, and never reads more elements than it shows.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from ._autograd.forward import visible_tangents
from ._dispatch.keys import TORCH_DISPATCH
from ._dtype import DEFAULTS, dtype, float4_e2m1fn_x2, float8_e8m0fnu, float32, uint8

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_str"]

# Nested lists of numbers; Ellipsis stands where elements are left out.
Tree: TypeAlias = Any


class _Options:
    """How tensors are printed."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


_OPTIONS: Final = _Options()

# profile: (precision, threshold, edgeitems, linewidth)
_PROFILES: Final[dict[str, tuple[int, float, int, int]]] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    `precision` digits after the point; above `threshold` elements only `edgeitems` at each end of a dimension are
    shown; `linewidth` characters a line; `profile` one of `default`, `short`, `full`, set before the other options;
    `sci_mode` forces scientific notation on or off. Options not given stay as they are, except `sci_mode`, which
    returns to its default of being decided for each tensor.
    """
    # An unknown profile changes nothing, as in PyTorch.
    if profile is not None and profile in _PROFILES:
        _OPTIONS.precision, _OPTIONS.threshold, _OPTIONS.edgeitems, _OPTIONS.linewidth = _PROFILES[profile]
    if precision is not None:
        _OPTIONS.precision = precision
    if threshold is not None:
        _OPTIONS.threshold = threshold
    if edgeitems is not None:
        _OPTIONS.edgeitems = edgeitems
    if linewidth is not None:
        _OPTIONS.linewidth = linewidth
    _OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The present options, as keyword arguments of `set_printoptions`."""
    return {
        "precision": _OPTIONS.precision,
        "threshold": _OPTIONS.threshold,
        "edgeitems": _OPTIONS.edgeitems,
        "linewidth": _OPTIONS.linewidth,
        "sci_mode": _OPTIONS.sci_mode,
    }


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Change the options within a `with` block; the arguments are those of `set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Formatter:
    """One width and one notation for all the numbers shown of a tensor, or of its real or imaginary parts."""

    def __init__(self, values: list[Any], floating: bool, powers: bool = False) -> None:
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        if not floating:
            for value in values:
                self.width = max(self.width, len(str(value)))
            return
        # NaN counts among powers of two: it is finite to PyTorch, having no infinity to compare with.
        numbers = [value for value in values if value != 0 and (powers or math.isfinite(value))]
        if not numbers:
            return
        self.int_mode = all(value.is_integer() for value in numbers)
        self.sci_mode = _wants_scientific(numbers) if _OPTIONS.sci_mode is None else _OPTIONS.sci_mode
        for value in numbers:
            self.width = max(self.width, len(self._text(value)))

    def _text(self, value: float) -> str:
        if self.sci_mode:
            return f"{value:.{_OPTIONS.precision}e}"
        if self.int_mode:
            # The point tells floating numbers from integers.
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{_OPTIONS.precision}f}"

    def format(self, value: Any) -> str:
        return (self._text(value) if self.floating else str(value)).rjust(self.width)


def _wants_scientific(numbers: list[float]) -> bool:
    """Whether the magnitudes of these non-zero numbers are too far apart, or too extreme, to print plainly."""
    if any(value != value for value in numbers):
        return False
    sizes = [abs(value) for value in numbers]
    largest, smallest = max(sizes), min(sizes)
    return largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4


class _Numbers:
    """Formats the elements of one tensor, real or complex."""

    def __init__(self, shown: list[Any], dt: dtype) -> None:
        self.imag: _Formatter | None = None
        if dt.is_complex:
            self.real = _Formatter([value.real for value in shown], True)
            self.imag = _Formatter([value.imag for value in shown], True)
        else:
            self.real = _Formatter(shown, dt.is_floating_point, str(dt) == str(float8_e8m0fnu))

    def width(self) -> int:
        return self.real.width if self.imag is None else self.real.width + self.imag.width + 1

    def format(self, value: Any) -> str:
        if self.imag is None:
            return self.real.format(value)
        imag = self.imag.format(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real.format(value.real) + sign + imag


def _values(t: Any) -> Any:
    """The elements as nested lists; where the tensor's class computes, each is asked of it."""
    if not getattr(t, "_keys", 0) & TORCH_DISPATCH:
        return t.tolist()
    return [_values(t[i]) for i in range(t.shape[0])] if t.dim() else t.item()


def _shown(t: Any, summarize: bool) -> Tree:
    """The elements to show, as nested lists."""
    dim = t.dim()
    if not summarize or dim == 0:
        return _values(t)
    edge = _OPTIONS.edgeitems
    if not edge:
        return [...]
    length = t.shape[0]
    whole = length <= 2 * edge
    if dim == 1:
        return _values(t) if whole else [*_values(t[:edge]), ..., *_values(t[-edge:])]
    if whole:
        return [_shown(t[i], True) for i in range(length)]
    head = [_shown(t[i], True) for i in range(edge)]
    return [*head, ..., *[_shown(t[i], True) for i in range(length - edge, length)]]


def _leaves(tree: Tree, into: list[Any]) -> list[Any]:
    if isinstance(tree, list):
        for item in tree:
            _leaves(item, into)
    elif tree is not ...:
        into.append(tree)
    return into


def _vector(items: list[Any], indent: int, numbers: _Numbers) -> str:
    # Room for the comma and the space between elements.
    per_line = max(1, math.floor((_OPTIONS.linewidth - indent) / (numbers.width() + 2)))
    skipped = " ..." if len(items) > 1 else "..."
    texts = [skipped if item is ... else numbers.format(item) for item in items]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(tree: Tree, dim: int, indent: int, numbers: _Numbers) -> str:
    if dim == 0:
        return numbers.format(tree)
    if dim == 1:
        return _vector(tree, indent, numbers)
    texts = ["..." if item is ... else _nested(item, dim - 1, indent + 1, numbers) for item in tree]
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(texts) + "]"


def _elements(t: Any, indent: int) -> str:
    """The elements of a strided tensor that holds data."""
    if t.numel() == 0:
        return "[]"
    shown = t.detach()
    if t.dtype is float4_e2m1fn_x2:
        # Nothing casts pairs of four bits: the bytes are shown, as numbers with a point.
        shown = shown.view(uint8).to(float32)
    tree = _shown(shown, t.numel() > _OPTIONS.threshold)
    leaves = _leaves(tree, [])
    if str(t.dtype) == str(float8_e8m0fnu):
        # What zero becomes in this type decides about the notation as little as zero does.
        leaves = [0.0 if value == 2.0**-127 else value for value in leaves]
    numbers = _Numbers(leaves, t.dtype)
    return _nested(tree, t.dim(), indent, numbers)


def _shape(t: Any) -> str:
    return "size=" + str(tuple(t.shape))


def _parts(named: list[tuple[str, Any]], indent: int, is_meta: bool) -> str:
    """The tensors a sparse tensor consists of, one below the other."""
    texts = []
    for name, part in named:
        prefix = name + "=tensor("
        text = "..." if is_meta else _elements(part, indent + len(prefix))
        if is_meta or part.numel() == 0:
            text += ", " + _shape(part)
        texts.append(prefix + text + ")")
    return (",\n" + " " * indent).join(texts)


def _sparse_parts(t: Any, layout: str) -> list[tuple[str, Any]]:
    if layout == "torch.sparse_coo":
        return [("indices", t._indices()), ("values", t._values())]
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [("crow_indices", t.crow_indices()), ("col_indices", t.col_indices()), ("values", t.values())]
    if layout in ("torch.sparse_csc", "torch.sparse_bsc"):
        return [("ccol_indices", t.ccol_indices()), ("row_indices", t.row_indices()), ("values", t.values())]
    raise NotImplementedError(f"printing a tensor of layout {layout} is not supported; print its parts instead")


def _with_suffixes(text: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    pieces = [text]
    last_line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last_line + len(suffix) + 2 > _OPTIONS.linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            last_line = indent + len(suffix)
            force_newline = False
        else:
            pieces.append(", " + suffix)
            last_line += len(suffix) + 2
    return "".join(pieces) + ")"


def _history(t: Any) -> str | None:
    """What is said of a tensor's place in the autograd graph."""
    try:
        grad_fn = t.grad_fn
    except RuntimeError:
        # The history of a view made without grad mode and changed in place cannot be rebuilt; the text says so.
        return "grad_fn=<Invalid>"
    if grad_fn is not None:
        return f"grad_fn=<{grad_fn.name().rsplit('::', 1)[-1]}>"
    return "requires_grad=True" if t.requires_grad else None


def tensor_str(t: Any, tensor_contents: str | None = None) -> str:
    """The `repr` of a tensor; `tensor_contents` replaces its elements."""
    # Types and layouts are told apart by name so that any tensor with this interface can be printed.
    kind = type(t).__name__
    prefix = "tensor(" if kind in ("Tensor", "Parameter") else kind + "("
    indent = len(prefix)
    dtype, layout = str(t.dtype), str(t.layout)
    is_meta = t.device.type == "meta"
    default = str(DEFAULTS.dtype)
    implied = (
        default,
        "torch.complex128" if default == "torch.float64" else "torch.complex64",
        "torch.int64",
        "torch.bool",
    )
    suffixes = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    if layout != "torch.strided":
        suffixes.append(_shape(t))
        if not is_meta:
            suffixes.append(f"nnz={t._nnz()}")
        if dtype not in implied:
            suffixes.append("dtype=" + dtype)
        text = _parts(_sparse_parts(t, layout), indent, is_meta) if tensor_contents is None else tensor_contents
        suffixes.append("layout=" + layout)
    else:
        empty = t.numel() == 0
        # A tensor of no elements tells its shape unless it is that of `[]`.
        if is_meta or (t.dim() != 1 if empty else not _OPTIONS.edgeitems):
            suffixes.append(_shape(t))
        # Without elements to see, only the default type goes without saying.
        if dtype not in ((default,) if is_meta or empty else implied):
            suffixes.append("dtype=" + dtype)
        if tensor_contents is not None:
            text = tensor_contents
        else:
            text = "..." if is_meta else _elements(t, indent)
    history = _history(t)
    if history is not None:
        suffixes.append(history)
    if getattr(t, "_tangents", None) is not None:
        suffixes.extend(f"tangent={tangent}" for tangent in visible_tangents(t))
    whole = _with_suffixes(prefix + text, suffixes, indent, layout == "torch.sparse_coo")
    if kind in ("Tensor", "Parameter"):
        return whole
    is_parameter = getattr(t, "_is_param", False) or any(c.__name__ == "Parameter" for c in type(t).__mro__)
    return f"Parameter({whole})" if is_parameter else whole
