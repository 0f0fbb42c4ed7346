"""`IterDataPipe` and `MapDataPipe`: datasets whose further steps are methods (`pipe.map(f).batch(4)`).

Invariant: steps are entered by name in `functions` of their base; PyTorch's own are loaded by the first unknown name.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from ..dataset import Dataset, IterableDataset
from ._hook_iterator import _SnapshotState
from ._typing import _DataPipeMeta, _IterDataPipeMeta

__all__ = ["DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe"]
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
UNTRACABLE_DATAFRAME_PIPES = ["batch", "groupby", "_dataframes_as_tuples", "trace_as_dataframe"]


class DataChunk(list[_T]):
    """A batch: a list that remembers what it was made of."""

    def __init__(self, items: Iterable[_T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The items in brackets, on one line."""
        return f"{indent}[{', '.join(str(i) for i in iter(self))}]"

    def __iter__(self) -> Iterator[_T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[_T]:
        """The items it was made of."""
        yield from self.items


def _build(function_name: str, cls: Any, of_frames: bool, source: Any, *args: Any, **kwargs: Any) -> Any:
    made = cls(source, *args, **kwargs)
    frames = of_frames or isinstance(source, DFIterDataPipe)
    if frames and isinstance(made, IterDataPipe) and function_name not in UNTRACABLE_DATAFRAME_PIPES:
        return made.trace_as_dataframe()
    return made


class _Steps:
    """What both kinds share: steps as methods, and hooks for those who look at a graph of datapipes."""

    functions: dict[str, Callable[..., Any]]
    reduce_ex_hook: Callable[..., Any] | None
    getstate_hook: Callable[..., Any] | None
    str_hook: Callable[..., Any] | None
    repr_hook: Callable[..., Any] | None
    _base: Any
    _package: str

    def __getattr__(self, attribute_name: str) -> Any:
        base = type(self)._base
        if attribute_name not in base.functions and not attribute_name.startswith("__"):
            # Loading enters PyTorch's own steps.
            import_module(f".{base._package}", __package__)
        if attribute_name in base.functions:
            f = base.functions[attribute_name]
            function = functools.partial(f, self)
            functools.update_wrapper(function, f, assigned=("__doc__",))
            return function
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function a step of this name."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of datapipes a step of this name."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        function = functools.partial(_build, function_name, cls_to_register, enable_df_api_tracing)
        functools.update_wrapper(function, cls_to_register, assigned=())
        function.__doc__ = f"{cls_to_register.__doc__ or ''} (functional name: ``{function_name}``)."
        cls.functions[function_name] = function

    def __getstate__(self) -> Any:
        return self._hooked(self.__dict__)

    def _hooked(self, state: Any) -> Any:
        """A state, as whoever looks at the graph wants it."""
        hook = type(self)._base.getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = type(self)._base.reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Let a function see, and change, what is pickled of a datapipe."""
        if cls._base.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._base.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Let a function pickle datapipes in its own way."""
        if cls._base.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._base.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        return str(type(self).__qualname__ if self.repr_hook is None else self.repr_hook(self))

    def __str__(self) -> str:
        return str(type(self).__qualname__ if self.str_hook is None else self.str_hook(self))

    def __dir__(self) -> list[str]:
        import_module(f".{type(self)._base._package}", __package__)
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Steps, IterableDataset[_T_co], metaclass=_IterDataPipeMeta):
    """A datapipe that is iterated over; only its last iterator is valid."""

    functions: dict[str, Callable[..., Any]] = {}
    reduce_ex_hook: Callable[..., Any] | None = None
    getstate_hook: Callable[..., Any] | None = None
    str_hook: Callable[..., Any] | None = None
    repr_hook: Callable[..., Any] | None = None
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state: _SnapshotState = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None
    _package = "iter"

    def __iter__(self) -> Iterator[Any]:
        own: Any = self
        return own  # type: ignore[no-any-return]

    def reset(self) -> None:
        """Forget the state of an iteration; called when a new one begins."""


class MapDataPipe(_Steps, Dataset[_T_co], metaclass=_DataPipeMeta):
    """A datapipe that is indexed."""

    functions: dict[str, Callable[..., Any]] = {}
    reduce_ex_hook: Callable[..., Any] | None = None
    getstate_hook: Callable[..., Any] | None = None
    str_hook: Callable[..., Any] | None = None
    repr_hook: Callable[..., Any] | None = None
    _package = "map"


IterDataPipe._base = IterDataPipe
MapDataPipe._base = MapDataPipe


class DFIterDataPipe(IterDataPipe[Any]):
    """A datapipe of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class _DataPipeSerializationWrapper:
    """A datapipe on its way to a worker, pickled whole."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> Any:
        return pickle.dumps(self._datapipe), False

    def __setstate__(self, state: Any) -> None:
        self._datapipe = pickle.loads(state[0])

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe[Any]):
    def __init__(self, datapipe: Any) -> None:
        super().__init__(datapipe)
        self._datapipe_iter: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._datapipe_iter = iter(self._datapipe)
        own: Any = self
        return own  # type: ignore[no-any-return]

    def __next__(self) -> Any:
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe[Any]):
    def __getitem__(self, idx: Any) -> Any:
        return self._datapipe[idx]
