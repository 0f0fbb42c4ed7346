"""What `einsum` does with operands and labels: as one product of matrices, one view, or step by step.

Invariant: labels are numbers, a letter's place in the alphabet; what the equation and the shapes alone decide
is decided once.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ._dispatch.keys import SPARSE
from ._layout import sparse_coo
from ._tensor_base import requires_grad

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Dimensions under an ellipsis, counted from the last one, stand after the letters.
_ELLIPSIS = 64


class _Product(NamedTuple):
    """A sum over two operands as one product of matrices; None for what is not needed."""

    swapped: bool
    orders: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    batched: bool
    shape: tuple[int, ...] | None
    order: tuple[int, ...] | None

    def of(self, a: Any, b: Any) -> Any:
        operands = [b, a] if self.swapped else [a, b]
        for i in range(2):
            order, shape = self.orders[i], self.shapes[i]
            if order is not None:
                operands[i] = operands[i].permute(order)
            if shape is not None:
                operands[i] = operands[i].reshape(shape)
        x, y = operands
        out = x.bmm(y) if self.batched else x.mm(y)
        if self.shape is not None:
            out = out.reshape(self.shape)
        elif self.order is None and requires_grad(out):
            out = out.view(out._shape)  # the last node is a view's, as in PyTorch
        return out if self.order is None else out.permute(self.order)


class _Part(NamedTuple):
    """One operand with its dimensions in the order of the result: new ones at `places`, the last ones summed. Before,
    `diagonals` of pairs of dimensions, which become the last one."""

    order: tuple[int, ...]
    places: tuple[int, ...]
    summed: tuple[int, ...]
    diagonals: tuple[tuple[int, int], ...] = ()

    def of(self, t: Any) -> Any:
        for first, second in self.diagonals:
            t = t.diagonal(0, first, second)
        t = t.permute(self.order)
        for d in self.places:
            t = t.unsqueeze(d)
        return t.sum(self.summed) if self.summed else t


def _distinct(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[list[int]], list[int]] | None:
    """Labels of the operands and of the result, where each is once in an operand and has one size, and the result has
    no others; None for what `_contract` does, or refuses, itself."""
    if "." in equation or equation.partition("->")[0].count(",") != len(shapes) - 1:
        return None
    parts, wanted = from_equation(equation, len(shapes))
    if wanted is None:
        every = [s for part in parts for s in part]
        wanted = sorted(s for s in every if every.count(s) == 1)
    sizes: dict[int, int] = {}
    for part, shape in zip(parts, shapes):
        if len(part) != len(shape) or len(set(part)) < len(part):
            return None
        if any(sizes.setdefault(s, n) != n for s, n in zip(part, shape)):
            return None
    return (parts, wanted) if len(set(wanted)) == len(wanted) and set(wanted) <= set(sizes) else None


@lru_cache(256)
def alone(equation: str, shape: tuple[int, ...]) -> _Part | None:
    """What is done with the only operand, of this shape."""
    if "." in equation or "," in equation.partition("->")[0]:
        return None
    (labels,), wanted = from_equation(equation, 1)
    if len(labels) != len(shape):
        return None
    if wanted is None:
        wanted = sorted(s for s in labels if labels.count(s) == 1)
    sizes, diagonals = list(shape), []
    while len(set(labels)) < len(labels):
        first = next(i for i, s in enumerate(labels) if labels.count(s) > 1)
        second = labels.index(labels[first], first + 1)
        if sizes[first] != sizes[second]:
            return None
        diagonals.append((first, second))
        for each in (labels, sizes):
            del each[second]
            each.append(each.pop(first))
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(labels):
        return None
    order = wanted + sorted(set(labels) - set(wanted))
    return _Part(tuple(labels.index(s) for s in order), (), tuple(range(len(wanted), len(order))), tuple(diagonals))


@lru_cache(256)
def unsummed(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[_Part, _Part] | None:
    """What is done with two operands of these shapes before they are multiplied, where nothing is summed."""
    found = _distinct(equation, (a, b))
    if found is None or {s for part in found[0] for s in part} != set(found[1]):
        return None
    parts, wanted = found
    first, second = (
        _Part(
            tuple(labels.index(s) for s in wanted if s in labels),
            tuple(d for d, s in enumerate(wanted) if s not in labels),
            (),
        )
        for labels in parts
    )
    return first, second


@lru_cache(256)
def product(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> _Product | None:
    """How two operands of these shapes are multiplied; None for what `_contract` does, or refuses, itself."""
    if equation.partition("->")[0].count(",") != 1 or "." in equation:
        return None
    (left_labels, right_labels), wanted = from_equation(equation, 2)
    if wanted is None:
        every = left_labels + right_labels
        wanted = sorted(s for s in every if every.count(s) == 1)
    parts, shapes = (left_labels, right_labels), (a, b)
    if any(len(set(p)) < len(p) or len(p) != len(n) for p, n in zip((*parts, wanted), (*shapes, wanted))):
        return None
    sizes = dict(zip(left_labels, a))
    inner = [s for s in left_labels if s in right_labels and s not in wanted]
    if not inner or set(left_labels) ^ set(right_labels) != set(wanted) - (set(left_labels) & set(right_labels)):
        return None
    if any(sizes.setdefault(s, n) != n for s, n in zip(right_labels, b)):
        return None
    both = [s for s in wanted if s in left_labels and s in right_labels]
    left, right = ([s for s in wanted if s in p and s not in both] for p in parts)
    swapped = bool(left and right and wanted.index(right[0]) < wanted.index(left[0]))
    if swapped:
        left, right, parts, shapes = right, left, (right_labels, left_labels), (b, a)

    def size(labels: list[int]) -> int:
        return prod([sizes[s] for s in labels])

    def order(labels: list[int], of: list[int]) -> tuple[int, ...] | None:
        return None if labels == of else tuple(of.index(s) for s in labels)

    batch = [size(both)] if both else []
    matrices = ((*batch, size(left), size(inner)), (*batch, size(inner), size(right)))
    ordered = (both + left + inner, both + inner + right)
    made = both + left + right
    return _Product(
        swapped,
        (order(ordered[0], parts[0]), order(ordered[1], parts[1])),
        (
            matrices[0] if matrices[0] != tuple(sizes[s] for s in ordered[0]) else None,
            matrices[1] if matrices[1] != tuple(sizes[s] for s in ordered[1]) else None,
        ),
        bool(both),
        tuple(sizes[s] for s in made) if (len(both), len(left), len(right)) not in ((0, 1, 1), (1, 1, 1)) else None,
        order(wanted, made),
    )


Shapes = tuple[tuple[int, ...], ...]


@lru_cache(256)
def _spelled(equation: str, shapes: Shapes) -> str | None:
    """The equation with letters for the dimensions under an ellipsis; None where operands have different numbers of
    them."""
    labels, wanted = _parsed(equation, len(shapes))
    counts = {len(n) - len(part) + 1 for part, n in zip(labels, shapes) if _ELLIPSIS in part}
    free = [c for c in _LETTERS if c not in equation]
    if len(counts) != 1 or not 0 <= min(counts) <= len(free):
        return None
    under = "".join(free[: min(counts)])

    def text(part: list[int]) -> str:
        return "".join([under if s == _ELLIPSIS else _LETTERS[s] for s in part])

    if wanted is None:
        every = [s for part in labels for s in part]
        wanted = [_ELLIPSIS, *sorted(s for s in every if s != _ELLIPSIS and every.count(s) == 1)]
    return ",".join([text(part) for part in labels]) + "->" + text(wanted)


class _Pair(NamedTuple):
    """Two operands that are multiplied with nothing summed."""

    first: _Part
    second: _Part

    def of(self, a: Any, b: Any) -> Any:
        return self.first.of(a) * self.second.of(b)


def _two(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> _Product | _Pair | None:
    found = product(equation, a, b)
    if found is not None:
        return found
    pair = unsummed(equation, a, b)
    return None if pair is None else _Pair(*pair)


@lru_cache(256)
def _steps(equation: str, shapes: Shapes) -> tuple[_Product | _Pair, ...] | None:
    """How operands of these shapes are multiplied, from the left; None for what `contract` does, or refuses, itself."""
    found = _distinct(equation, shapes)
    if found is None:
        return None
    parts, wanted = found
    sizes = {s: n for part, shape in zip(parts, shapes) for s, n in zip(part, shape)}
    steps: list[_Product | _Pair] = []
    have = parts[0]
    for i in range(1, len(parts)):
        later = {s for part in (*parts[i + 1 :], wanted) for s in part}
        met = later.intersection((*have, *parts[i]))
        keep = [s for s in wanted if s in met] + sorted(met.difference(wanted))
        text = ["".join([_LETTERS[s] for s in part]) for part in (have, parts[i], keep)]
        step = _two(f"{text[0]},{text[1]}->{text[2]}", tuple([sizes[s] for s in have]), shapes[i])
        if step is None:
            return None
        steps.append(step)
        have = keep
    return tuple(steps)


def planned(equation: str, operands: list[Any]) -> Any:
    """The sum where the equation and the shapes alone say how it is made; None for what `contract` does."""
    first = operands[0]
    for t in operands:
        if t._dtype is not first._dtype or t._device is not first._device or t._keys & SPARSE:
            return None
    if "..." in equation:
        spelled = _spelled(equation, tuple([t._shape for t in operands]))
        if spelled is None:
            return None
        equation = spelled
    if len(operands) == 2:
        step = _two(equation, first._shape, operands[1]._shape)
        return None if step is None else step.of(first, operands[1])
    if len(operands) == 1:
        part = alone(equation, first._shape)
        return None if part is None else part.of(first)
    steps = _steps(equation, tuple([t._shape for t in operands]))
    if steps is None:
        return None
    for step, t in zip(steps, operands[1:]):
        first = step.of(first, t)
    return first


def from_lists(args: tuple[Any, ...]) -> tuple[list[list[int]], list[int] | None, list[Any]]:
    def numbers(given: Any) -> list[int]:
        out: list[int] = []
        for s in given:
            if s is Ellipsis:
                out.append(_ELLIPSIS)
            elif isinstance(s, int) and 0 <= s < len(_LETTERS):
                out.append(s)
            else:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return out

    pairs = len(args) // 2
    labels = [numbers(args[2 * i + 1]) for i in range(pairs)]
    return labels, numbers(args[-1]) if len(args) % 2 else None, [args[2 * i] for i in range(pairs)]


def from_equation(equation: str, count: int) -> tuple[list[list[int]], list[int] | None]:
    labels, result = _parsed(equation, count)
    return [list(part) for part in labels], None if result is None else list(result)


@lru_cache(256)
def _parsed(equation: str, count: int) -> tuple[list[list[int]], list[int] | None]:
    """Labels of the operands and of the result, which the caller does not change."""
    left, arrow, right = equation.partition("->")

    def numbers(text: str, start: int) -> list[int]:
        out: list[int] = []
        i = 0
        while i < len(text):
            c = text[i]
            if c == " ":
                i += 1
            elif text.startswith("...", i):
                if _ELLIPSIS in out:
                    raise RuntimeError("einsum(): found '.' for operand 0 for which an ellipsis was already found")
                out.append(_ELLIPSIS)
                i += 3
            elif c in _LETTERS:
                out.append(_LETTERS.index(c))
                i += 1
            else:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {start + i} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
        return out

    parts = left.split(",")
    if len(parts) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(parts) > count:
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    labels: list[list[int]] = []
    start = 0
    for p in parts:
        labels.append(numbers(p, start))
        start += len(p) + 1
    return labels, numbers(right, len(left) + 2) if arrow else None


def _name(label: int) -> str:
    return "..." if label >= _ELLIPSIS else _LETTERS[label]


def _expanded(labels: list[int], ndim: int, operand: int) -> list[int]:
    """One label per dimension: an ellipsis becomes as many as are left, numbered from the last."""
    if _ELLIPSIS not in labels:
        if len(labels) != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the number of "
                f"dimensions ({ndim}) for operand {operand} and no ellipsis was given"
            )
        return labels
    hidden = ndim - (len(labels) - 1)
    if hidden < 0:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(labels) - 1}) is more than the number of "
            f"dimensions ({ndim}) for operand {operand}"
        )
    at = labels.index(_ELLIPSIS)
    return labels[:at] + [_ELLIPSIS + hidden - 1 - i for i in range(hidden)] + labels[at + 1 :]


def contract(given: list[list[int]], wanted: list[int] | None, operands: list[Any]) -> Any:
    labels = [_expanded(s, len(t._shape), i) for i, (s, t) in enumerate(zip(given, operands))]
    hidden = sorted({s for part in labels for s in part if s >= _ELLIPSIS}, reverse=True)
    if wanted is None:
        every = [s for part in labels for s in part]
        result = hidden + sorted(s for s in set(every) if s < _ELLIPSIS and every.count(s) == 1)
    else:
        result = [s for w in wanted for s in (hidden if w == _ELLIPSIS else [w])]
    for i, s in enumerate(result):
        if s in result[:i]:
            raise RuntimeError(f"einsum(): output subscript {_name(s)} appears more than once in the output")
        if not any(s in part for part in labels):
            raise RuntimeError(
                f"einsum(): output subscript {_name(s)} does not appear in the equation for any input operand"
            )
    order = result + sorted({s for part in labels for s in part} - set(result))
    sizes: dict[int, int] = {}
    aligned = [_aligned(t, part, order, sizes, i) for i, (t, part) in enumerate(zip(operands, labels))]
    keep = len(result)
    out = aligned[0]
    for i in range(1, len(aligned)):
        # A summed dimension goes as soon as no later operand has it.
        now = [d for d in range(keep, len(order)) if all(t._shape[d] == 1 for t in aligned[i + 1 :])]
        out = _pair(out, aligned[i], now)
    rest = tuple(range(keep, len(order)))
    if not rest:
        return out
    if len(aligned) > 1 and all(out._shape[d] == 1 for d in rest):
        return out.reshape(out._shape[:keep])
    return out.sum(rest)


def _aligned(t: Any, labels: list[int], order: list[int], sizes: dict[int, int], operand: int) -> Any:
    """The operand with one dimension for each label in `order`: repeated labels by their diagonal, absent ones 1."""
    labels = list(labels)
    for d, s in enumerate(labels):
        n = t._shape[d]
        first = t._shape[labels.index(s)]
        if n != first:
            raise RuntimeError(
                f"einsum(): subscript {_name(s)} is repeated for operand {operand} but the sizes don't "
                f"match, {n} != {first}"
            )
        seen = sizes.get(s, 1)
        if seen != 1 and n not in (1, seen):
            if _name(s) == "...":
                raise RuntimeError(
                    f"einsum(): dimension {d} covered by ellipsis in operand {operand}has size {n} which does not "
                    f"broadcast with previously seen ellipsis with size {seen} for the respective dimension"
                )
            raise RuntimeError(
                f"einsum(): subscript {_name(s)} has size {n} for operand {operand} which does not "
                f"broadcast with previously seen size {seen}"
            )
        if n != 1 or s not in sizes:
            sizes[s] = n
    while len(set(labels)) < len(labels):
        first = next(i for i, s in enumerate(labels) if s in labels[i + 1 :])
        second = labels.index(labels[first], first + 1)
        if t._shape[first] != t._shape[second]:
            raise RuntimeError(
                f"einsum(): subscript {_name(labels[first])} is repeated for operand {operand} but the "
                f"sizes don't match, {t._shape[second]} != {t._shape[first]}"
            )
        s = labels[first]
        t = t.diagonal(0, first, second)
        labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [s]
    t = t.permute(tuple(labels.index(s) for s in order if s in labels))
    for d, s in enumerate(order):
        if s not in labels:
            t = t.unsqueeze(d)
    return t


def _refuse_sparse(t: Any) -> None:
    """PyTorch reshapes operands before it multiplies them."""
    from ._sparse.refusals import refused

    if t.layout is sparse_coo:
        raise RuntimeError("reshape is not implemented for sparse tensors. 'einsum' multiplies no sparse operands.")
    raise refused("slice.Tensor", [t])


def _pair(a: Any, b: Any, summed: list[int]) -> Any:
    """The product of two aligned operands, summed over dimensions that stay with size 1, as one batched product."""
    both: list[int] = []
    left: list[int] = []
    right: list[int] = []
    inner: list[int] = []
    for d in range(len(a._shape)):
        in_a, in_b = a._shape[d] != 1, b._shape[d] != 1
        if d in summed:
            if in_a and in_b:
                inner.append(d)
            elif in_a:
                a = a.sum((d,), True)
            elif in_b:
                b = b.sum((d,), True)
        elif in_a == in_b:
            both.append(d)
        elif in_a:
            left.append(d)
        else:
            right.append(d)
    if not inner:
        return a * b
    if (a._keys | b._keys) & SPARSE:
        _refuse_sparse(a if a._keys & SPARSE else b)
    if left and right and right[0] < left[0]:
        # The product then has its dimensions in order.
        a, b, left, right = b, a, right, left
    ones = [d for d in summed if d not in inner]

    def size(t: Any, dims: list[int]) -> int:
        n = 1
        for d in dims:
            n *= t._shape[d]
        return n

    shape = tuple([a._shape[d] for d in both + left] + [1] * len(summed) + [b._shape[d] for d in right])
    x = a.permute(tuple(both + left + inner + ones + right)).reshape((size(a, both), size(a, left), size(a, inner)))
    y = b.permute(tuple(both + inner + right + ones + left)).reshape((size(b, both), size(b, inner), size(b, right)))
    order = both + left + inner + ones + right
    out = x.bmm(y).reshape(shape)
    return out.permute(tuple(order.index(d) for d in range(len(order))))
