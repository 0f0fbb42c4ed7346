"""Datasets and samplers: values, randomness and wrong calls, as PyTorch's."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule
from . import _sets

data: Any = submodule("utils.data")


class Several:
    """A dataset with `__getitems__`."""

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        return i * 10

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [i * 10 for i in indices][: 1 if self.wrong else None]


CALLS: dict[str, Any] = {
    "tensors": lambda t, d: [[x.tolist() for x in d.TensorDataset(t.arange(6), t.arange(12).reshape(6, 2))[2:4]]],
    "tensors of other sizes": lambda t, d: d.TensorDataset(t.arange(6), t.arange(5)),
    "stack": lambda t, d: d.StackDataset(range(6), Several())[3],
    "stack by name": lambda t, d: d.StackDataset(a=range(6), b=Several()).__getitems__([0, 5]),
    "stack several": lambda t, d: d.StackDataset(range(6), Several()).__getitems__([1, 2]),
    "stack nothing": lambda t, d: d.StackDataset(),
    "stack both": lambda t, d: d.StackDataset([1], a=[1]),
    "stack sizes": lambda t, d: d.StackDataset([1], [1, 2]),
    "stack wrong": lambda t, d: d.StackDataset(Several(True)).__getitems__([1, 2]),
    "concat": lambda t, d: [d.ConcatDataset([range(3), range(5)])[i] for i in (0, 2, 3, 7, -1, -8)],
    "concat too far": lambda t, d: d.ConcatDataset([range(3)])[-4],
    "concat nothing": lambda t, d: d.ConcatDataset([]),
    "concat sizes": lambda t, d: d.ConcatDataset([range(3), range(5)]).cumulative_sizes,
    "add": lambda t, d: len(d.TensorDataset(t.arange(3)) + d.TensorDataset(t.arange(4))),
    "subset": lambda t, d: d.Subset(range(10), [3, 5, 7]).__getitems__([0, 2]),
    "subset of several": lambda t, d: d.Subset(Several(), [3, 5]).__getitems__([1, 0]),
    "subset by list": lambda t, d: d.Subset(t.arange(10), [3, 5, 7])[[0, 2]].tolist(),
    "base": lambda t, d: d.Dataset()[0],
    "chain of indexed": lambda t, d: list(d.ChainDataset([range(3)])),
    "split": lambda t, d: [list(s) for s in d.random_split(range(10), [3, 7], t.Generator().manual_seed(1))],
    "split by fractions": lambda t, d: [s.indices for s in d.random_split(range(11), [0.3, 0.3, 0.4])],
    "split into nothing": lambda t, d: [s.indices for s in d.random_split(range(1), [0.5, 0.5])],
    "split wrong": lambda t, d: d.random_split(range(10), [3, 8]),
    "split negative": lambda t, d: d.random_split(range(10), [-0.5, 1.5]),
    "sequential": lambda t, d: list(d.SequentialSampler(range(4))),
    "random": lambda t, d: list(d.RandomSampler(range(7))),
    "random of many": lambda t, d: list(d.RandomSampler(range(7), num_samples=17)),
    "replacement": lambda t, d: list(d.RandomSampler(range(7), True, 40, t.Generator().manual_seed(3))),
    "random bad": lambda t, d: d.RandomSampler(range(7), replacement=1),
    "random empty": lambda t, d: d.RandomSampler([]),
    "random none": lambda t, d: d.RandomSampler(range(3), num_samples=0),
    "subset random": lambda t, d: list(d.SubsetRandomSampler([4, 2, 9])),
    "weights": lambda t, d: list(d.WeightedRandomSampler([0.1, 3.0, 0.0, 2.0], 9)),
    "weights once": lambda t, d: list(d.WeightedRandomSampler([0.1, 3.0, 1.0, 2.0], 3, replacement=False)),
    "weights 2d": lambda t, d: d.WeightedRandomSampler([[1.0]], 3),
    "weights count": lambda t, d: d.WeightedRandomSampler([1.0], True),
    "weights flag": lambda t, d: d.WeightedRandomSampler([1.0], 1, replacement=1),
    "batches": lambda t, d: (list(d.BatchSampler(range(7), 3, False)), len(d.BatchSampler(range(7), 3, False))),
    "batches dropped": lambda t, d: (list(d.BatchSampler(range(7), 3, True)), len(d.BatchSampler(range(7), 3, True))),
    "batch size": lambda t, d: d.BatchSampler(range(7), 0, True),
    "batch flag": lambda t, d: d.BatchSampler(range(7), 1, None),
    "sampler": lambda t, d: iter(d.Sampler()),
    "rank": lambda t, d: d.DistributedSampler(range(3), 2, 2),
}  # fmt: skip


def outcome(library: Any, name: str) -> Any:
    library.manual_seed(11)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = CALLS[name](library, library.utils.data)
        except Exception as error:
            value = (type(error).__name__, str(error))
    return value, [str(w.message) for w in caught]


@pytest.mark.parametrize("name", CALLS)
def test_as_the_oracle(oracle: ModuleType, name: str) -> None:
    assert outcome(torch, name) == outcome(oracle, name)


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_distributed_samplers(oracle: ModuleType, shuffle: bool, drop_last: bool) -> None:
    for size, replicas, epoch in ((10, 3, 0), (10, 3, 5), (2, 5, 1), (12, 4, 0), (1, 4, 2)):
        for rank in range(replicas):
            rows = []
            for library in (torch, oracle):
                s = library.utils.data.DistributedSampler(
                    range(size), replicas, rank, shuffle=shuffle, seed=9, drop_last=drop_last
                )
                s.set_epoch(epoch)
                rows.append((list(s), len(s)))
            assert rows[0] == rows[1]


def test_subclasses_of_subset_fetch_by_their_own_rules() -> None:
    class Half(data.Subset):
        def __getitem__(self, idx: Any) -> Any:
            return 0

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        Half(range(3), [1])


def test_chains() -> None:
    both = _sets.Counting(2) + _sets.Counting(3)
    assert list(both) == [0, 1, 0, 1, 2] and len(both) == 5
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed"):
        assert data.ConcatDataset([[1]]).cummulative_sizes == [1]
