"""`rearrange`: splits, permutes and joins dimensions as a pattern says.

Invariant: a pattern comes to one reshape, one permutation and one reshape; a view where these are views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import mindtorch_v2.torch  # noqa: F401  `torch` is this package from here on

from ._parsing import ParsedExpression, _ellipsis, parse_pattern, validate_rearrange_expressions


class DimensionBindError(Exception):
    """Sizes that do not fit the tensor's."""


def rearrange(
    tensor: torch.Tensor | list[torch.Tensor] | tuple[torch.Tensor, ...], pattern: str, **axes_lengths: int
) -> torch.Tensor:
    """The tensor with its dimensions as the right side of the pattern has them; several tensors are stacked first.

    `axes_lengths`: sizes of names, needed where all but one of a group of the left side are not known.
    """
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.stack(tensor)
    left, right = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(left, right, axes_lengths)
    groups = _groups(left, tensor.dim())
    sizes: list[int] = []
    place: dict[Any, int] = {}
    dropped: list[int] = []
    for size, group in zip(tensor.shape, groups):
        if not group:
            dropped.append(len(sizes))
            sizes.append(size)
        for name, n in zip(group, _sizes(size, group, axes_lengths)):
            place[name] = len(sizes)
            sizes.append(n)
    split = tensor.reshape(sizes)
    hidden = tensor.dim() - len(left.composition) + 1
    ends: list[list[Any]] = []
    for group in right.composition:
        names = _expanded(group, hidden)
        # Alone, an ellipsis is as many dimensions as it stands for; inside brackets it is one.
        ends.extend([[name] for name in names] if group == _ellipsis else [names])
    order = [place[name] for group in ends for name in group]
    # What is no part of the result is summed, as by the dimensions that PyTorch makes of a pattern.
    moved = split.permute([*order, *dropped])
    if any(sizes[d] != 1 for d in dropped):
        moved = moved.sum(list(range(len(order), moved.dim())))
    shape = []
    for group in ends:
        n = 1
        for name in group:
            n *= sizes[place[name]]
        shape.append(n)
    return moved.reshape(shape)


def _groups(left: ParsedExpression, count: int) -> list[list[Any]]:
    """The names of each dimension of a tensor."""
    n = len(left.composition)
    if left.has_ellipsis:
        if n - 1 > count:
            raise ValueError(
                f"Number of dimensions in pattern ({n - 1}) must be less than or equal to the number of dimensions in "
                f"the tensor ({count})"
            )
    elif n != count:
        raise ValueError(
            f"Number of dimensions in pattern ({n}) must be equal to the number of dimensions in the tensor ({count})"
        )
    groups: list[list[Any]] = []
    for group in left.composition:
        if group == _ellipsis:
            groups.extend([(_ellipsis, k)] for k in range(count - n + 1))
        else:
            groups.append(list(group))
    return groups


def _expanded(group: Any, hidden: int) -> list[Any]:
    out: list[Any] = []
    for name in group:
        out.extend([(_ellipsis, k) for k in range(hidden)] if name == _ellipsis else [name])
    return out


def _sizes(size: int, group: Sequence[Any], given: Mapping[str, int]) -> list[int]:
    """The sizes of the names of a group; one that is not given is what the others leave."""
    known = 1
    unknown = [name for name in group if name not in given]
    for name in group:
        known *= given.get(name, 1)
    if len(unknown) > 1:
        raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
    if not unknown and group and known != size:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {tuple(group)}"
        )
    if unknown and (known == 0 or size % known):
        parts = tuple(given.get(name, "?") for name in group)
        raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {parts}")
    return [given[name] if name in given else size // known for name in group]
