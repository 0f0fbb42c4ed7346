"""Views of parts: which dimensions of a tensor a view keeps whole and in order.

Invariant: nothing is said of single operators. A view's strides, asked of a tensor whose strides tell its dimensions
apart, say where each dimension went; only shapes (`view`) are compared by their sizes.
"""

from __future__ import annotations

from typing import Any

from ..._dispatch.op import Op
from ._strategies import WHOLE, Call, Way, whole
from .placement_types import Partial, Shard

# Views that give the elements another shape, and so need the sizes of a part.
SHAPED = frozenset("view _unsafe_view _reshape_alias reshape view_copy".split())


def groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions with the same number of elements on both sides, ones left out."""
    left = [dim for dim, size in enumerate(old) if size != 1]
    right = [dim for dim, size in enumerate(new) if size != 1]
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        ours, theirs = [left[i]], [right[j]]
        a, b = old[left[i]], new[right[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                if i == len(left):
                    return found
                ours.append(left[i])
                a *= old[left[i]]
                i += 1
            else:
                if j == len(right):
                    return found
                theirs.append(right[j])
                b *= new[right[j]]
                j += 1
        found.append((ours, theirs))
    return found


def shaped(call: Call) -> list[Way]:
    """The first dimension of a run stays split, if the ranks divide it on both sides."""
    old, new = call.shapes[0], call.outs[0]
    ways = [whole(call)]
    if 0 not in old:
        for ours, theirs in groups(old, new):
            single = len(ours) == 1 and len(theirs) == 1
            if single or (old[ours[0]] % call.ranks == 0 and new[theirs[0]] % call.ranks == 0):
                ways.append(Way((Shard(theirs[0]),), (Shard(ours[0]),)))
    ways.extend(_reduced_later())
    return ways


def _reduced_later() -> list[Way]:
    return [Way((Partial(op),), (Partial(op),)) for op in ("sum", "avg", "max", "min", "product")]


def moved(op: Op, args: tuple[Any, ...], call: Call) -> list[Way]:
    """Every other view."""
    from ... import empty_strided

    shape, dtype = call.shapes[0], args[0].dtype
    # Views of another dtype want even strides, and ones that touch.
    strides = [4 ** (len(shape) - 1 - at) for at in range(len(shape))]
    told = op.call((empty_strided(shape, strides, dtype=dtype, device="meta"), *args[1:]))
    results = told if isinstance(told, (tuple, list)) else [told]
    ways = [Way((WHOLE,), (WHOLE,))]
    for dim, size in enumerate(shape):
        places = {_place(each, strides[dim] * dtype.itemsize, size) for each in results}
        if len(places) == 1 and -1 not in places and size > 1:
            ways.append(Way((Shard(places.pop()),), (Shard(dim),)))
    ways.extend(_reduced_later())
    return ways


def _place(result: Any, step: int, size: int) -> int:
    """The dimension of a view that has the bytes between neighbours, and the size, of one of its source; -1 if none."""
    found = [at for at, stride in enumerate(result.stride()) if stride * result.dtype.itemsize == step]
    return next((at for at in found if result.shape[at] == size), -1)
