"""Loaders: order, seeds and values for every option, as PyTorch's."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from multiprocessing import forkserver, resource_tracker
from types import ModuleType
from typing import Any

import numpy
import pytest

from .._resources import kept_level
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from . import _sets

data: Any = submodule("utils.data")


def plain(x: Any, tensor: Any) -> Any:
    """A batch as Python data, with types and dtypes."""
    if isinstance(x, tensor):
        return ("tensor", str(x.dtype).rpartition(".")[2], tuple(x.shape), x.tolist())
    if isinstance(x, dict):
        return {k: plain(v, tensor) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [plain(v, tensor) for v in x])
    return x


def batches(library: Any, make: Any, seed: int = 7, passes: int = 1, **options: Any) -> list[Any]:
    library.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = library.utils.data.DataLoader(make(library), **options)
        return [[plain(b, library.Tensor) for b in loader] for _ in range(passes)]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"batch_size": 3},
    {"batch_size": 3, "drop_last": True},
    {"batch_size": None},
    {"batch_size": 4, "shuffle": True},
    {"batch_size": 4, "shuffle": True, "passes": 2},
    {"batch_size": 4, "shuffle": True, "prefetch_factor": 5, "num_workers": 2},
    {"batch_size": 4, "shuffle": True, "persistent_workers": True, "num_workers": 2, "passes": 3},
    {"batch_size": 1, "in_order": False, "num_workers": 1},
    {"batch_size": 2, "timeout": 30, "num_workers": 2},
]


@pytest.mark.parametrize("kind", ["Numbers", "Everything", "Draws"])
@pytest.mark.parametrize("options", OPTIONS, ids=[" ".join(o) or "default" for o in OPTIONS])
def test_batches_are_the_oracles(oracle: ModuleType, kind: str, options: dict[str, Any]) -> None:
    def make(library: Any) -> Any:
        return getattr(_sets, kind)(library)

    for workers in [options["num_workers"]] if "num_workers" in options else [0, 2]:
        given = {**options, "num_workers": workers}
        with kept_level():
            assert batches(torch, make, **given) == batches(oracle, make, **given)


@pytest.mark.parametrize("name", ["generator", "sampler", "batch_sampler", "weights", "subset", "replacement"])
def test_orders_are_the_oracles(oracle: ModuleType, name: str) -> None:
    def options(library: Any) -> dict[str, Any]:
        d, source = library.utils.data, range(20)
        generator = library.Generator()
        generator.manual_seed(3)
        return {
            "generator": lambda: {"shuffle": True, "generator": generator, "num_workers": 1},
            "sampler": lambda: {"sampler": d.RandomSampler(source, num_samples=50)},
            "batch_sampler": lambda: {"batch_sampler": [[3, 1], [2], [19, 0, 5]]},
            "weights": lambda: {"sampler": d.WeightedRandomSampler(list(range(20)), 12, generator=generator)},
            "subset": lambda: {"sampler": d.SubsetRandomSampler([5, 2, 9, 11], generator=generator)},
            "replacement": lambda: {"sampler": d.RandomSampler(source, replacement=True, num_samples=70)},
        }[name]()

    made = [batches(lib, _sets.Numbers, passes=2, **options(lib)) for lib in (torch, oracle)]
    assert made[0] == made[1]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_iterable_datasets(workers: int, split: bool, persistent: bool) -> None:
    if persistent and not workers:
        return
    with kept_level():
        options: dict[str, Any] = {"batch_size": 3, "num_workers": workers, "persistent_workers": persistent}
        loader = data.DataLoader(_sets.Counting(10, split), **options)
        assert len(loader) == 4
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = sorted(x for batch in loader for x in batch.tolist())
            assert got == sorted(list(range(10)) * (1 if split or not workers else workers))
        dropped = data.DataLoader(_sets.Counting(10, split), **options, drop_last=True)
        assert all(len(b) == 3 for b in dropped)
        del loader, dropped


def test_a_dataset_that_gives_more_than_it_says() -> None:
    for workers, text in ((0, "3 samples have been fetched. $"), (1, "please see|Please see https://pytorch.org")):
        loader = data.DataLoader(_sets.Counting(3, claims=2), batch_size=None, num_workers=workers)
        assert len(loader) == 2
        with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 2") as caught:
            assert len(list(loader)) == 3
        assert len(caught) == 1
        assert re.search(text, str(caught[0].message))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start(method: str) -> None:
    # What Python starts once and keeps.
    resource_tracker.ensure_running()
    if method == "forkserver":
        forkserver.ensure_running()
    with kept_level():
        loader = data.DataLoader(
            _sets.Counting(12), 4, num_workers=2, multiprocessing_context=method, worker_init_fn=_sets.checks_its_number
        )
        assert [b.tolist() for b in loader] == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10], [9, 11]]
        del loader


def test_out_of_order() -> None:
    class Slow(_sets.Numbers):
        def __getitem__(self, i: int) -> Any:
            import time

            time.sleep(1.0 if i == 0 else 0)
            return i

    options: dict[str, Any] = {"batch_size": None, "num_workers": 2, "prefetch_factor": 3}
    assert list(data.DataLoader(Slow(torch, 8), **options)) == list(range(8))
    got = list(data.DataLoader(Slow(torch, 8), **options, in_order=False))
    assert got != list(range(8)) and sorted(got) == list(range(8))


@mindtorch_only
def test_inside_of_a_worker() -> None:
    assert data.get_worker_info() is None
    seen = list(data.DataLoader(_sets.Draws(torch, 4), batch_size=None, num_workers=2, collate_fn=list))
    assert [row[3] for row in seen] == [0, 1, 0, 1] and all(row[4] == 2 for row in seen)


def test_seeds_of_workers(oracle: ModuleType) -> None:
    for seed, worker in itertools.product((0, 1, 2**40 + 12345, 2**63 - 1), (0, 1, 77)):
        mine = submodule("utils.data._utils.worker")._generate_state(seed, worker)
        assert mine == oracle.utils.data._utils.worker._generate_state(seed, worker)


# -- collating ----------------------------------------------------------------------------------------------------
class Bag(dict[str, Any]):
    extra = "kept"


def test_collate_and_convert(oracle: ModuleType) -> None:
    def cases(t: Any) -> list[Any]:
        return [
            [1, 2], [1.5, 2.5], ["a", "b"], [b"a", b"b"], [True, False], [t.ones(2), t.zeros(2)],
            [numpy.ones(2), numpy.zeros(2)], [numpy.int32(1), numpy.int32(2)], [numpy.bool_(True)],
            [(1, "a"), (2, "b")], [[1, t.ones(1)], [2, t.zeros(1)]], [{"a": 1}, {"a": 2}],
            [_sets.Point(1, 2.0), _sets.Point(3, 4.0)], [Bag(a=1), Bag(a=2)], [range(2), range(2)],
            [t.ones(2, dtype=t.int16), t.ones(2, dtype=t.int16)],
        ]  # fmt: skip

    for mine, theirs in zip(cases(torch), cases(oracle)):
        got, expected = data.default_collate(mine), oracle.utils.data.default_collate(theirs)
        assert plain(got, torch.Tensor) == plain(expected, oracle.Tensor)
        assert type(got).__name__ == type(expected).__name__
        got, expected = data.default_convert(mine), oracle.utils.data.default_convert(theirs)
        assert plain(got, torch.Tensor) == plain(expected, oracle.Tensor)
    for bad in ([object()], [None, None], [numpy.array(["a"])], [[1, 2], [1]], [{"a": 1}, {"b": 1}], [1j]):
        outcomes = []
        for lib in (torch, oracle):
            with pytest.raises(Exception) as caught:
                lib.utils.data.default_collate(bad)
            outcomes.append((caught.type, str(caught.value)))
        assert outcomes[0] == outcomes[1]
    table = submodule("utils.data._utils.collate")
    assert list(table.default_collate_fn_map)[1:] == list(
        oracle.utils.data._utils.collate.default_collate_fn_map
    )[1:]  # fmt: skip


def test_workers_stack_into_shared_memory() -> None:
    class Kinds(_sets.Numbers):
        def __getitem__(self, i: int) -> Any:
            return torch.full(((1 << 16) if i < 4 else 3,), float(i))

    with kept_level():
        large, small = list(data.DataLoader(Kinds(torch, 8), 4, num_workers=1))
        assert large.is_shared() and large[:, 0].tolist() == [0, 1, 2, 3] and small[:, 0].tolist() == [4, 5, 6, 7]
        assert large.stride() == (1 << 16, 1)
        del large, small


SENT: dict[str, Any] = {
    "empty": lambda: torch.empty(0, 3),
    "scalar": lambda: torch.tensor(2.5),
    "transposed": lambda: torch.arange(12.0).reshape(3, 4).t(),
    "large transposed": lambda: torch.arange(120000.0).reshape(300, 400).t()[5:, ::3],
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(70000)),
    "bfloat16": lambda: torch.arange(5).to(torch.bfloat16),
    "complex": lambda: torch.complex(torch.ones(2), torch.ones(2)),
    "shared": lambda: torch.arange(4.0).share_memory_(),
    "large": lambda: torch.arange(1 << 20),
    "storage": lambda: torch.arange(3.0).untyped_storage(),
    "meta": lambda: torch.empty(3, 4, device="meta"),
    "nested": lambda: {"a": [torch.ones(2), (torch.zeros(90000), {"b": torch.tensor(1)})], "c": None},
    "many": lambda: [torch.full((20000,), float(i)) for i in range(300)],
}


class Sends(_sets.Numbers):
    def __getitem__(self, i: int) -> Any:
        return list(SENT.values())[i]()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        facts = [(type(t), t.dtype, t.shape, t.stride(), t.requires_grad, t.storage_offset()) for t in (a, b)]
        return facts[0] == facts[1] and (a.device.type == "meta" or torch.equal(a.detach(), b.detach()))
    if isinstance(a, torch.UntypedStorage):
        return bool(a.tolist() == b.tolist())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_everything_arrives_as_it_was(strategy: str) -> None:
    mp: Any = submodule("multiprocessing")
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(strategy)
    try:
        with kept_level():
            loader = data.DataLoader(Sends(torch, len(SENT)), None, num_workers=2, collate_fn=keep)
            for (name, make), got in zip(SENT.items(), loader):
                assert same(got, make()), name
            del got, loader
    finally:
        mp.set_sharing_strategy(before)


def keep(x: Any) -> Any:
    return x


def test_memory_that_is_sent_twice_arrives_once() -> None:
    base = torch.arange(100000.0)

    class Views(_sets.Numbers):
        def __getitem__(self, i: int) -> Any:
            return base[i:], base[: i + 1]

    with kept_level():
        got = list(data.DataLoader(Views(torch, 4), None, num_workers=1, collate_fn=keep))
        assert len({t.untyped_storage().data_ptr() for pair in got for t in pair}) == 1
        got[0][0][3] = -1
        assert got[3][0][0] == got[3][1][3] == -1 and not base.is_shared()
        del got


def test_what_arrived_can_be_sent_on() -> None:
    with kept_level():
        (batch,) = list(data.DataLoader(_sets.Numbers(torch, 2, (50000,)), 2, num_workers=1))
        again = list(data.DataLoader([batch], None, num_workers=1))
        assert torch.equal(again[0], batch)
        del batch, again


def test_long_index_lists_do_not_block() -> None:
    with kept_level():
        size = 200000
        loader = data.DataLoader(range(4 * size), size, num_workers=2, collate_fn=bytes_and_sum)
        assert [total for _, total in loader] == [sum(range(i * size, (i + 1) * size)) for i in range(4)]
        del loader


def bytes_and_sum(batch: list[int]) -> Any:
    return bytes(1 << 20), sum(batch)


# -- options ------------------------------------------------------------------------------------------------------
WRONG: dict[str, dict[str, Any]] = {
    "workers": {"num_workers": -1},
    "timeout": {"timeout": -1},
    "prefetch alone": {"prefetch_factor": 2},
    "prefetch": {"prefetch_factor": -1, "num_workers": 1},
    "persistent": {"persistent_workers": True},
    "sampler and shuffle": {"sampler": [1], "shuffle": True},
    "batch sampler": {"batch_sampler": [[1]], "batch_size": 2},
    "no batches": {"batch_size": None, "drop_last": True},
    "batch size": {"batch_size": 0},
    "method": {"multiprocessing_context": "pigeon", "num_workers": 1},
    "context": {"multiprocessing_context": 3, "num_workers": 1},
    "context alone": {"multiprocessing_context": "fork"},
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options(oracle: ModuleType, name: str) -> None:
    said = []
    for lib in (torch, oracle):
        with pytest.raises(Exception) as caught:
            lib.utils.data.DataLoader(range(4), **WRONG[name])
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
def test_iterable_datasets_have_their_own_order(name: str) -> None:
    value = True if name == "shuffle" else [1]
    with pytest.raises(ValueError, match=f"expected unspecified {name} option, but got {name}="):
        data.DataLoader(_sets.Counting(3), **{name: value})


def test_attributes_are_fixed() -> None:
    loader = data.DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 4
    loader.timeout = 0
    with pytest.raises(NotImplementedError):
        __import__("pickle").dumps(iter(loader))


def test_too_many_workers_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="This DataLoader will create 500 worker processes in total. Our suggested"):
        data.DataLoader(range(3), num_workers=500)


@pytest.mark.skipif(IS_ORACLE, reason="needs a library without accelerator")
def test_pinning_without_accelerator_warns() -> None:
    if torch.accelerator.is_available():
        return
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert len(list(data.DataLoader(range(3), pin_memory=True))) == 3


def test_closures_cannot_be_spawned() -> None:
    with kept_level(), pytest.warns(UserWarning, match="Got pickle error when attempting to start a worker Process"):
        with pytest.raises((AttributeError, TypeError)):
            iter(data.DataLoader([lambda: 0], num_workers=2, multiprocessing_context="spawn"))


NAMES = [
    "", ".dataloader", ".dataset", ".sampler", ".distributed", ".graph", ".graph_settings", "._utils",
    "._utils.collate", "._utils.fetch", "._utils.pin_memory", "._utils.signal_handling", "._utils.worker",
    ".datapipes", ".datapipes.datapipe", ".datapipes.iter", ".datapipes.map", ".datapipes._decorator",
    ".datapipes.utils.common", ".datapipes.utils.decoder", ".datapipes.iter.combining", ".backward_compatibility",
]  # fmt: skip


# Constants that PyTorch imports into its modules.
WINDOWS_AND_TYPING = {"IS_WINDOWS", "HAS_NUMPY", "MP_STATUS_CHECK_INTERVAL", "TYPE_CHECKING"}


@pytest.mark.parametrize("name", NAMES)
def test_names(oracle: ModuleType, name: str) -> None:
    import importlib

    theirs = importlib.import_module(f"torch.utils.data{name}")
    ours = importlib.import_module(f"mindtorch_v2.utils.data{name}")
    public = set(getattr(theirs, "__all__", ())) or {
        n
        for n, value in vars(theirs).items()
        if not n.startswith("_") and getattr(value, "__module__", theirs.__name__) == theirs.__name__
        and not isinstance(value, ModuleType)
    }  # fmt: skip
    assert sorted(public - set(dir(ours)) - WINDOWS_AND_TYPING) == []
    assert sorted(getattr(ours, "__all__", ())) == sorted(getattr(theirs, "__all__", ()))
