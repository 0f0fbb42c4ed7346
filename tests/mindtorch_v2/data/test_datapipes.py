"""Datapipes, step by step and in loaders, as PyTorch's."""

from __future__ import annotations

import io
import pickle
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .._resources import kept_level
from .._subject import subject as torch
from .._subject import submodule

data: Any = submodule("utils.data")


def double(x: Any) -> Any:
    return x * 2


def even(x: Any) -> bool:
    return bool(x % 2 == 0)


def third(x: Any) -> int:
    return int(x % 3)


def none_of_one(x: Any) -> Any:
    return None if x % 3 == 1 else 0


def add(x: Any, y: Any) -> Any:
    return x + y


def wrong(x: Any) -> Any:
    return 1


def raises(x: Any) -> Any:
    raise ValueError("inside")


def by_name(x: Any, *, y: Any) -> Any:
    return x


def source(d: Any, n: int = 10) -> Any:
    return d.datapipes.iter.IterableWrapper(range(n))


def rows(d: Any) -> Any:
    return d.datapipes.iter.IterableWrapper([(1, 2, 3), (4, 5, 6)])


def sequence(d: Any) -> Any:
    return d.datapipes.map.SequenceWrapper([5, 6, 7])


CALLS: dict[str, Any] = {
    "map": lambda d: list(source(d).map(double)),
    "column": lambda d: list(rows(d).map(double, input_col=1)),
    "columns": lambda d: list(rows(d).map(add, input_col=(0, 2))),
    "into": lambda d: list(rows(d).map(add, input_col=(0, 2), output_col=1)),
    "append": lambda d: list(rows(d).map(add, input_col=[0, 1], output_col=-1)),
    "append list": lambda d: list(rows(d).map(add, input_col=[0, 1], output_col=[-1])),
    "output without input": lambda d: rows(d).map(double, output_col=1),
    "two outputs": lambda d: rows(d).map(double, input_col=0, output_col=[1, 2]),
    "too few columns": lambda d: rows(d).map(add, input_col=0),
    "too many columns": lambda d: rows(d).map(double, input_col=[0, 1]),
    "keyword only": lambda d: rows(d).map(by_name),
    "no function": lambda d: rows(d).map(3),
    "filter": lambda d: list(source(d).filter(even)),
    "filter no bool": lambda d: list(source(d).filter(double)),
    "batch": lambda d: [list(b) for b in source(d).batch(3)],
    "batch drop": lambda d: ([list(b) for b in source(d).batch(3, drop_last=True)], len(source(d).batch(3))),
    "batch zero": lambda d: source(d).batch(0),
    "unbatch": lambda d: list(source(d).batch(2).batch(2).unbatch(2)),
    "unbatch all": lambda d: list(source(d).batch(2).batch(2).unbatch(-1)),
    "unbatch too far": lambda d: list(source(d).batch(2).unbatch(3)),
    "collate": lambda d: [b.tolist() for b in source(d).batch(4).collate()],
    "groupby": lambda d: [list(g) for g in source(d).groupby(third)],
    "groupby size": lambda d: [list(g) for g in source(d).groupby(third, group_size=2, buffer_size=3)],
    "groupby key": lambda d: [(k, list(g)) for k, g in source(d).groupby(third, keep_key=True, buffer_size=4)],
    "groupby fails": lambda d: list(source(d).groupby(double, group_size=3, buffer_size=3)),
    "groupby drops": lambda d: list(source(d).groupby(double, group_size=3, buffer_size=3, drop_remaining=True)),
    "concat": lambda d: list(source(d, 2).concat(source(d, 3))),
    "concat wrong": lambda d: source(d, 2).concat([1]),
    "zip": lambda d: list(source(d, 2).zip(source(d, 3))),
    "zip wrong": lambda d: source(d).zip([1]),
    "mux": lambda d: (list(source(d, 2).mux(source(d, 3))), len(source(d, 2).mux(source(d, 3)))),
    "fork": lambda d: [list(p) for p in source(d, 4).fork(3)],
    "fork overflow": lambda d: [list(p) for p in source(d, 9).fork(2, buffer_size=3)],
    "fork unlimited": lambda d: [list(p) for p in source(d, 9).fork(2, buffer_size=-1)],
    "fork one": lambda d: list(source(d, 4).fork(1)),
    "fork none": lambda d: source(d, 4).fork(0),
    "fork copy": lambda d: source(d, 4).fork(2, copy="wide"),
    "fork lockstep": lambda d: list(zip(*source(d, 9).fork(2, buffer_size=1))),
    "demux": lambda d: [list(p) for p in source(d).demux(3, third)],
    "demux drop": lambda d: [list(p) for p in source(d).demux(1, none_of_one, drop_none=True)],
    "demux none": lambda d: [list(p) for p in source(d).demux(1, none_of_one)],
    "demux overflow": lambda d: [list(p) for p in source(d).demux(3, third, buffer_size=2)],
    "sharding": lambda d: list(d.graph_settings.apply_sharding(source(d).sharding_filter(), 3, 1)),
    "sharding twice": lambda d: d.graph_settings.apply_sharding(source(d).sharding_filter().sharding_filter(), 3, 1),
    "sharding wrong": lambda d: source(d).sharding_filter().apply_sharding(2, 2),
    "shuffle": lambda d: list(source(d).shuffle().set_seed(3)),
    "shuffle small": lambda d: list(source(d).shuffle(buffer_size=3).set_seed(3)),
    "shuffle off": lambda d: list(source(d).shuffle().set_shuffle(False)),
    "shuffle default": lambda d: [list(source(d).shuffle()) for _ in range(2)],
    "shuffle empty": lambda d: source(d).shuffle(buffer_size=0),
    "sampler": lambda d: list(d.datapipes.iter.Sampler(source(d))),
    "no length": lambda d: len(source(d).filter(even)),
    "lengths": lambda d: [len(p) for p in (source(d).map(double), source(d).shuffle(), source(d).sharding_filter())],
    "no step": lambda d: source(d).fly(),
    "chunk": lambda d: (d.DataChunk([1, 2]).as_str("  "), list(d.DataChunk([1, 2]).raw_iterator())),
    "error told": lambda d: list(source(d).map(raises)),
    "loader": lambda d: [b.tolist() for b in d.DataLoader(source(d), 4)],
    "loader shuffled": lambda d: [b.tolist() for b in d.DataLoader(source(d).shuffle(), 4, shuffle=True)],
    "loader off": lambda d: [b.tolist() for b in d.DataLoader(source(d).shuffle(), 4, shuffle=False)],
    "loader adds": lambda d: [b.tolist() for b in d.DataLoader(source(d), 4, shuffle=True)],
    "map map": lambda d: (list(sequence(d).map(double)), len(sequence(d).map(double)), sequence(d).map()[1]),
    "map batch": lambda d: ([list(b) for b in sequence(d).batch(2)], len(sequence(d).batch(2, drop_last=True))),
    "map batch far": lambda d: sequence(d).batch(2)[5],
    "map concat": lambda d: sequence(d).concat(sequence(d))[4],
    "map concat far": lambda d: sequence(d).concat(sequence(d))[6],
    "map zip": lambda d: sequence(d).zip(sequence(d).map(double))[2],
    "map shuffle": lambda d: list(sequence(d).shuffle().set_seed(5)),
    "map wrong": lambda d: sequence(d).zip([1]),
    "map loader": lambda d: [b.tolist() for b in d.DataLoader(sequence(d).map(double), 2)],
    "text": lambda d: (repr(source(d).map(double)), str(sequence(d))),
    "graph": lambda d: len(d.graph_settings.get_all_graph_pipes(d.graph.traverse_dps(source(d).map(double).batch(2)))),
    "graph wrong": lambda d: d.graph.traverse_dps([1]),
    "old traverse": lambda d: len(d.graph.traverse(source(d))),
    "old seed": lambda d: list(d.graph_settings.apply_shuffle_seed(source(d).shuffle(), None)),
    "opener mode": lambda d: source(d).open_files(mode="w"),
    "decode": lambda d: d.datapipes.utils.decoder.basichandlers("json", b'{"a": 1}'),
}  # fmt: skip


def outcome(library: Any, name: str) -> Any:
    library.manual_seed(11)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = CALLS[name](library.utils.data)
        except Exception as error:
            value = (type(error).__name__, str(error).replace("mindtorch_v2", "torch"))
    return value, sorted(str(w.message) for w in caught if not issubclass(w.category, ResourceWarning))


@pytest.mark.parametrize("name", CALLS)
def test_as_the_oracle(oracle: ModuleType, name: str) -> None:
    assert outcome(torch, name) == outcome(oracle, name)


def test_only_the_last_iterator_is_valid() -> None:
    pipe = source(data)
    first = iter(pipe)
    next(first)
    second = iter(pipe)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="This iterator has been invalidated because another iterator"):
        next(first)


def test_children_begin_together() -> None:
    one, two = source(data, 4).fork(2)
    assert next(iter(one)) == 0
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        again = iter(one)
        assert next(again) == 0
    assert list(two) == [0, 1, 2, 3]


def test_workers_share_the_samples_out() -> None:
    with kept_level():
        pipe = source(data, 12).shuffle().sharding_filter().map(double)
        for persistent in (True, False):
            torch.manual_seed(2)
            loader = data.DataLoader(pipe, 2, num_workers=2, shuffle=True, persistent_workers=persistent)
            passes = [[x for b in loader for x in b.tolist()] for _ in range(2)]
            assert all(sorted(p) == list(range(0, 24, 2)) for p in passes) and passes[0] != passes[1]
        del loader


def test_worker_orders_are_the_oracles(oracle: ModuleType) -> None:
    made = []
    for library in (torch, oracle):
        library.manual_seed(4)
        d = library.utils.data
        loader = d.DataLoader(source(d, 12).shuffle().sharding_filter(), 2, num_workers=2, shuffle=True)
        made.append([b.tolist() for b in loader])
    assert made[0] == made[1]


def test_own_steps() -> None:
    @data.functional_datapipe("plus_one_of_the_tests")
    class PlusOne(data.IterDataPipe):
        def __init__(self, pipe: Any) -> None:
            self.pipe = pipe

        def __iter__(self) -> Any:
            for x in self.pipe:
                yield x + 1

    try:
        assert list(source(data, 3).plus_one_of_the_tests()) == [1, 2, 3]
        with pytest.raises(Exception, match="Unable to add DataPipe function name plus_one_of_the_tests"):
            data.functional_datapipe("plus_one_of_the_tests")(PlusOne)
        assert "plus_one_of_the_tests" in dir(source(data))
    finally:
        del data.IterDataPipe.functions["plus_one_of_the_tests"]


def test_determinism() -> None:
    @data.non_deterministic
    class Any_(data.IterDataPipe):
        pass

    @data.non_deterministic(lambda flag: flag)
    class Some(data.IterDataPipe):
        def __init__(self, flag: bool) -> None:
            pass

    Any_(), Some(True)
    with data.guaranteed_datapipes_determinism():
        with pytest.raises(TypeError, match="Any_ is non-deterministic, but you set"):
            Any_()
        Some(False)
        with pytest.raises(TypeError, match="Some is non-deterministic with the inputs"):
            Some(True)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "a.txt", "c.bin", "in/d.txt"):
        (tmp_path / name).write_text(name)
    pipes = submodule("utils.data.datapipes.iter")
    with kept_level():
        names = pipes.FileLister(str(tmp_path), "*.txt", recursive=True)
        assert [Path(p).name for p in names] == ["a.txt", "b.txt", "d.txt"]
        assert [(Path(p).name, s) for p, s in names.open_files("b").read_from_stream()] == [
            ("a.txt", b"a.txt"), ("b.txt", b"b.txt"), ("d.txt", b"in/d.txt")
        ]  # fmt: skip
        with pytest.warns(FutureWarning, match="RoutedDecoderIterDataPipe"):
            assert [s for _, s in names.open_files("b").routed_decode()] == ["a.txt", "b.txt", "in/d.txt"]
    assert list(pipes.StreamReader([("x", io.BytesIO(b"abcde"))], chunk=2)) == [("x", b"ab"), ("x", b"cd"), ("x", b"e")]


def test_snapshots() -> None:
    restore = submodule("utils.data.datapipes.utils.snapshot")._simple_graph_snapshot_restoration
    pipe = source(data).shuffle()
    restore(pipe, 3, torch.Generator().manual_seed(1))
    rest = list(pipe)
    assert len(rest) == 7
    again = source(data).shuffle()
    restore(again, 0, torch.Generator().manual_seed(1))
    assert list(again)[3:] == rest
    with pytest.raises(RuntimeError, match="exceeds the number of samples available"):
        restore(source(data), 11, torch.Generator())


def test_pickles() -> None:
    pipe = source(data).shuffle().batch(3).map(double)
    copy = pickle.loads(pickle.dumps(pipe))
    assert sorted(x for b in copy for x in b) == sorted([*range(10)] * 2)
