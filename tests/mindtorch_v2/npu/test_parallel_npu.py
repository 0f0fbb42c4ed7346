"""`nn.parallel` over two NPUs: results and gradients are those of one device.

Invariant: nothing is computed on the host, and gradients end in the parameters of the module that was given.
"""

from __future__ import annotations

import collections
import copy
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import parallel
from mindtorch_v2.nn.parallel import comm

Point = collections.namedtuple("Point", "x y")


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


@pytest.mark.parametrize("count", [5, 2, 1])
def test_training_step_is_that_of_one_device(count: int) -> None:
    single = net()
    both = parallel.DataParallel(net().to("npu:0"), [0, 1])
    x = torch.randn(count, 4)
    expected = single(x)
    actual = both(x)
    assert actual.device == torch.device("npu:0")
    assert torch.allclose(actual.cpu(), expected, atol=1e-5)
    expected.pow(2).sum().backward()
    actual.pow(2).sum().backward()
    for mine, other in zip(both.module.parameters(), single.parameters()):
        assert mine.grad is not None and mine.grad.device == torch.device("npu:0")
        assert torch.allclose(mine.grad.cpu(), other.grad, atol=1e-4)


def test_curve_is_that_of_one_device() -> None:
    losses = []
    for wrap in (False, True):
        model = net().to("npu:0")
        called = nn.DataParallel(model, ["npu:0", torch.device("npu:1")]) if wrap else model
        steps = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        torch.manual_seed(1)
        x, y = torch.randn(8, 4).to("npu:0"), torch.randn(8, 2).to("npu:0")
        seen = []
        for _ in range(5):
            steps.zero_grad()
            loss = nn.functional.mse_loss(called(x), y)
            loss.backward()
            steps.step()
            seen.append(loss.item())
        losses.append(seen)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_module_and_its_text() -> None:
    model = nn.DataParallel(net().to("npu:0"), [0, 1], output_device=1, dim=0)
    assert repr(model).startswith("DataParallel(\n  (module): Sequential(")
    assert list(model.state_dict())[0] == "module.0.weight"
    assert model.device_ids == [0, 1] and model.output_device == 1
    assert model(torch.ones(4, 4)).device == torch.device("npu:1")
    with torch.no_grad():
        assert not model(torch.ones(4, 4)).requires_grad
    assert nn.DataParallel(net(), [1]).module[0].weight.device == torch.device("npu:1")


def test_buffers_of_the_first_device_are_updated() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2)).to("npu:0")
    nn.DataParallel(model, [0, 1])(torch.randn(8, 2))
    assert model[0].num_batches_tracked.item() == 1
    assert model[0].running_mean.abs().sum().item() > 0


def test_keyword_arguments_and_nests() -> None:
    class Both(nn.Module):
        def forward(self, x: Any, *, scale: Any, note: str) -> Any:
            return {"sum": x["a"] + scale, "pair": Point(x["a"], (scale, None)), "devices": [x["a"].sum()]}

    model = nn.DataParallel(Both(), [0, 1])
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0"):
        result = model({"a": torch.arange(4.0)}, scale=torch.ones(4), note="x")
    assert result["sum"].tolist() == [1, 2, 3, 4]
    assert isinstance(result["pair"], Point) and result["pair"].y[1] is None
    assert result["devices"][0].tolist() == [1.0, 5.0]


def test_errors() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            if x.device.index == 1:
                raise ValueError("no")
            return x

    with pytest.raises(ValueError, match="Caught ValueError in replica 1 on device 1") as caught:
        nn.DataParallel(Broken(), [0, 1])(torch.ones(2))
    assert "Original Traceback" in str(caught.value)
    with pytest.raises(RuntimeError, match="module must have its parameters and buffers on device npu:0"):
        nn.DataParallel(net(), [0, 1])(torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="module must have its parameters and buffers on device npu:1"):
        parallel.data_parallel(net().to("npu:0"), torch.ones(2, 4), [1, 0])
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 2"):
        parallel.parallel_apply([net()], [1, 2])
    with pytest.raises(AssertionError, match="Broadcast function not implemented for CPU tensors"):
        parallel.replicate(net(), [0, 1])
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        parallel.gather([{"a": 1}, {}], 0)


def test_functions() -> None:
    assert torch.equal(
        parallel.data_parallel(net().to("npu:0"), torch.ones(3, 4), [0, 1]).cpu(),
        net().to("npu:0")(torch.ones(3, 4).to("npu:0")).cpu(),
    )
    parts = parallel.scatter(torch.arange(5.0), [0, 1])
    assert isinstance(parts, tuple) and [p.tolist() for p in parts] == [[0, 1, 2], [3, 4]]
    assert [p.device.index for p in parts] == [0, 1]
    assert parallel.scatter([torch.arange(2), 7], [0, 1])[1][1] == 7
    assert parallel.scatter(Point(torch.arange(2), 3), [0, 1])[0].y == 3
    assert parallel.gather(parts, "cpu").tolist() == [0, 1, 2, 3, 4]
    replicas = parallel.replicate(net().to("npu:0"), [0, 1])
    assert not list(replicas[1].parameters()) and replicas[1][0].weight.device.index == 1
    assert replicas[0][0].weight.grad_fn is not None and not isinstance(replicas[0][0].weight, nn.Parameter)
    assert parallel.replicate(net(), []) == []
    outputs = parallel.parallel_apply(
        replicas, [torch.ones(1, 4, device="npu:0"), torch.ones(1, 4, device="npu:1")], devices=[0, 1]
    )
    assert torch.allclose(outputs[0].cpu(), outputs[1].cpu())


def test_comm() -> None:
    x = torch.arange(4.0, device="npu:0")
    first, second = comm.broadcast(x, [0, 1])
    assert first.data_ptr() == x.data_ptr() and second.device.index == 1
    target = torch.zeros(4, device="npu:1")
    assert comm.broadcast(x, out=[target])[0] is target and target.tolist() == [0, 1, 2, 3]
    assert comm.reduce_add([first, second], 1).tolist() == [0, 2, 4, 6]
    assert comm.reduce_add_coalesced([[first, first], [second, second]], 0)[1].device.index == 0
    assert [p.tolist() for p in comm.scatter(x, [0, 1], [1, 3])] == [[0], [1, 2, 3]]
    out = [torch.zeros(3, device="npu:1"), torch.zeros(1, device="npu:0")]
    comm.scatter(x, out=out)
    assert out[0].tolist() == [0, 1, 2] and out[1].tolist() == [3]
    whole = torch.zeros(4)
    assert comm.gather(out, out=whole) is whole and whole.tolist() == [0, 1, 2, 3]
    assert comm.gather(out, destination=1).device.index == 1
    with pytest.warns(FutureWarning, match="Using -1 to represent CPU tensor is deprecated"):
        assert comm.gather(out, destination=-1).device.type == "cpu"
    for call, error, text in (
        (lambda: comm.reduce_add([torch.ones(1)], 0), AssertionError, "input 0 is on CPU"),
        (
            lambda: comm.reduce_add([first, second[:1]], 0),
            ValueError,
            "input 1 has invalid size: got 1, but expected 4",
        ),
        (lambda: comm.reduce_add([first, first], 1), RuntimeError, "destination to be on the same GPU"),
        (lambda: comm.broadcast(x), RuntimeError, "Exactly one of 'devices' and 'out' must be specified"),
        (lambda: comm.scatter(x, [0], out=out), RuntimeError, "'devices' must not be specified when 'out'"),
        (lambda: comm.gather(out, destination=0, out=whole), RuntimeError, "'destination' must not be specified"),
        (lambda: comm.device_index("cpu"), ValueError, "Expected a non cpu device, but got: cpu"),
        (lambda: comm.device_index("npu"), ValueError, "Expected a torch.device with a specified index"),
    ):
        with pytest.raises(error, match=text):
            call()


def memory(tensors: Any) -> list[int]:
    """For each tensor, which of the storages it is in, numbered as they first appear."""
    seen: dict[int, int] = {}
    return [seen.setdefault(t.untyped_storage().data_ptr(), len(seen)) for t in tensors]


@pytest.mark.parametrize(
    ("buffer_size", "shared"), [(1 << 20, [0, 1, 0, 0, 1]), (32, [0, 1, 0, 2, 1]), (1, [0, 1, 2, 3, 4])]
)
def test_small_tensors_share_a_buffer(buffer_size: int, shared: list[int]) -> None:
    """Those of one dtype, in order, as long as a buffer holds them."""
    tensors = [torch.arange(4.0), torch.arange(2), torch.ones(2, 2), torch.full((3,), 7.0), torch.tensor(5)]
    tensors = [t.to("npu:0") for t in tensors]
    same, other = comm.broadcast_coalesced(tensors, [0, 1], buffer_size)
    assert [t.data_ptr() for t in same] == [t.data_ptr() for t in tensors]
    assert memory(other) == shared
    for mine, original in zip(other, tensors):
        assert mine.device.index == 1 and mine.dtype == original.dtype and mine.shape == original.shape
        assert torch.equal(mine.cpu(), original.cpu())
    other[2].add_(1)
    assert [t._version for t in other] == [0, 0, 1, 0, 0] and other[0].tolist() == [0, 1, 2, 3]
    sums = comm.reduce_add_coalesced([tensors, [t.to("npu:1") for t in tensors]], 0, buffer_size)
    assert memory(sums) == shared and all(t.device.index == 0 for t in sums)
    assert [t.tolist() for t in sums] == [(t + t).tolist() for t in tensors]
    sums[2].add_(1)
    assert [t._version for t in sums] == ([0, 0, 1, 0, 0])


def test_buffers_are_refused() -> None:
    x = torch.ones(2, device="npu:0")
    with pytest.raises(ValueError, match="buffer_size must be positive, got 0"):
        comm.broadcast_coalesced([x], [0], 0)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 1, but expected 2"):
        comm.reduce_add_coalesced([[x, x], [x.to("npu:1"), x[:1].to("npu:1")]], 0)


@pytest.mark.parametrize("count", [1, 2])
def test_threads_autocast_as_their_caller(count: int) -> None:
    modules = [nn.Linear(4, 2).to(f"npu:{i}") for i in range(count)]
    inputs = [torch.ones(1, 4, device=f"npu:{i}") for i in range(count)]

    def dtypes() -> list[Any]:
        return [out.dtype for out in parallel.parallel_apply(modules, inputs, devices=list(range(count)))]

    assert dtypes() == [torch.float32] * count
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("npu", dtype=dtype):
            assert dtypes() == [dtype] * count
            with torch.autocast("npu", enabled=False):
                assert dtypes() == [torch.float32] * count


def test_what_a_product_in_eight_bits_does_not_do() -> None:
    f = nn.functional
    a, one = torch.ones(16, 16).to(torch.float8_e4m3fn).to("npu:0"), torch.ones((), device="npu:0")
    wise = f.ScalingType.TensorWise
    with pytest.raises(NotImplementedError, match="scaled_mm: use_fast_accum is not supported on npu"):
        f.scaled_mm(a, a.t(), one, wise, one, wise, use_fast_accum=True)


def test_copies() -> None:
    model = nn.DataParallel(net().to("npu:0"), [0, 1])
    other = copy.deepcopy(model)
    assert other.module is not model.module and repr(other) == repr(model)
    lazy = nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="can't be used with `DataParallel`"):
        nn.DataParallel(lazy.to("npu:0"), [0, 1])(torch.ones(2, 2))


def test_functions_by_the_names_of_pytorchs_module() -> None:
    """Copies, parts, wholes and sums, with the way back of the operators they are made of."""
    from mindtorch_v2.nn.parallel import _functions as f

    x = torch.arange(6.0).reshape(3, 2).npu().requires_grad_()
    copies = f.Broadcast.apply([0, 1], x)
    assert [t.device for t in copies] == [torch.device("npu:0"), torch.device("npu:1")]
    (copies[0] + 2 * copies[1].to("npu:0")).sum().backward()
    assert x.grad.cpu().tolist() == [[3.0, 3.0]] * 3
    parts = f.Scatter.apply([0, 1], None, 0, x)
    assert [len(t) for t in parts] == [2, 1] and parts[1].device == torch.device("npu:1")
    whole = f.Gather.apply(0, 0, *parts)
    assert whole.device == torch.device("npu:0") and torch.equal(whole.cpu(), x.detach().cpu())
    total = f.ReduceAddCoalesced.apply(0, 1, *(t.detach() for t in copies))
    assert len(total) == 1 and torch.equal(total[0].cpu(), 2 * x.detach().cpu())
    with pytest.raises(AssertionError, match="not implemented for CPU tensors"):
        f.Broadcast.apply([0, 1], torch.ones(1))


def test_devices_that_do_not_exist_are_refused() -> None:
    for devices in ([0, torch.npu.device_count()], range(2**62)):
        with pytest.raises(AssertionError, match="Invalid device id"):
            parallel.DataParallel(net(), devices)
