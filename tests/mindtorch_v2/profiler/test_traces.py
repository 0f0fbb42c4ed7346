"""Traces: a check of the form that chrome://tracing and Perfetto read, and what must be joined in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from ._format import check

profiler: Any = submodule("profiler")


def step(t: Any, device: str = "cpu") -> None:
    """A training step."""
    net = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 2)).to(device)
    optimizer = t.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss = t.nn.functional.cross_entropy(net(t.ones(3, 4, device=device)), t.tensor([0, 1, 1], device=device))
    loss.backward()
    optimizer.step()


def written(t: Any, path: Path, **options: Any) -> Any:
    with t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], **options) as p:
        step(t)
    p.add_metadata("who", 'a "tester"')
    p.add_metadata_json("numbers", "[1, 2]")
    p.export_chrome_trace(str(path))
    return json.loads(path.read_text())


ALL = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)


def test_a_step_is_a_valid_trace(tmp_path: Path) -> None:
    for options in ({}, ALL):
        trace = written(torch, tmp_path / "trace.json", **options)
        events = check(trace)
        assert trace["who"] == 'a "tester"' and trace["numbers"] == [1, 2]
        kinds = {e.get("cat") for e in events}
        assert {"cpu_op", "user_annotation", "fwdbwd", "Trace"} <= kinds
        assert ({"python_function", "cpu_instant_event"} <= kinds) == bool(options)
        joined = [e for e in events if e.get("cat") == "fwdbwd" and e["ph"] == "f"]
        assert len(joined) >= 3


@pytest.mark.oracle
def test_the_check_accepts_pytorchs_traces_and_they_have_our_fields(tmp_path: Path) -> None:
    theirs = written(_oracle.load(), tmp_path / "theirs.json", **ALL)
    events = check(theirs)
    mine = written(torch, tmp_path / "mine.json", **ALL)
    assert set(theirs) - set(mine) == set()
    for kind in ("cpu_op", "user_annotation", "python_function", "cpu_instant_event", "fwdbwd"):
        fields = [
            {frozenset(e) for e in found if e.get("cat") == kind and e["ph"] != "f"}
            for found in (mine["traceEvents"], events)
        ]
        assert fields[0] == fields[1], kind
    op = next(e for e in mine["traceEvents"] if e["name"] == "aten::addmm")
    other = next(e for e in events if e["name"] == "aten::addmm")
    assert set(op["args"]) - {"Flops"} == set(other["args"]) - {"Flops"}
    assert op["args"]["Input Dims"] == other["args"]["Input Dims"]
    assert op["args"]["Input type"] == other["args"]["Input type"]


def test_packed_traces(tmp_path: Path) -> None:
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p:
        step(torch)
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz") as f:
        check(json.load(f))


def test_stacks(tmp_path: Path) -> None:
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], with_stack=True, experimental_config=config) as p:
        step(torch)
    p.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(line.rpartition(" ")[2].isdigit() for line in lines)
    assert any("_step" in line.replace(" ", "_") for line in lines)


@pytest.mark.filterwarnings("ignore:`export_memory_timeline` is deprecated")
def test_memory_over_time(tmp_path: Path) -> None:
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True
    ) as p:
        step(torch)
    p.export_memory_timeline(str(tmp_path / "t.json"), "cpu")
    times, sizes = json.loads((tmp_path / "t.json").read_text())
    assert times == sorted(times) and len(times) == len(sizes) > 0
    assert all(len(row) == 9 and min(row) >= 0 for row in sizes)
    columns = [max(row[i] for row in sizes) for i in range(9)]
    # Momentum buffers, activations and gradients are told apart.
    assert columns[2] > 0 and columns[5] > 0 and columns[6] > 0
    p.export_memory_timeline(str(tmp_path / "t.raw.json.gz"), "cpu")
    with gzip.open(tmp_path / "t.raw.json.gz") as f:
        raw = json.load(f)
    assert sum(nbytes for _, _, nbytes, _ in raw) == sum(sizes[-1])
    p.export_memory_timeline(str(tmp_path / "t.html"), "cpu")
    assert "<polygon" in (tmp_path / "t.html").read_text()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p:
        step(torch)
    with pytest.raises(ValueError, match="record_shapes=True, profile_memory=True, with_stack=True required"):
        p.export_memory_timeline(str(tmp_path / "t.json"), "cpu")
