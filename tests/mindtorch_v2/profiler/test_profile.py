"""`profile` itself: activities, schedules, callbacks, options and errors."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

profiler: Any = submodule("profiler")
autograd_profiler: Any = submodule("autograd.profiler")


@pytest.mark.oracle
def test_schedules_are_pytorchs() -> None:
    theirs = _oracle.load().profiler
    for wait, warmup, active, repeat, skip, skip_wait in itertools.product(
        (0, 2), (0, 1), (1, 3), (0, 1, 2), (0, 3), (0, 1)
    ):
        options = dict(
            wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip, skip_first_wait=skip_wait
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine, other = profiler.schedule(**options), theirs.schedule(**options)
        assert [mine(i).name for i in range(25)] == [other(i).name for i in range(25)], options


def run_schedule(t: Any, steps: int, **options: Any) -> list[Any]:
    """What the callback sees of each cycle."""
    seen: list[Any] = []

    def ready(p: Any) -> None:
        seen.append((p.step_num, [e.trace_name for e in p.events() if e.trace_name.startswith("ProfilerStep#")]))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = t.profiler.schedule(**options)
        with t.profiler.profile(
            activities=[t.profiler.ProfilerActivity.CPU], schedule=chosen, on_trace_ready=ready
        ) as p:
            for _ in range(steps):
                t.ones(2).add(1)
                p.step()
    seen.append(sorted({str(w.message) for w in caught if "schedule" in str(w.message)}))
    return seen


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        dict(wait=1, warmup=1, active=2, repeat=2),
        dict(wait=0, warmup=0, active=1),
        dict(wait=0, warmup=1, active=3, skip_first=2),
        dict(wait=3, warmup=2, active=1, repeat=1),
    ],
)
def test_cycles_are_pytorchs(options: dict[str, Any]) -> None:
    for steps in (0, 1, 4, 9):
        assert run_schedule(torch, steps, **options) == run_schedule(_oracle.load(), steps, **options)


def test_cycles() -> None:
    assert run_schedule(torch, 8, wait=1, warmup=1, active=2, repeat=2) == [
        (4, ["ProfilerStep#2", "ProfilerStep#3"]),
        (8, ["ProfilerStep#6", "ProfilerStep#7"]),
        [],
    ]


def test_events_of_all_cycles() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(wait=0, warmup=0, active=1),
            acc_events=True,
        ) as p:
            for _ in range(3):
                torch.ones(2).add(1)
                p.step()
    assert len([e for e in p.events() if e.name == "aten::add"]) == 3
    assert [e.key for e in p.key_averages() if e.key.startswith("Profiler")] == ["ProfilerStep*"]


def test_toggling() -> None:
    cpu = profiler.ProfilerActivity.CPU
    with profiler.profile(activities=[cpu]) as p:
        torch.ones(2).sin()
        p.toggle_collection_dynamic(False, [cpu])
        torch.ones(2).cos()
        p.toggle_collection_dynamic(True, [cpu])
        torch.ones(2).tan()
    names = {e.name for e in p.events()}
    assert {"aten::sin", "aten::tan"} <= names and "aten::cos" not in names


def test_filters() -> None:
    cpu = profiler.ProfilerActivity.CPU
    with profiler.profile(activities=[{cpu: ["USER_ANNOTATION"]}]) as p, profiler.record_function("mine"):
        torch.ones(2).sin()
    assert [e.name for e in p.events()] == ["mine"]
    with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'FOO'"):
        profiler.profile(activities=[{cpu: ["FOO"]}]).start()


@mindtorch_only
def test_a_profile_inside_a_profile_takes_over() -> None:
    cpu = [profiler.ProfilerActivity.CPU]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profiler.profile(activities=cpu) as outer:
            with profiler.profile(activities=cpu) as inner:
                torch.ones(2).sin()
    assert [str(w.message)[:60] for w in caught] == ["disableProfiler called but no active profiling session found"]
    assert len(outer.events()) == 0 and "aten::sin" in [e.name for e in inner.events()]


def test_traces_have_ids() -> None:
    numbers = iter(["one", "two"])
    p = profiler.profile(activities=[profiler.ProfilerActivity.CPU], custom_trace_id_callback=lambda: next(numbers))
    with p:
        torch.ones(2)
    assert p.get_trace_id() == "one"
    p.set_custom_trace_id_callback(lambda: "three")
    with pytest.warns(UserWarning, match="clears events") if p.acc_events else warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with p:
            torch.ones(2)
    assert p.get_trace_id() == "three"


def test_an_observer_is_told() -> None:
    told: list[str] = []

    class Observer:
        def start(self) -> None:
            told.append("start")

        def stop(self) -> None:
            told.append("stop")

        def cleanup(self) -> None:
            told.append("cleanup")

    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], execution_trace_observer=Observer()):
        torch.ones(2)
    assert told == ["start", "stop", "cleanup"]


def test_the_trace_handler_writes_into_its_folder(tmp_path: Path) -> None:
    for packed in (False, True):
        folder = tmp_path / str(packed)
        handler = profiler.tensorboard_trace_handler(str(folder), "me", use_gzip=packed)
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], on_trace_ready=handler):
            torch.ones(2)
        (name,) = [f.name for f in folder.iterdir()]
        assert name.startswith("me.") and name.endswith(".pt.trace.json.gz" if packed else ".pt.trace.json")


def test_the_old_profilers() -> None:
    with autograd_profiler.profile(record_shapes=True) as p:
        (torch.ones(3) + 1).sum()
    assert str(p) == p.table() and "aten::sum" in str(p)
    assert repr(p).startswith("[<FunctionEvent")
    assert p.total_average().count == len(p.function_events)
    assert p.self_cpu_time_total > 0
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        p.__enter__()
    assert repr(autograd_profiler.profile()) == "<unfinished torch.autograd.profile>"
    with autograd_profiler.profile(enabled=False) as nothing:
        torch.ones(3)
    assert nothing is None
    legacy = submodule("autograd.profiler_legacy")
    with legacy.profile() as old:
        torch.ones(3).exp()
    assert "aten::exp" in [e.name for e in old.function_events]
    with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        legacy.profile().table()


def test_counting_steps() -> None:
    class Tracker(autograd_profiler.KinetoStepTracker):
        _current_step = 0
        _step_dict: dict[str, int] = {}

    Tracker.init_step_count("a")
    Tracker.init_step_count("b")
    assert [Tracker.increment_step(who) for who in "aabbb"] == [1, 2, 2, 2, 3]
    assert Tracker.current_step() == 3
    assert Tracker.erase_step_count("a") and not Tracker.erase_step_count("a")


@mindtorch_only
def test_what_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="emit_itt"), autograd_profiler.emit_itt():
        pass
    with autograd_profiler.emit_nvtx(enabled=False):
        pass
    with pytest.raises(NotImplementedError, match="nvprof"):
        autograd_profiler.load_nvprof("trace")
    with pytest.raises(NotImplementedError, match="execution traces"):
        profiler.ExecutionTraceObserver().register_callback("trace")
    with pytest.raises(NotImplementedError, match="argument 'profile_all_threads'"):
        torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with pytest.raises(RuntimeError, match="ITT functions not installed"):
        profiler.itt.mark("here")
    assert not profiler.itt.is_available()


WRONG: list[Any] = [
    lambda t: t.profiler.profile(activities=[]),
    lambda t: t.profiler.profile(activities=[3]),
    lambda t: t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU, 3]),
    lambda t: t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU] * 2),
    lambda t: t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], post_processing_timeout_s=-1).start(),
    lambda t: t.profiler.profile(activities=[t.profiler.ProfilerActivity.CUDA]).start(),
    lambda t: t.profiler.profile().events(),
    lambda t: t.profiler.profile().key_averages(),
    lambda t: t.profiler.profile().stop(),
    lambda t: t.profiler.profile().export_stacks("nowhere"),
    lambda t: t.profiler.profile().export_chrome_trace("nowhere"),
    lambda t: t.profiler.profile(with_stack=True)._memory_profile(),
    lambda t: t.profiler.profile(schedule=lambda i: t.profiler.ProfilerAction.DEVICE_STOPPED),
    lambda t: t.profiler.schedule(wait=-1, warmup=1, active=1),
    lambda t: t.profiler.schedule(wait=0, warmup=1, active=0),
    lambda t: t.profiler.schedule(wait=0, warmup=1, active=1)(-1),
    lambda t: t.autograd.profiler.profile(use_cpu=False),
    lambda t: t.autograd.profiler.emit_nvtx().__enter__(),
    lambda t: [t.autograd.profiler.EnforceUnique().see(1) for _ in range(1)][0].nothing,
]


@pytest.mark.oracle
@pytest.mark.parametrize("i", range(len(WRONG)))
def test_errors_are_pytorchs(i: int) -> None:
    said = []
    for t in (torch, _oracle.load()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as caught:
                WRONG[i](t)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


@pytest.mark.oracle
def test_enumerations_are_pytorchs() -> None:
    oracle = _oracle.load()
    mine, theirs = torch._C._profiler, oracle._C._profiler
    for name in ("ProfilerActivity", "ProfilerState", "RecordScope", "ActiveProfilerType"):
        ours, other = getattr(mine, name), getattr(theirs, name)
        assert {k: int(v) for k, v in other.__members__.items()}.items() <= {
            k: int(v) for k, v in ours.__members__.items()
        }.items()
        assert all(repr(getattr(ours, k)) == repr(v) for k, v in other.__members__.items())
    assert {k: int(v) for k, v in oracle.autograd.DeviceType.__members__.items()} == {
        k: int(v) for k, v in torch.autograd.DeviceType.__members__.items()
    }
