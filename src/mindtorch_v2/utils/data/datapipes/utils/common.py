"""Files, streams and checks of functions, for datapipes."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any, NoReturn

__all__ = [
    "validate_input_col",
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_pathname_binary_tuple",
]


def no_length(datapipe: Any) -> TypeError:
    """What a datapipe says whose source has no length."""
    return TypeError(f"{type(datapipe).__name__} instance doesn't have valid length")


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Check that a function takes as many arguments as columns are given to it."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:
        return  # functions written in C may not tell
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in plain]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    function = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(function, "__name__", repr(function))
    if by_name:
        raise ValueError(
            f"The function {name} takes {len(by_name)} non-default keyword-only parameters, which is not allowed."
        )
    if len(parameters) < count:
        if not any_number:
            raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {count} are required.")
    elif any(p.default is p.empty for p in positional[count:]) or (len(positional) < count and not any_number):
        raise ValueError(
            f"The function {name} takes {len(positional)} positional parameters, but {count} are required."
        )


def _is_local_fn(fn: Any) -> bool:
    if hasattr(fn, "__code__"):
        return bool(fn.__code__.co_flags & inspect.CO_NESTED)
    return "<locals>" in getattr(fn, "__qualname__", getattr(type(fn), "__qualname__", ""))


def _check_unpickable_fn(fn: Any) -> None:
    """Warn of a function that cannot be sent to a worker."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    what = "Local" if _is_local_fn(fn) else "Lambda" if getattr(fn, "__name__", "") == "<lambda>" else ""
    if what:
        warnings.warn(
            f"{what} function is not supported by pickle, please use regular python function or functools.partial "
            "instead.",
            stacklevel=3,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of the patterns; no pattern fits all."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterator[str]:
    """The files of a folder, in order of their names unless that does not matter; a file is its own list."""

    def refuse(error: OSError) -> NoReturn:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for path, folders, files in os.walk(root, onerror=refuse):
        if abspath:
            path = os.path.abspath(path)
        if not non_deterministic:
            files.sort()
            folders.sort()
        yield from (os.path.join(path, file) for file in files if match_masks(file, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Any, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Each path with its open file."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))


def validate_pathname_binary_tuple(data: Any) -> None:
    """Check that this is a path with an open file."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase orits subclasses as type, but it is type "
            f"{type(data[1])}"
        )


class StreamWrapper:
    """An open file that is closed when nobody holds it, or with the last of those that were made from it."""

    session_streams: dict[Any, int] = {}
    debug_unclosed_streams: bool = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close all streams inside of containers, ten levels deep."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for part in v.values() if isinstance(v, dict) else v:
                cls.close_streams(part, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file, once."""
        if self.closed:
            return
        if StreamWrapper.debug_unclosed_streams:
            del StreamWrapper.session_streams[self]
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        close = getattr(self.file_obj, "close", None)
        if close is not None:
            close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close with the last child, or now if there is none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return list({*self.__dict__, *StreamWrapper.__dict__, *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.file_obj = obj
