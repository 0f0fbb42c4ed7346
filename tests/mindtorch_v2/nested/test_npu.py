"""Jagged nested tensors on an NPU give what they give on the CPU, with gradients, and stay there."""

from __future__ import annotations

import pytest

from .. import _npu
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only
CALLS = [
    "x * 2 + 1",
    "x.softmax(-1)",
    "x.sum(1)",
    "x.mean(1)",
    "x.to_padded_tensor(0.0)",
    "F.layer_norm(x, (4,))",
    "F.scaled_dot_product_attention(x, x, x)",
    "torch.cat([x, x], 2).chunk(2, -1)[0]",
]


@pytest.mark.parametrize("call", CALLS)
def test_as_on_the_cpu(call: str) -> None:
    _npu.start()
    many = [torch.arange(8.0).reshape(2, 4).sin(), torch.arange(12.0).reshape(3, 4).cos()]
    found = []
    for device in ("cpu", "npu"):
        x = torch.nested.nested_tensor(many, layout=torch.jagged, device=device, requires_grad=True)
        result = eval(call, {"torch": torch, "F": torch.nn.functional, "x": x})
        dense = result.values() if result.is_nested else result
        (dense * dense.detach()).sum().backward()
        assert (dense.device.type, x.grad.device.type, x.grad.offsets().device.type) == (device,) * 3
        found.append((dense.detach().cpu(), x.grad.values().cpu()))
    for ours, theirs in zip(*found):
        torch.testing.assert_close(theirs, ours)


def test_moved_and_back() -> None:
    _npu.start()
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged)
    there = x.to("npu")
    assert there.shape == x.shape
    assert torch.equal(there.cpu().values(), x.values())
