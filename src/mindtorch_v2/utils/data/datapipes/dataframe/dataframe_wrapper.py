"""What datapipes ask of data frames. pandas answers, unless `set_df_wrapper` names another class of answers.

Invariant: pandas is imported when a frame is first asked about, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _found() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        return None


def _with_pandas() -> bool:
    return _found() is not None


def _pandas() -> Any:
    """pandas, which the answers below need."""
    if not _with_pandas():
        raise RuntimeError("DataFrames prototype requires pandas to function")
    return _found()


class PandasWrapper:
    """The answers for pandas."""

    @classmethod
    def create_dataframe(cls, data: Any, columns: Any) -> Any:
        return _pandas().DataFrame(data, columns=columns)

    @classmethod
    def is_dataframe(cls, data: Any) -> bool:
        return _with_pandas() and isinstance(data, _pandas().DataFrame)

    @classmethod
    def is_column(cls, data: Any) -> bool:
        return _with_pandas() and isinstance(data, _pandas().Series)

    @classmethod
    def iterate(cls, data: Any) -> Iterator[Any]:
        """The rows, as named tuples."""
        _pandas()
        yield from data.itertuples(index=False)

    @classmethod
    def concat(cls, buffer: Any) -> Any:
        return _pandas().concat(buffer)

    @classmethod
    def get_item(cls, data: Any, idx: int) -> Any:
        """A frame of one row."""
        _pandas()
        return data[idx : idx + 1]

    @classmethod
    def get_len(cls, df: Any) -> int:
        _pandas()
        return len(df.index)

    @classmethod
    def get_columns(cls, df: Any) -> list[Any]:
        _pandas()
        return list(df.columns.values.tolist())


default_wrapper: Any = PandasWrapper


def get_df_wrapper() -> Any:
    """The class that answers."""
    return default_wrapper


def set_df_wrapper(wrapper: Any) -> None:
    """Let another class answer, for frames of another library."""
    global default_wrapper
    default_wrapper = wrapper


def create_dataframe(data: Any, columns: Any = None) -> Any:
    """A frame of a list of rows."""
    return default_wrapper.create_dataframe(data, columns)


def is_dataframe(data: Any) -> Any:
    return default_wrapper.is_dataframe(data)


def get_columns(data: Any) -> Any:
    return default_wrapper.get_columns(data)


def is_column(data: Any) -> Any:
    return default_wrapper.is_column(data)


def concat(buffer: Any) -> Any:
    """One frame of several."""
    return default_wrapper.concat(buffer)


def iterate(data: Any) -> Any:
    return default_wrapper.iterate(data)


def get_item(data: Any, idx: Any) -> Any:
    return default_wrapper.get_item(data, idx)


def get_len(df: Any) -> Any:
    return default_wrapper.get_len(df)
