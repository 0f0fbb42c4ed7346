"""One iterator at a time: what every `__iter__` of an `IterDataPipe` is wrapped in.

Invariant: a new iterator of a datapipe makes those before it invalid; using one of them raises.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class _SnapshotState(Enum):
    """Whether a datapipe is to begin anew, or where a restored snapshot stands."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def _generate_input_args_string(obj: Any) -> str:
    names = set(inspect.signature(type(obj)).parameters)
    found = [(n, v) for n, v in inspect.getmembers(obj) if n in names]
    return ", ".join(f"{n}={v.__name__ if inspect.isfunction(v) else repr(v)}" for n, v in found)


def _generate_iterdatapipe_msg(datapipe: Any, simplify_dp_name: bool = False) -> str:
    """How a datapipe was made, for messages."""
    text = f"{type(datapipe).__name__}({_generate_input_args_string(datapipe)})"
    return text.replace("IterDataPipe", "").replace("MapDataPipe", "") if simplify_dp_name else text


_FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
    "https://github.com/pytorch/data/issues/45."
)


def _check_iterator_valid(datapipe: Any, iterator_id: int | None) -> None:
    if getattr(datapipe, "_is_child_datapipe", False) is True:
        if not datapipe._check_valid_iterator_id(iterator_id):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {_generate_iterdatapipe_msg(datapipe.main_datapipe)}.{_FEEDBACK}"
            )
    elif datapipe._valid_iterator_id != iterator_id:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{_generate_iterdatapipe_msg(datapipe)}\nThis may be caused by multiple references to the same "
            f"IterDataPipe. We recommend using `.fork()` if that is necessary.{_FEEDBACK}"
        )


def _set_datapipe_valid_iterator_id(datapipe: Any) -> int | None:
    if getattr(datapipe, "_is_child_datapipe", False) is True:
        datapipe._set_main_datapipe_valid_iterator_id()
    else:
        last = datapipe._valid_iterator_id
        datapipe._valid_iterator_id = 0 if last is None else last + 1
        datapipe.reset()
    number: int | None = datapipe._valid_iterator_id
    return number


class IteratorDecorator:
    """An iterator that a datapipe returned, valid until the next one is made."""

    def __init__(self, iterator: Any, datapipe: Any, iterator_id: int | None, has_next_method: bool) -> None:
        self.iterator = iterator
        self.datapipe = datapipe
        self.iterator_id = iterator_id
        self.counts_itself = iterator is datapipe and has_next_method

    def __iter__(self) -> IteratorDecorator:
        return self

    def __next__(self) -> Any:
        _check_iterator_valid(self.datapipe, self.iterator_id)
        result = next(self.iterator)
        if not self.counts_itself:
            self.datapipe._number_of_samples_yielded += 1
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def _explain(error: Exception, datapipe: Any) -> None:
    """Add to an exception which datapipe it comes from."""
    said = "thrown by __iter__ of"
    whole = f"\nThis exception is {said} {type(datapipe).__name__}({_generate_input_args_string(datapipe)})"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (whole,)
    elif said not in error.args[0] and "single iterator per IterDataPipe constraint" not in error.args[0]:
        error.args = (error.args[0] + whole, *error.args[1:])


def _generator(function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(function)
    def wrap_generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
        datapipe = args[0]
        generator = function(*args, **kwargs)
        ahead = datapipe._fast_forward_iterator
        if ahead:
            datapipe._fast_forward_iterator = None
            datapipe._snapshot_state = _SnapshotState.Iterating
            yield from ahead
            return
        number = _set_datapipe_valid_iterator_id(datapipe)
        try:
            response = generator.send(None)
            while True:
                datapipe._number_of_samples_yielded += 1
                request = yield response
                _check_iterator_valid(datapipe, number)
                response = generator.send(request)
        except StopIteration:
            return
        except Exception as error:
            _explain(error, datapipe)
            raise

    return wrap_generator


def hook_iterator(namespace: dict[str, Any]) -> None:
    """Wrap `__iter__`, and `__next__` where there is one, of a class that is being made."""
    function = namespace["__iter__"]
    if inspect.isgeneratorfunction(function):
        namespace["__iter__"] = _generator(function)
        return
    if "__next__" in namespace:
        step = namespace["__next__"]

        @functools.wraps(step)
        def wrap_next(*args: Any, **kwargs: Any) -> Any:
            result = step(*args, **kwargs)
            args[0]._number_of_samples_yielded += 1
            return result

        namespace["__next__"] = wrap_next

    @functools.wraps(function)
    def wrap_iter(*args: Any, **kwargs: Any) -> Any:
        datapipe = args[0]
        iterator = function(*args, **kwargs)
        datapipe._snapshot_state = _SnapshotState.Iterating
        if datapipe._fast_forward_iterator:
            ahead, datapipe._fast_forward_iterator = datapipe._fast_forward_iterator, None
            return ahead
        number = _set_datapipe_valid_iterator_id(datapipe)
        return IteratorDecorator(iterator, datapipe, number, "__next__" in namespace)

    namespace["__iter__"] = wrap_iter
