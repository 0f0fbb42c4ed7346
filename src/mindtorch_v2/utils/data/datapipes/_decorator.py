"""Decorators for classes of datapipes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, get_type_hints

from ._typing import _DataPipeMeta
from .datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """Make the decorated class a step of this name."""

    name: str

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        if issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


_determinism: bool = False


class guaranteed_datapipes_determinism:
    """A context in which datapipes that are marked as not deterministic cannot be made."""

    prev: bool

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        global _determinism
        _determinism = self.prev


_ADVICE = (
    "but you set 'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if that is "
    "acceptable for your application"
)


class non_deterministic:
    """Mark a class as not deterministic, always or where a function of its arguments says so."""

    cls: Any = None
    deterministic_fn: Callable[..., bool]

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _determinism:
                raise TypeError(f"{self.cls.__name__} is non-deterministic, {_ADVICE}")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """Make one, if that is allowed with these arguments."""
        answer: Any = self.deterministic_fn(*args, **kwargs)
        if not isinstance(answer, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but "
                f"{type(answer)} is found"
            )
        if _determinism and answer:
            raise TypeError(f"{self.cls.__name__} is non-deterministic with the inputs, {_ADVICE}")
        return self.cls(*args, **kwargs)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Check that arguments which are annotated as datapipes are some."""
    signature = inspect.signature(f)
    hints = get_type_hints(f)

    @wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if isinstance(hint, _DataPipeMeta):
                if not isinstance(value, IterDataPipe):
                    raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
                if not value.type.issubtype(hint.type):  # type: ignore[attr-defined]
                    raise TypeError(
                        f"Expected type of argument '{name}' as a subtype of hint {hint.type}, "  # type: ignore[attr-defined]
                        f"but found {value.type}"
                    )
        return f(*args, **kwargs)

    return wrapper


_runtime_validation_enabled: bool = True


class runtime_validation_disabled:
    """A context in which `runtime_validation` checks nothing."""

    prev: bool

    def __init__(self) -> None:
        global _runtime_validation_enabled
        self.prev = _runtime_validation_enabled
        _runtime_validation_enabled = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        global _runtime_validation_enabled
        _runtime_validation_enabled = self.prev


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Check every sample of an `__iter__` against the `type` of its datapipe."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        if not _runtime_validation_enabled:
            yield from f(self)
            return
        for sample in f(self):
            if not self.type.issubtype_of_instance(sample):
                raise RuntimeError(
                    f"Expected an instance as subtype of {self.type}, but found {sample}({type(sample)})"
                )
            yield sample

    return wrapper
