"""What is recorded while a profile runs: operators, nodes, shapes, memory, stacks; and that it is free when off."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

profiler: Any = submodule("profiler")


def cpu_profile(t: Any, **options: Any) -> Any:
    return t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], **options)


def path_of(e: Any) -> str:
    names = [e.name]
    while e.cpu_parent is not None:
        e = e.cpu_parent
        names.append(e.name)
    return " > ".join(reversed(names))


def program(t: Any) -> None:
    x, w = t.ones(4, 5), t.ones(5, 5, requires_grad=True)
    with t.profiler.record_function("forward"):
        loss = ((x @ w) * 2 + w.sum()).sum()
    loss.backward()


# Operators that PyTorch's kernels are made of, and ours are not.
PARTS = {"aten::resolve_conj", "aten::to", "aten::_to_copy", "aten::empty_strided", "aten::copy_", "aten::as_strided"}
PARTS |= {
    "aten::fill_",
    "aten::ones_like",
    "aten::empty_like",
    "aten::empty",
    "aten::t",
    "aten::transpose",
    "aten::ones",
}
PARTS |= {"aten::new_empty_strided", "aten::detach", "detach", "aten::expand", "aten::zeros", "aten::zero_", "[memory]"}


def events_of(t: Any) -> list[tuple[Any, ...]]:
    program(t)
    with cpu_profile(t, record_shapes=True, with_flops=True, profile_memory=True) as p:
        program(t)
    found = p.events()
    first = min(e.sequence_nr for e in found if e.sequence_nr >= 0)
    return [
        (
            path_of(e),
            [s for s in e.input_shapes if s],
            e.scope,
            e.sequence_nr - first if e.sequence_nr >= 0 else None,
            e.flops,
            e.cpu_memory_usage if e.name.startswith("aten::") else None,
        )
        for e in found
        if e.name not in PARTS
    ]


@pytest.mark.oracle
def test_operators_and_nodes_are_pytorchs() -> None:
    """Names, nesting, shapes, scopes, sequence numbers, work and memory of a forward and a backward pass."""
    assert events_of(torch) == events_of(_oracle.load())


def test_operators_and_nodes() -> None:
    with cpu_profile(torch) as p:
        program(torch)
    paths = [path_of(e) for e in p.events()]
    assert "forward > aten::matmul > aten::mm" in paths
    assert "autograd::engine::evaluate_function: MulBackward0 > MulBackward0 > aten::mul" in paths
    leaf = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    assert leaf in paths and f"{leaf} > torch::autograd::AccumulateGrad" in paths
    assert all(e.time_range.end >= e.time_range.start > 0 for e in p.events())


def works(t: Any) -> None:
    a, b = t.ones(3, 4), t.ones(4, 5)
    t.mm(a, b)
    t.addmm(t.ones(5), a, b)
    t.bmm(t.ones(2, 3, 4), t.ones(2, 4, 5))
    t.baddbmm(t.ones(2, 3, 5), t.ones(2, 3, 4), t.ones(2, 4, 5))
    t.add(a, 1)
    t.mul(a, a)
    t.conv2d(t.ones(2, 4, 9, 7), t.ones(6, 2, 3, 3), None, [2, 1], [1, 0], [1, 2], 2)
    t.conv2d(t.ones(2, 4, 9, 7), t.ones(6, 4, 3, 3))


@pytest.mark.oracle
def test_work_is_pytorchs() -> None:
    counted = []
    for t in (torch, _oracle.load()):
        with cpu_profile(t, with_flops=True) as p:
            works(t)
        counted.append([(e.name, e.flops) for e in p.events() if e.flops])
    assert counted[0] == counted[1]
    assert len(counted[0]) == 8


@pytest.mark.oracle
def test_inputs_are_pytorchs() -> None:
    shown = []
    for t in (torch, _oracle.load()):
        with cpu_profile(t, record_shapes=True) as p:
            t.cat([t.ones(2, 3), t.ones(1, 3)], 0)
            t.ones(2, 3, dtype=t.bfloat16).transpose(0, 1)
            t.ones(3, dtype=t.int64).add(2, alpha=3)
        shown.append(
            [
                (e.name, e.input_shapes, e.structured_input_shapes, e.structured_input_strides, e.input_dtypes)
                + (e.concrete_inputs,)
                for e in p.events()
                if e.name in ("aten::cat", "aten::transpose")
            ]
        )
    assert shown[0] == shown[1]
    assert len(shown[0]) == 2


def test_memory() -> None:
    x = torch.ones(1000)
    with cpu_profile(torch, profile_memory=True) as p:
        y = x + 1
        del y
        z = torch.exp(x)
    named = {e.name: e for e in p.events()}
    assert named["aten::add"].cpu_memory_usage == named["aten::add"].self_cpu_memory_usage == 4000
    assert named["aten::exp"].cpu_memory_usage == 4000
    assert [e.cpu_memory_usage for e in p.events() if e.name == "[memory]"] == [-4000]
    assert "CPU Mem" in p.key_averages().table()
    del z
    # Watching is over: storages are made and freed as before.
    assert torch.ones(1000).sum() == 1000


def test_stacks_and_modules() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with cpu_profile(torch, with_stack=True, experimental_config=config) as p:
        net(torch.ones(2, 3))
    names = [e.name for e in p.events()]
    assert "nn.Module: Sequential_0" in names and "nn.Module: Linear_0" in names and "nn.Module: Linear_1" in names
    inner = next(e for e in p.events() if e.name == "aten::linear")
    assert "nn.Module: Linear_0" in inner.stack and inner.stack.index("nn.Module: Linear_0") < inner.stack.index(
        "nn.Module: Sequential_0"
    )
    assert any("test_stacks_and_modules" in frame for frame in inner.stack)
    assert "Source Location" in p.key_averages(group_by_stack_n=3).table()
    assert not any("_profiler" in name for name in names)
    # Without verbose the events have no stacks, as in PyTorch; the functions are there.
    with cpu_profile(torch, with_stack=True) as p:
        net(torch.ones(2, 3))
    assert all(not e.stack for e in p.events())
    assert sys.getprofile() is None


def test_overload_names() -> None:
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with cpu_profile(torch, experimental_config=config) as p:
        torch.ones(3).add(torch.ones(3))
    assert "Tensor" in [e.overload_name for e in p.events()]
    assert "Overload Name" in p.key_averages(group_by_overload_name=True).table()


def test_optimisers_are_named() -> None:
    for name in ("SGD", "Adam", "RMSprop"):
        layer = torch.nn.Linear(2, 2)
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
        layer(torch.ones(1, 2)).sum().backward()
        with cpu_profile(torch) as p:
            optimizer.step()
            optimizer.zero_grad()
        noted = [e.name for e in p.events() if e.is_user_annotation]
        assert noted == [f"Optimizer.step#{name}.step", f"Optimizer.zero_grad#{name}.zero_grad"]


def loads(t: Any) -> list[str]:
    loader = t.utils.data.DataLoader([t.ones(2), t.zeros(2), t.ones(2)], batch_size=2)
    with cpu_profile(t) as p:
        for _ in loader:
            pass
    return [e.name for e in p.events() if e.is_user_annotation]


@pytest.mark.oracle
def test_loaders_are_named_as_pytorch_names_them() -> None:
    assert loads(torch) == loads(_oracle.load())


def test_loaders_are_named() -> None:
    assert loads(torch) == ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * 3


def test_an_exception_closes_what_it_leaves() -> None:
    with cpu_profile(torch) as p:
        with pytest.raises(RuntimeError), torch.profiler.record_function("failing"):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.ones(3).add(1)
    paths = [path_of(e) for e in p.events()]
    assert "aten::add" in paths and "failing" in paths
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with cpu_profile(torch) as p:
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        torch.ones(3).add(1)
    assert "aten::add" in [path_of(e) for e in p.events()]


def test_only_the_thread_that_profiles() -> None:
    with cpu_profile(torch) as p:
        other = threading.Thread(target=lambda: torch.ones(3).exp())
        other.start()
        other.join()
        torch.ones(3).sin()
    names = {e.name for e in p.events()}
    assert "aten::sin" in names and "aten::exp" not in names


def test_record_function_as_a_decorator_and_with_a_future() -> None:
    @torch.profiler.record_function("decorated")
    def work() -> None:
        torch.ones(3).cos()

    with cpu_profile(torch) as p:
        work()
        with torch.profiler.record_function("future") as record:
            future = torch.futures.Future()
            later = record._call_end_callbacks_on_future(future)
        torch.ones(3).sin()
        future.set_result(7)
        assert later.wait() == 7
    assert "decorated > aten::cos" in [path_of(e) for e in p.events()]
    named = {e.name: e for e in p.events()}
    assert named["future"].time_range.end >= named["aten::sin"].time_range.end
    with pytest.raises(AssertionError, match="Expected record to be set"):
        torch.profiler.record_function("a").__exit__(None, None, None)


def test_totals_agree_with_a_clock() -> None:
    """Within a tenth, for a program long enough that the start and stop of the profiler are small beside it."""
    a = torch.ones(200, 200)
    # The work itself is fixed, the machine is not: the best of three.
    ratios = []
    for _ in range(3):
        with cpu_profile(torch) as p:
            began = time.perf_counter_ns()
            with torch.profiler.record_function("all"):
                for _ in range(40):
                    a = (a @ a).tanh()
            spent = (time.perf_counter_ns() - began) / 1000
        whole = next(e for e in p.events() if e.name == "all").cpu_time_total
        assert p.key_averages().self_cpu_time_total == pytest.approx(whole, rel=0.01)
        ratios.append(abs(whole / spent - 1))
    assert min(ratios) < 0.1


@mindtorch_only
def test_nothing_is_loaded_and_nothing_changes_while_it_is_off() -> None:
    code = """
import sys
import mindtorch_v2 as torch
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
assert not [m for m in sys.modules if "profiler" in m], [m for m in sys.modules if "profiler" in m]
add = torch.ops.aten.add._op if hasattr(torch.ops.aten.add, "_op") else None
from mindtorch_v2._dispatch.state import STATE, modes
before = STATE.active
with torch.profiler.profile() as p:
    torch.ones(2) + 1
    assert STATE.active == before + 1
assert STATE.active == before and modes() == 0
assert len(p.events()) > 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
