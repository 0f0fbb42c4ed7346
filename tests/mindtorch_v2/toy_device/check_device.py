"""What holds on the toy device, though nothing in `mindtorch_v2` was touched for it.

Run by `dispatch/test_third_party_device.py` in a process of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch

from . import Memory, operators


def on_toy(values: Any, **options: Any) -> Any:
    return torch.tensor(values, **options).to("toy")


@pytest.fixture(autouse=True)
def fresh() -> None:
    operators.calls.clear()


def test_the_device_has_a_name() -> None:
    assert torch.device("toy").type == "toy" and str(torch.device("toy:1")) == "toy:1"
    t = torch.empty(2, 3, device="toy")
    assert t.device.type == "toy" and t.shape == (2, 3) and isinstance(t._storage, Memory)


def test_values_go_there_and_back() -> None:
    x = torch.arange(6.0).view(2, 3)
    y = x.to("toy")
    assert y.device.type == "toy" and y.cpu().tolist() == x.tolist() == y.tolist()
    assert y.t().cpu().tolist() == x.t().tolist() and x.t().to("toy").tolist() == x.t().tolist()
    assert y.to(torch.int64).tolist() == [[0, 1, 2], [3, 4, 5]] and y[1, 2].item() == 5.0
    assert torch.tensor([1.0, 2.0], device="toy").tolist() == [1.0, 2.0]
    assert "device='toy'" in repr(y)


def test_factories() -> None:
    assert torch.zeros(2, device="toy").tolist() == [0.0, 0.0]
    assert torch.full((2,), 7, device="toy").tolist() == [7, 7]
    with torch.device("toy"):
        assert torch.ones(2).device.type == "toy"
    assert torch.ones_like(on_toy([3.0])).device.type == "toy" and on_toy([3.0]).new_zeros(2).tolist() == [0.0, 0.0]


def test_operators_run_its_kernels() -> None:
    x = on_toy([1.0, -2.0])
    assert (x + x * 2).tolist() == [3.0, -6.0] and x.relu().tolist() == [1.0, 0.0]
    assert operators.calls == ["mul", "add", "relu"]
    a = on_toy([[1.0, 2.0], [3.0, 4.0]])
    assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]] and a.sum(0).tolist() == [4.0, 6.0]


def test_broadcasting_and_promotion_come_from_the_rule() -> None:
    x = on_toy([[1], [2]])
    y = x + on_toy([0.5, 1.5])
    assert y.dtype == torch.float32 and y.tolist() == [[1.5, 2.5], [2.5, 3.5]]


def test_views_share_memory() -> None:
    x = on_toy([[1.0, 2.0], [3.0, 4.0]])
    v = x.t()[1]
    assert v._base is x and v._storage is x._storage and v.tolist() == [2.0, 4.0]
    v.fill_(0)
    assert x.tolist() == [[1.0, 0.0], [3.0, 0.0]] and x._version == 1
    x[0] = 9
    assert x.tolist() == [[9.0, 9.0], [3.0, 0.0]] and v.tolist() == [9.0, 0.0]


def test_in_place_and_out() -> None:
    x = on_toy([1.0, 2.0])
    assert x.add_(1) is x and x.tolist() == [2.0, 3.0] and x._version == 1
    x[1:].mul_(10)
    assert x.tolist() == [2.0, 30.0] and x._version == 2
    out = torch.empty(0, device="toy")
    assert torch.mul(x, x, out=out) is out and out.tolist() == [4.0, 900.0]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(2, 2, device="toy"))


def test_functionalized() -> None:
    base = on_toy([1.0, 2.0, 3.0, 4.0])
    with torch.functionalize():
        base.view(2, 2).t().add_(torch.ones(2, 2, device="toy"))
        base[::2].mul_(10)
    assert base.tolist() == [20.0, 3.0, 40.0, 5.0] and base._version == 2


def test_gradients() -> None:
    x = on_toy([0.5, -1.0, 2.0]).requires_grad_()
    y = ((x * x).sin() + x.relu()).sum()
    y.backward()
    expected = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    ((expected * expected).sin() + expected.relu()).sum().backward()
    assert x.grad.device.type == "toy" and x.grad.tolist() == pytest.approx(expected.grad.tolist())
    x.grad = None
    y = x * 1
    y[:2].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0]


def test_gradients_cross_devices() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x.to("toy") * 3).sum().cpu().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [3.0, 3.0]


def test_a_training_step() -> None:
    weight = on_toy([[0.0], [0.0]]).requires_grad_()
    data, target = on_toy([[1.0, 2.0], [3.0, 4.0]]), on_toy([[1.0], [1.0]])
    losses = []
    for _ in range(3):
        error = data @ weight - target
        loss = (error * error).sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad * 0.01)
        weight.grad = None
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]


def test_a_missing_kernel_is_named() -> None:
    with pytest.raises(NotImplementedError, match="operator 'cosh' on device 'toy'"):
        on_toy([1.0]).cosh()
    with pytest.raises(RuntimeError, match="cpu|toy"):
        on_toy([1.0, 2.0]) + torch.ones(2)


def test_custom_operators_on_it() -> None:
    @torch.library.custom_op("toy_test::twice", mutates_args=(), schema="(Tensor x) -> Tensor", device_types="toy")
    def twice(x: Any) -> Any:
        return x + x

    assert twice(on_toy([2.0])).tolist() == [4.0]
    with pytest.raises(NotImplementedError, match="toy_test::twice.*'cpu'"):
        twice(torch.ones(1))


def test_memory_is_given_back() -> None:
    before = Memory.live
    x = on_toy([1.0, 2.0])
    y = x + 1
    assert Memory.live > before
    del x, y
    assert Memory.live == before
