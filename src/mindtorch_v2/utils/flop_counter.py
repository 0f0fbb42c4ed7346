"""`torch.utils.flop_counter`: how many floating-point operations the products and convolutions inside a block take.

Invariant: what is counted are the operators that run, below autograd. An operator with no formula that is made of
others is taken apart first; one with neither counts nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from .._operators import OpOverloadPacket, ops
from .._tensor_base import TensorBase
from .._torch_dispatch import TorchDispatchMode
from .._warn import warn
from ._pytree import tree_leaves, tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
flop_registry: dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, TensorBase) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of tensors from one of shapes."""

    @wraps(f)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes, named, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*shapes, out_shape=out_shape, **named)

    return of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the function counts operations of these operators (`torch.ops.aten.mm`). It gets shapes, or with
    `get_raw` the tensors themselves, and the result as `out_shape` (`out_val`)."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        formula = formula if get_raw else shape_wrapper(formula)
        for target in tree_leaves(targets):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    "torch.ops.mylib.foo), JitFunction, or HigherOrderOperator"
                    f", got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return register


# -- formulas -----------------------------------------------------------------------------------------------------
@register_flop_formula(ops.aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A multiplication and an addition for each term of each element."""
    (m, k), (k2, n) = a_shape, b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


@register_flop_formula(ops.aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """That of the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(ops.aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """That of every product of the batch."""
    (b, m, k), (b2, k2, n) = a_shape, b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    if k != k2:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return b * m * n * 2 * k


@register_flop_formula(ops.aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """That of the products."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """The filter is applied at every place of the result, or of the input if transposed; padding counts too."""
    places = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return prod(places) * prod(filter_size) * x_shape[0] * c_out * c_in * 2


@register_flop_formula(ops.aten.convolution)
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """A convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _swapped(shape: Shape) -> list[int]:
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(ops.aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The gradients of input and weight are convolutions, with batch and channels exchanged for the latter."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        pair = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(_swapped(pair[0]), _swapped(pair[1]), _swapped(out_shape[1]))
    return count


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Attention as two batched products; keys and values may have fewer heads than queries."""
    b, h_q, s_q, d_q = query_shape
    b2, h_kv, s_k, d2 = key_shape
    b3, h3, s3, d_v = value_shape
    if not (b == b2 == b3 and h_kv == h3 and d_q == d2 and s_k == s3):
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    if h_q < h_kv or h_q % h_kv != 0:
        raise AssertionError(f"sdpa_flop_count: query heads ({h_q}) must be a multiple of key/value heads ({h_kv})")
    return bmm_flop((b * h_q, s_q, d_q), (b * h_q, d_q, s_k)) + bmm_flop((b * h_q, s_q, s_k), (b * h_q, s_k, d_v))


# -- the table ----------------------------------------------------------------------------------------------------
suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit in which a number has at most four digits before the point, if there is one."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in a unit."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """num of denom."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def _laid_out(rows: list[list[str]], header: list[str]) -> str:
    """Columns two apart, at least two wider than their titles; the first to the left, the others to the right."""
    for column in (1, 2):
        try:
            numbers = [float(row[column]) for row in rows]
        except ValueError:
            continue
        for row, number in zip(rows, numbers):
            row[column] = f"{number:g}"
    widths = [max(len(h) + 2, *(len(row[i]) for row in rows)) for i, h in enumerate(header)]

    def line(cells: list[str]) -> str:
        shown = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:]))]
        return "  ".join(shown).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths), *map(line, rows)])


# -- the counter --------------------------------------------------------------------------------------------------
class FlopCounterMode:
    """Inside the block operations are counted, by operator and by the modules that run them."""

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode: _FlopCounterMode | None = None
        if mods is not None:
            warn("mods argument is not needed anymore, you can stop passing it")
        own = {k: v if getattr(v, "_get_raw", False) else shape_wrapper(v) for k, v in (custom_mapping or {}).items()}
        self.flop_registry: dict[Any, Any] = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All operations that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Counts by name of a module, then by operator; "Global" has all."""
        return {k: dict(v) for k, v in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, for modules down to `depth`."""
        limit = depth if depth is not None else self.depth if self.depth is not None else 999999
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        rows: list[list[str]] = []
        whole = False
        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name != "Global" and level <= limit:
                rows += self._rows(name, level - 1, total, suffix)
                whole = whole or sum(self.flop_counts[name].values()) >= total
        # What no module contains wholly stands above all of them.
        if "Global" in self.flop_counts and not whole:
            rows = [*self._rows("Global", 0, total, suffix), *([" " + row[0], *row[1:]] for row in rows)]
        return _laid_out(rows or [["Global", "0", "0%"]], ["Module", "FLOP", "% Total"])

    def _rows(self, name: str, level: int, total: int, suffix: str) -> list[list[str]]:
        counts = self.flop_counts[name]
        lines = [(name, sum(counts.values())), *((f" - {op}", count) for op, count in counts.items())]
        return [
            [" " * level + title, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)]
            for title, count in lines
        ]

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCounterMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        self.mode.__exit__(*exc)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
        formula = self.flop_registry.get(func_packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][func_packet] += count
        return out


class _FlopCounterMode(TorchDispatchMode):
    """Shows every operator to the counter."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func._overloadpacket not in self.counter.flop_registry:
            with self:
                parts = func.decompose(*args, **given)
            if parts is not NotImplemented:
                return parts
        return self.counter._count_flops(func._overloadpacket, func(*args, **given), args, given)
