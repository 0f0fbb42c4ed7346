"""Datapipes of data frames, as PyTorch's, over frames of our own that both libraries know by a wrapper."""

from __future__ import annotations

import importlib
import math
import pickle
import random
from collections import namedtuple
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from .._subject import subject as torch

Row = namedtuple("Row", ["a", "b"])


class Column(list):  # type: ignore[type-arg]
    def __add__(self, other: Any) -> Column:
        return Column(x + y for x, y in zip(self, other if isinstance(other, list) else [other] * len(self)))

    def __sub__(self, other: Any) -> Column:
        return Column(x - y for x, y in zip(self, other if isinstance(other, list) else [other] * len(self)))

    def __mul__(self, other: Any) -> Column:
        return Column(x * other for x in self)

    def largest(self, at_least: int = 0) -> int:
        return max(at_least, *self)


class Frame:
    """Two columns and what the datapipes use of pandas' frames."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = [Row(*row) for row in rows]

    index = property(lambda self: range(len(self.rows)))
    iloc = property(lambda self: self.rows)
    columns = property(lambda self: list(Row._fields))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Frame(self.rows[key])
        return Column(getattr(row, key) for row in self.rows)

    def __setitem__(self, key: str, values: Any) -> None:
        self.rows = [row._replace(**{key: value}) for row, value in zip(self.rows, values)]


class Wrapper:
    """What a library of frames would give to `set_df_wrapper`."""

    @staticmethod
    def create_dataframe(data: Any, columns: Any) -> Frame:
        return Frame([row if len(row) == 2 else [row[0], row[0] * 10] for row in data])

    is_dataframe = staticmethod(lambda data: isinstance(data, Frame))
    is_column = staticmethod(lambda data: isinstance(data, Column))
    iterate = staticmethod(lambda data: iter(data.rows if isinstance(data, Frame) else data))
    concat = staticmethod(lambda frames: Frame([row for frame in frames for row in frame.rows]))
    get_item = staticmethod(lambda data, at: data[at : at + 1])
    get_len = staticmethod(len)
    get_columns = staticmethod(lambda data: data.columns)


def plain(value: Any) -> Any:
    """What can be compared: frames as their rows, batches as lists."""
    if isinstance(value, Frame):
        return [tuple(row) for row in value.rows]
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value


def library(t: Any) -> Any:
    """The modules of a library that are under test."""
    base = f"{t.__name__}.utils.data.datapipes"
    names = ("iter", "dataframe", "dataframe.dataframes", "dataframe.dataframe_wrapper", "dataframe.structures")
    return SimpleNamespace(**{n.rpartition(".")[2]: importlib.import_module(f"{base}.{n}") for n in names})


@pytest.fixture(autouse=True)
def wrapped() -> Iterator[None]:
    """Our frames in both libraries, where both are there."""
    wrappers = [library(torch).dataframe_wrapper]
    if importlib.util.find_spec("torch") is not None:
        wrappers.append(library(importlib.import_module("torch")).dataframe_wrapper)
    before = [w.get_df_wrapper() for w in wrappers]
    for w in wrappers:
        w.set_df_wrapper(Wrapper)
    yield
    for w, old in zip(wrappers, before):
        w.set_df_wrapper(old)


def frames(lib: Any, size: int = 4, count: int = 10) -> Any:
    return lib.iter.IterableWrapper(range(count))._to_dataframes_pipe(dataframe_size=size, columns=["a", "b"])


def as_tuples(lib: Any) -> Any:
    return list(frames(lib))


def raw(lib: Any) -> Any:
    return list(frames(lib).raw_iterator())


def arithmetic(lib: Any) -> Any:
    df = frames(lib)
    df["a"] = df["b"] + df["a"] * 3 - 1
    names = str(df.ctx["operations"][-1]).count("var_")
    return list(df), names, list(df.columns)


def calls(lib: Any) -> Any:
    df = frames(lib)
    best = df["b"].largest(at_least=35)
    return [best.apply_ops(frame) for frame in frames(lib).raw_iterator()]


def captured_function(lib: Any) -> Any:
    df = frames(lib)
    with lib.dataframes.CaptureLikeMock("math.isnan"):
        flag: Any = math.isnan(df["a"].largest())
    return [flag.apply_ops(frame) for frame in frames(lib).raw_iterator()], math.isnan(0.0)


def batches(lib: Any) -> Any:
    made = frames(lib).batch(3)
    return [
        (type(b).__name__, list(b), len(b), plain(list(b.raw_iterator()))) for b in made
    ], made._dp_contains_dataframe


def shuffled(lib: Any) -> Any:
    random.seed(3)
    return list(frames(lib).shuffle())


def filtered(lib: Any) -> Any:
    return list(frames(lib).filter(lambda row: row.a % 3 == 0))


def filtered_by_column(lib: Any) -> Any:
    source = lib.iter.IterableWrapper(
        [Frame([(1, 2), (3, 4)]), Frame([(5, 6)]), Frame([(7, 8), (9, 1)])], deepcopy=False
    )
    return list(source.filter(rows_above_two))


def rows_above_two(frame: Any) -> Any:
    return Column(x > 2 and x != 5 for x in frame["a"])


def grouped(lib: Any) -> Any:
    return [plain(g) for g in frames(lib).groupby(lambda frame: frame.rows[0].a % 2, group_size=2)]


def concatenated(lib: Any) -> Any:
    return [len(f) for f in frames(lib, 2)._dataframes_concat(3).raw_iterator()]


def collated(lib: Any) -> Any:
    batch = frames(lib).batch(5)
    return [(type(x).__name__, x._fields, x.a, x.b) for x in batch.collate({"a": sum, "b": max})]


def pickled(lib: Any) -> Any:
    df = frames(lib)
    df["a"] = df["a"] * 2
    copy = pickle.loads(pickle.dumps(df))
    return list(copy)


def described(lib: Any) -> Any:
    d = lib.dataframes
    d.CaptureVariable.names_idx = 0
    df = d.CaptureDataFrame()
    total = df["x"] + df.y.sum(1, axis=0)
    df["z"] = total
    return str(df), df._ops_str(), str(df["q"]), str(d.get_val("text")), d.get_val(5), df._is_context_empty()


CASES = [
    as_tuples, raw, arithmetic, calls, captured_function, batches, shuffled, filtered, filtered_by_column, grouped,
    concatenated, collated, pickled, described,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_the_oracle(oracle: ModuleType, case: Any) -> None:
    assert plain(case(library(torch))) == plain(case(library(oracle)))


BAD = {
    "collate": lambda lib: frames(lib).collate(),
    "keys": lambda lib: list(frames(lib).batch(5).collate({"c": sum})),
    "not callable": lambda lib: list(frames(lib).batch(5).collate({"a": 1, "b": 2})),
    "default": lambda lib: list(frames(lib).batch(5).collate({"a": sum})),
    "kwargs": lambda lib: frames(lib)["a"].kwargs,
    "sharding": lambda lib: frames(lib).apply_sharding,
    "two frames": lambda lib: list(
        lib.iter.IterableWrapper([Frame([(1, 2)])] * 2, deepcopy=False).batch(2).collate({"a": sum, "b": sum})
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_as_by_the_oracle(oracle: ModuleType, name: str) -> None:
    said = []
    for t in (torch, oracle):
        with pytest.raises((RuntimeError, AttributeError)) as caught:
            BAD[name](library(t))
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_values() -> None:
    lib = library(torch)
    assert plain(as_tuples(lib)) == [[n, 10 * n] for n in range(10)]
    assert plain(arithmetic(lib)[0])[2] == [10 * 2 + 2 * 3 - 1, 20]
    assert lib.dataframe.CaptureDataFrame is lib.dataframes.CaptureDataFrame


def test_pandas_is_asked_for() -> None:
    lib = library(torch)
    lib.dataframe_wrapper.set_df_wrapper(lib.dataframe_wrapper.PandasWrapper)
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(RuntimeError, match="DataFrames prototype requires pandas to function"):
            lib.dataframe_wrapper.create_dataframe([[1]])
        assert not lib.dataframe_wrapper.is_dataframe([]) and not lib.dataframe_wrapper.is_column([])
    else:
        assert lib.dataframe_wrapper.get_len(lib.dataframe_wrapper.create_dataframe([[1], [2]], ["x"])) == 2
