"""Events, averages and tables of made-up profiles: the same text as PyTorch's, to the letter."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import submodule

util: Any = submodule("autograd.profiler_util")

NAMES = (
    "aten::add",
    "aten::mm",
    "aten::a_name_that_is_so_long_that_no_table_shows_the_whole_of_it",
    "ProfilerStep*",
    "fw",
)
STACKS: tuple[list[str], ...] = (["train.py(3): step", "train.py(9): <module>"], ["x" * 90 + ".py(1): f"], [])


def profiled(u: Any, seed: int, device: bool = False, **options: Any) -> Any:
    """A list of nested events with all kinds of fields, the same for the same seed in either library."""
    rng = random.Random(seed)
    kinds = u.FunctionEvent.__init__.__globals__["DeviceType"]
    events: list[Any] = []

    def add(start: float, end: float, depth: int) -> None:
        number = len(events) + 1
        stack = rng.choice(STACKS) if options.get("stack") else []
        event = u.FunctionEvent(
            id=number,
            name=rng.choice(NAMES),
            overload_name=rng.choice(["", "Tensor", "out"]) if options.get("overload") else "",
            trace_name=f"trace {number}",
            thread=1 + number % 2 if depth == 0 else events[-1].thread,
            start_us=start,
            end_us=end,
            fwd_thread=1,
            input_shapes=[[rng.randrange(9), 3], []] if options.get("shapes") else [],
            stack=list(stack),
            scope=rng.choice([0, 0, 0, 1, 7]),
            use_device="cuda" if device else None,
            cpu_memory_usage=rng.choice([0, 4096, -100, 5 << 20, 3 << 30]),
            device_memory_usage=rng.choice([0, 512, -512]) if device else 0,
            sequence_nr=rng.randrange(4),
            node_id=rng.choice([-1, 0, 2]) if options.get("node") else -1,
            flops=rng.choice([0, 0, 120, 7_000_000]),
            is_user_annotation=rng.random() < 0.2,
            is_async=rng.random() < 0.1,
        )
        if device and rng.random() < 0.5:
            event.append_kernel("kernel", 0, rng.random() * 50)
        events.append(event)
        if depth < 3:
            at = start
            for _ in range(rng.randrange(3)):
                at += (end - start) / 8
                add(at, at + (end - start) / 6, depth + 1)
                at += (end - start) / 6

    for i in range(6):
        add(1000.0 * i, 1000.0 * i + 900 * 10 ** rng.randrange(0, 1), 0)
    if device:
        on = u.FunctionEvent(
            99, "kernel", 7, 5.0, 9.0, "", use_device="cuda", device_type=kinds.CUDA, stack=[], flops=0
        )
        events.append(on)
    found = u.EventList(
        events,
        use_device="cuda" if device else None,
        profile_memory=bool(options.get("memory")),
        with_flops=bool(options.get("flops")),
    )
    found._build_tree()
    return found


OPTIONS: list[dict[str, Any]] = [
    {},
    {"memory": True},
    {"shapes": True, "flops": True},
    {"stack": True},
    {"overload": True, "node": True},
    {"device": True, "memory": True, "shapes": True, "stack": True, "flops": True, "overload": True, "node": True},
]
PRINTINGS: list[dict[str, Any]] = [
    {},
    {"sort_by": "self_cpu_time_total", "row_limit": 3},
    {"sort_by": "cpu_time_total", "row_limit": -1, "time_unit": "ms"},
    {"sort_by": "count", "header": "A HEADER", "max_name_column_width": 20, "max_shapes_column_width": 8},
    {"max_src_column_width": 30, "max_name_column_width": None, "time_unit": "s"},
    {"sort_by": "cuda_time_total", "time_unit": "us"},
]


@pytest.mark.oracle
@pytest.mark.parametrize("i", range(len(OPTIONS)))
def test_texts_are_pytorchs(i: int) -> None:
    theirs = _oracle.load().autograd.profiler_util
    for seed in range(4):
        mine, other = profiled(util, seed, **OPTIONS[i]), profiled(theirs, seed, **OPTIONS[i])
        assert [repr(e) for e in mine] == [repr(e) for e in other]
        assert repr(mine.total_average()) == repr(other.total_average())
        assert mine.self_cpu_time_total == other.self_cpu_time_total
        for printing in PRINTINGS:
            assert mine.table(**printing) == other.table(**printing)
            assert mine.table(top_level_events_only=True, **printing) == other.table(
                top_level_events_only=True, **printing
            )
            for grouping in ((False, 0, False), (True, 0, False), (False, 1, False), (True, 3, True)):
                mine_avg, other_avg = mine.key_averages(*grouping), other.key_averages(*grouping)
                assert [repr(e) for e in mine_avg] == [repr(e) for e in other_avg]
                assert mine_avg.table(**printing) == other_avg.table(**printing)


@pytest.mark.oracle
def test_files_are_pytorchs(tmp_path: Path) -> None:
    import json

    theirs = _oracle.load().autograd.profiler_util
    for metric in util.EventList().supported_export_stacks_metrics():
        for u, name in ((util, "mine"), (theirs, "theirs")):
            profiled(u, 3, device=True, stack=True).export_stacks(str(tmp_path / name), metric)
        assert (tmp_path / "mine").read_text() == (tmp_path / "theirs").read_text()
    assert (tmp_path / "mine").read_text() != ""
    for u, name in ((util, "mine"), (theirs, "theirs")):
        profiled(u, 3, device=True).export_chrome_trace(str(tmp_path / name))
    assert json.loads((tmp_path / "mine").read_text()) == json.loads((tmp_path / "theirs").read_text())


def test_the_tree_of_a_profile() -> None:
    events = profiled(util, 1)
    for e in events:
        if e.cpu_parent is not None:
            assert e in e.cpu_parent.cpu_children
            assert (
                e.cpu_parent.time_range.start <= e.time_range.start <= e.time_range.end <= e.cpu_parent.time_range.end
            )
    # The time of all is that of the outermost, each counted once.
    outer = [e for e in events if e.cpu_parent is None and not e.is_async]
    inner = [e for e in events if e.cpu_parent is not None or not e.is_async]
    assert sum(e.self_cpu_time_total for e in inner) == pytest.approx(sum(e.cpu_time_total for e in outer))


def test_an_only_child_of_the_same_name_is_the_same_call() -> None:
    events = util.EventList([util.FunctionEvent(i, "a", 1, i, 10 - i, stack=[], fwd_thread=1) for i in range(3)])
    events._build_tree()
    assert [e.id for e in events] == [0]


def test_wrong_questions() -> None:
    with pytest.raises(AssertionError, match="Expected tree to be built before calling key_averages"):
        util.EventList().key_averages()
    with pytest.raises(ValueError, match="metric should be one of"):
        util.EventList().export_stacks("nowhere", "count")
    assert util.EventList().table() == ""
    event = util.FunctionEvent(1, "a", 1, 0, 1)
    with pytest.warns(FutureWarning, match="`cuda_time_total` is deprecated"):
        assert event.cuda_time_total == 0
    with pytest.raises(AssertionError, match="Expected keys to match"):
        average = util.FunctionEventAvg()
        average += event
        average += util.FunctionEvent(1, "b", 1, 0, 1)
