"""`torch.nn.modules.utils`: what code written for PyTorch's own layers takes from there.

Invariant: sizes are made into tuples by what this package uses itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tuples import each
from .._tuples import pair as _pair
from .._tuples import quadruple as _quadruple
from .._tuples import single as _single
from .._tuples import triple as _triple

__all__ = ["_pair", "_quadruple", "_single", "_triple", "consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes `n` values of one."""

    def parse(x: Any) -> tuple[Any, ...]:
        return each(x, n)

    parse.__name__ = name
    return parse


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The last first, each `n` times: a padding as `functional.pad` takes it."""
    return tuple(value for value in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """A size with the defaults where it is left open."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [given if given is not None else size for given, size in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Cut `prefix` from the keys that begin with it, also in the metadata, as when a wrapper put it there."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # The wrapped module itself stands there without the dot.
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
