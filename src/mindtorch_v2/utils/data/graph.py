"""Which datapipes a datapipe is made of."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]
DataPipe = IterDataPipe[Any] | MapDataPipe[Any]
DataPipeGraph = dict[int, tuple[Any, Any]]


def _stub_unpickler() -> str:
    return "STUB"


def _only_pipes(state: Any) -> Any:
    """Of a state, what may hold datapipes."""
    kinds = (IterDataPipe, MapDataPipe, Collection)
    if isinstance(state, dict):
        return {k: v for k, v in state.items() if isinstance(v, kinds)}
    if isinstance(state, (tuple, list)):
        return [v for v in state if isinstance(v, kinds)]
    return state if isinstance(state, kinds) else None


def _list_connected_datapipes(scan_obj: Any, only_datapipe: bool, cache: set[int]) -> list[Any]:
    """The datapipes that one refers to, found by pickling it."""
    found: list[Any] = []

    def reduce_hook(obj: Any) -> Any:
        if obj is scan_obj or id(obj) in cache:
            raise NotImplementedError
        found.append(obj)
        cache.add(id(obj))
        return _stub_unpickler, ()

    kinds: tuple[Any, ...] = (IterDataPipe, MapDataPipe)
    try:
        for kind in kinds:
            kind.set_reduce_ex_hook(reduce_hook)
            if only_datapipe:
                kind.set_getstate_hook(_only_pipes)
        pickle.Pickler(io.BytesIO()).dump(scan_obj)
    finally:
        for kind in kinds:
            kind.set_reduce_ex_hook(None)
            if only_datapipe:
                kind.set_getstate_hook(None)
    return found


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """The graph of a datapipe: `{id: (datapipe, graph of what it refers to)}`."""
    return _traverse_helper(datapipe, True, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """The former name of `traverse_dps`."""
    text = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        text += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _traverse_helper(datapipe, bool(only_datapipe), set())


def _traverse_helper(datapipe: Any, only_datapipe: bool, cache: set[int]) -> DataPipeGraph:
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in cache:
        return {}
    cache.add(id(datapipe))
    below: DataPipeGraph = {}
    for item in _list_connected_datapipes(datapipe, only_datapipe, cache.copy()):
        # One copy of the cache for each: a datapipe may be reached on several ways.
        below.update(_traverse_helper(item, only_datapipe, cache.copy()))
    return {id(datapipe): (datapipe, below)}
