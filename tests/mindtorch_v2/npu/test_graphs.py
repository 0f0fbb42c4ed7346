"""`torch.npu.NPUGraph` and its friends: the work of a stream, captured and run again."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import memory

from .._subject import mindtorch_only
from ._control import delays, emulator_only, fault

pytestmark = mindtorch_only
NPU = "npu"


def reserved() -> int:
    gc.collect()
    torch.npu.empty_cache()
    return int(torch.npu.memory_reserved())


def capture(body: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, **options):
        result = body()
    return graph, result


def test_replay_reads_and_writes_the_same_memory() -> None:
    x = torch.ones(4, device=NPU)
    graph, (y, z) = capture(lambda: ((x * 2).exp(), x.sum()))
    for value in (0.0, 1.0, -0.5):
        x.fill_(value)
        graph.replay()
        assert torch.allclose(y.cpu(), torch.full((4,), 2 * value).exp())
        assert z.item() == pytest.approx(4 * value)


def test_nothing_is_done_before_the_replay() -> None:
    x = torch.zeros(4, device=NPU)
    graph, _ = capture(lambda: x.add_(1))
    assert x.sum().item() == 0
    for _ in range(3):
        graph.replay()
    assert x.sum().item() == 12


def test_a_training_step() -> None:
    torch.manual_seed(3)
    plain, graphed = (torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)) for _ in "ab")
    graphed.load_state_dict(plain.state_dict())
    plain.to(NPU), graphed.to(NPU)
    batches = [torch.randn(5, 4) for _ in range(4)]
    x = torch.zeros(5, 4, device=NPU)
    parameters = list(graphed.parameters())
    for p in parameters:
        p.grad = torch.zeros_like(p)

    def step() -> Any:
        for p in parameters:
            p.grad.zero_()
        loss = graphed(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p.sub_(p.grad, alpha=0.1)
        return loss

    graph, loss = capture(step)
    for batch in batches:
        x.copy_(batch)
        graph.replay()
        for p in plain.parameters():
            p.grad = None
        want = plain(batch.to(NPU)).square().mean()
        want.backward()
        with torch.no_grad():
            for p in plain.parameters():
                p.sub_(p.grad, alpha=0.1)
        assert loss.item() == pytest.approx(want.item(), rel=1e-5)


def test_a_side_stream_joins() -> None:
    x = torch.ones(64, device=NPU)
    side = torch.npu.Stream()

    def body() -> Any:
        main = torch.npu.current_stream()
        side.wait_stream(main)
        with torch.npu.stream(side):
            assert torch.npu.is_current_stream_capturing()
            left = x * 3
        right = x + 1
        main.wait_stream(side)
        return left + right

    with delays(5):
        graph, out = capture(body)
        for value in range(4):
            x.fill_(value)
            graph.replay()
            assert out.sum().item() == 64 * (4 * value + 1)
    assert not torch.npu.is_current_stream_capturing()


def test_memory_of_a_graph_is_nobody_elses() -> None:
    x = torch.ones(1000, device=NPU)
    graph, out = capture(lambda: (x + 1) * (x + 2))  # intermediate results are freed within the capture
    others = [torch.full((1000,), float(i), device=NPU) for i in range(20)]
    graph.replay()
    assert out.sum().item() == 6000
    assert [int(t[0].item()) for t in others] == list(range(20))
    assert int(out[0].item()) == 6
    before = reserved()
    graph.reset()
    assert reserved() <= before  # `out` still holds its segment
    assert out.sum().item() == 6000
    del out
    assert reserved() < before


def test_a_graph_that_is_dropped_gives_its_memory_back() -> None:
    before = reserved()
    graph, out = capture(lambda: torch.zeros(1 << 20, device=NPU) + 1)
    del out
    assert reserved() > before + (4 << 20)
    del graph
    assert reserved() == before
    assert not memory.allocator(0).rooms


def test_graphs_share_a_pool() -> None:
    x = torch.ones(1 << 20, device=NPU)
    first, a = capture(lambda: (x + 1).sum())
    held = torch.npu.memory_reserved()
    second, b = capture(lambda: (x + 2).sum(), pool=first.pool())
    assert torch.npu.memory_reserved() == held  # what the first one used for itself
    assert second.pool() == first.pool()
    first.replay()
    second.replay()
    assert (a.item(), b.item()) == (2.0 * (1 << 20), 3.0 * (1 << 20))
    first.reset()
    second.replay()
    assert b.item() == 3.0 * (1 << 20)
    third, _ = capture(lambda: x.sum(), pool=torch.npu.graph_pool_handle())
    assert third.pool() != second.pool()


def test_pinned_copies_are_captured() -> None:
    host, back = torch.zeros(4).pin_memory(), torch.zeros(4).pin_memory()
    x = torch.zeros(4, device=NPU)

    def body() -> None:
        x.copy_(host, non_blocking=True)
        back.copy_(x * 2, non_blocking=True)

    graph, _ = capture(body)
    for value in (1.0, 5.0):
        host.fill_(value)
        graph.replay()
        torch.npu.synchronize()
        assert back.tolist() == [2 * value] * 4


ILLEGAL: dict[str, tuple[Callable[[Any], Any], str]] = {
    "item": (lambda x: x.sum().item(), "unless the CPU tensor is in pinned memory"),
    "cpu": (lambda x: x.cpu(), "cannot be captured in a graph"),
    "pinned but waiting": (lambda x: x.copy_(torch.zeros(4).pin_memory()), "non_blocking=True"),
    "from Python": (lambda x: torch.tensor([1.0], device=NPU), "cannot be captured in a graph"),
    "random": (lambda x: torch.rand(3, device=NPU), "every replay would draw the same"),
    "dropout": (lambda x: torch.dropout(x, 0.5, True), "every replay would draw the same"),
    "size from data": (lambda x: torch.nonzero(x), "the stream is being captured"),
    "synchronize": (lambda x: torch.npu.synchronize(), "the stream is being captured"),
    "stream": (lambda x: torch.npu.current_stream().synchronize(), "the stream is being captured"),
    "query": (lambda x: torch.npu.current_stream().query(), "the stream is being captured"),
    "event": (lambda x: torch.npu.current_stream().record_event().synchronize(), "the event was captured"),
    "empty_cache": (lambda x: torch.npu.empty_cache(), "waits for streams"),
    "callback": (lambda x: torch.npu.current_stream().add_callback(lambda: None), "the stream is being captured"),
    "another graph": (lambda x: torch.npu.NPUGraph().capture_begin(), "only one graph can be captured at a time"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_cannot_be_captured_is_named(name: str) -> None:
    x = torch.ones(4, device=NPU)
    before = reserved()
    body, text = ILLEGAL[name]
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError) as caught:
        with torch.npu.graph(graph):
            y = x + 1
            body(x)
    assert text in str(caught.value)
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    assert torch.npu.current_stream() == torch.npu.default_stream()
    del y, caught
    assert reserved() <= before
    again, z = capture(lambda: x + 2)  # the next one is not disturbed
    again.replay()
    assert z.sum().item() == 12


def test_an_unjoined_stream_is_reported_at_the_end() -> None:
    x = torch.ones(4, device=NPU)
    side = torch.npu.Stream()

    def body() -> None:
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            x.add_(1)

    with pytest.raises(torch.npu.AclError, match="107025 a captured stream was not joined"):
        capture(body)
    assert x.sum().item() == 4


def test_checks_before_the_capture() -> None:
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode.*got never"):
        torch.npu.graph(graph, capture_error_mode="never").__enter__()
    assert torch.npu.current_stream() == torch.npu.default_stream()
    with pytest.raises(TypeError, match="pool must be the result of graph_pool_handle"):
        torch.npu.graph(graph, pool=3).__enter__()
    with pytest.raises(NotImplementedError, match="auto_dispatch_capture"):
        torch.npu.graph(graph, auto_dispatch_capture=True).__enter__()
    with pytest.raises(TypeError, match="npu_graph must be an NPUGraph"):
        torch.npu.graph(None)
    with pytest.raises(RuntimeError, match="before capture_begin"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()
    with torch.npu.graph(graph):
        with pytest.raises(RuntimeError, match="cannot be reset while"):
            graph.reset()
        with torch.npu.stream(torch.npu.Stream()), pytest.raises(RuntimeError, match="must end on the same stream"):
            graph.capture_end()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        torch.npu.graph(graph).__enter__()
    graph.reset()
    graph.reset()


@emulator_only
def test_a_failure_in_a_replay_names_it() -> None:
    x = torch.ones(4, device=NPU)
    graph, _ = capture(lambda: x.add_(1))
    with fault("aclmdlRIExecuteAsync:1:507015:async"):
        graph.replay()
        with pytest.raises(torch.npu.AclError, match="NPUGraph.replay"):
            torch.npu.synchronize()
    graph.replay()
    assert x.sum().item() == 12  # the tasks behind a failed one run


@emulator_only
@pytest.mark.parametrize("function", ["aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRICaptureGetInfo"])
def test_a_fault_in_a_capture_leaves_nothing(function: str) -> None:
    x = torch.ones(4, device=NPU)
    before = reserved()
    graph = torch.npu.NPUGraph()
    with fault(f"{function}:1:507000"), pytest.raises(torch.npu.AclError, match=function):
        with torch.npu.graph(graph):
            x.mul(2)
    assert reserved() == before
    again, y = capture(lambda: x * 3)
    again.replay()
    assert y.sum().item() == 12


def test_a_task_group_is_updated() -> None:
    x, a, b = torch.zeros(4, device=NPU), torch.ones(4, device=NPU), torch.full((4,), 5.0, device=NPU)
    update, ready = torch.npu.Stream(), torch.npu.ExternalEvent()

    def body() -> int:
        stream = torch.npu.current_stream()
        ready.wait(stream)
        ready.reset(stream)
        torch.npu.graph_task_group_begin(stream)
        torch.add(x, a, out=x)
        return int(torch.npu.graph_task_group_end(stream))

    graph, group = capture(body)
    for other, want in ((a, 1.0), (b, 6.0), (a, 7.0)):
        graph.replay()
        with torch.npu.stream(update):
            torch.npu.graph_task_update_begin(update, group)
            torch.add(x, other, out=x)
            torch.npu.graph_task_update_end(update)
            ready.record(update)
        torch.npu.synchronize()
        assert x.tolist() == [want] * 4


def test_graphed_callables() -> None:
    torch.manual_seed(1)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to(NPU)
    graphed = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to(NPU)
    graphed.load_state_dict(plain.state_dict())
    sample = torch.zeros(3, 4, device=NPU, requires_grad=True)
    assert torch.npu.make_graphed_callables(graphed, (sample,)) is graphed
    for _ in range(2):
        x = torch.randn(3, 4).to(NPU).requires_grad_()
        y = x.detach().clone().requires_grad_()
        graphed(x).square().sum().backward()
        plain(y).square().sum().backward()
        assert torch.allclose(x.grad.cpu(), y.grad.cpu(), atol=1e-5)
        for p, q in zip(graphed.parameters(), plain.parameters()):
            assert torch.allclose(p.grad.cpu(), q.grad.cpu(), atol=1e-5)
    graphed.eval()
    assert torch.allclose(graphed(x).cpu(), plain(x).cpu(), atol=1e-6)  # not captured, so as it was

    two = torch.npu.make_graphed_callables(
        (torch.sin, lambda t: {"a": t * 2}), ((sample,), (torch.zeros_like(sample, requires_grad=True),))
    )
    x = torch.randn(3, 4).to(NPU).requires_grad_()
    out = two[1](two[0](x))["a"]
    out.sum().backward()
    assert torch.allclose(out.cpu(), 2 * x.detach().cpu().sin(), atol=1e-6)
    assert torch.allclose(x.grad.cpu(), 2 * x.detach().cpu().cos(), atol=1e-6)


def test_graphed_callables_check_what_they_get() -> None:
    module = torch.nn.Linear(2, 2).to(NPU)
    sample = torch.zeros(1, 2, device=NPU)
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        torch.npu.make_graphed_callables(module, (3,))
    module.register_forward_hook(lambda *_: None)
    with pytest.raises(AssertionError, match="must not have hooks"):
        torch.npu.make_graphed_callables(module, (sample,))
    graphed = torch.npu.make_graphed_callables(torch.sin, (sample,))
    with pytest.raises(RuntimeError, match="takes 1 tensors"):
        graphed(sample, sample)
