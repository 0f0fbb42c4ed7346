"""Recurrent layers and packed sequences on an NPU.

Invariant: results and gradients are those of the CPU; nothing but lengths and orders of sequences is known to the host.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu


def test_packing() -> None:
    rnn = torch.nn.utils.rnn
    x = torch.arange(24.0).reshape(4, 3, 2)
    here = rnn.pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False)
    there = rnn.pack_padded_sequence(x.npu().requires_grad_(), [1, 4, 2], enforce_sorted=False)
    assert there.data.device.type == there.sorted_indices.device.type == "npu"
    assert there.batch_sizes.device.type == "cpu" and there.data.tolist() == here.data.tolist()
    padded, _ = rnn.pad_packed_sequence(there, True, -1.0)
    assert padded.tolist() == rnn.pad_packed_sequence(here, True, -1.0)[0].tolist()
    padded.sum().backward()
    assert here.npu().cpu().data.tolist() == here.data.tolist()


def both(module: Any, *inputs: Any) -> tuple[list[Any], list[Any]]:
    """Results and gradients of a module on the CPU and of its copy on the NPU, the latter brought back."""
    found = []
    for place in ("cpu", "npu"):
        copied = copy.deepcopy(module).to(place)
        given = [i.detach().to(place).requires_grad_(i.is_floating_point()) for i in inputs]
        result = copied(*given)
        outputs = [t for part in result for t in (part if isinstance(part, tuple) else (part,))]
        assert all(t.device.type == place for t in outputs)
        sum((t * t).sum() for t in outputs).backward()
        grads = [t.grad for t in (*given, *copied.parameters()) if t.grad is not None]
        found.append([t.detach().cpu() for t in (*outputs, *grads)])
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_layers(name: str, dtype: str) -> None:
    several: list[dict[str, Any]] = [{}, {"bidirectional": True, "num_layers": 2, "bias": False}]
    if name == "LSTM":
        several.append({"proj_size": 2, "batch_first": True})
    for options in several:
        torch.manual_seed(1)
        module = getattr(torch.nn, name)(3, 4, **options).to(getattr(torch, dtype))
        here, there = both(module, torch.randn(5, 2, 3).to(getattr(torch, dtype)))
        bound = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
        for mine, other in zip(there, here, strict=True):
            assert torch.allclose(mine, other, rtol=bound, atol=bound), options


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name: str) -> None:
    torch.manual_seed(1)
    here, there = both(getattr(torch.nn, name)(3, 4), torch.randn(2, 3))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(here, there, strict=True))


@_npu.emulator_only
def test_an_lstm_step_is_one_product_and_one_cell(emulator: _npu.Emulator) -> None:
    module = torch.nn.LSTM(3, 4).npu()
    x = torch.randn(6, 2, 3).npu()
    with torch.no_grad():
        module(x)
        names = ("aclnnThnnFusedLstmCell", "aclnnMm")
        before = [emulator.calls(name) for name in names]
        sent = emulator.bytes_to_host()
        module(x)
        after = [emulator.calls(name) for name in names]
    assert [b - a for a, b in zip(before, after)] == [6, 6]
    assert emulator.bytes_to_host() == sent


def test_packed_batches() -> None:
    torch.manual_seed(1)
    module = torch.nn.GRU(3, 4, bidirectional=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 3), [2, 5, 3], enforce_sorted=False)
    out, hidden = module(packed)
    there, last = copy.deepcopy(module).npu()(packed.npu())
    assert there.data.device.type == "npu" and there.batch_sizes.device.type == "cpu"
    assert torch.allclose(there.data.cpu(), out.data, atol=1e-5) and torch.allclose(last.cpu(), hidden, atol=1e-5)


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_and_transformers(batch_first: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 4)
    modules = [
        torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=batch_first),
        torch.nn.Transformer(4, 2, 1, 1, 6, 0.0, batch_first=batch_first),
        torch.nn.TransformerDecoderLayer(4, 2, 6, 0.0, batch_first=batch_first),
    ]
    for module in modules:
        given = (x,) if isinstance(module, torch.nn.TransformerEncoderLayer) else (x, x + 1)
        here, there = both(Listed(module), *given)
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(here, there, strict=True))
    here, there = both(torch.nn.MultiheadAttention(4, 2, batch_first=batch_first), x, x + 1, x - 1)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(here, there, strict=True))


class Listed(torch.nn.Module):
    """A module whose one result stands in a list."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> list[Any]:
        return [self.module(*args)]


def test_padding_leaves_zeros_where_nothing_is_recorded() -> None:
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, mask = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        here = encoder(x, src_key_padding_mask=mask)
        there = copy.deepcopy(encoder).npu()(x.npu(), src_key_padding_mask=mask.npu())
    assert not there[0, 2].cpu().any() and there.device.type == "npu"
    assert torch.allclose(there.cpu(), here, atol=1e-5)


def test_an_lstm_under_autocast() -> None:
    """The whole operator is computed in half precision, as on PyTorch's accelerators."""
    torch.manual_seed(1)
    module = torch.nn.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    exact = module(x)[0]
    there = module.npu()
    with torch.autocast("npu", dtype=torch.float16):
        found, (_, cell) = there(x.npu())
    found.float().sum().backward()
    assert cell.dtype is torch.float16 and torch.allclose(found.float().cpu(), exact, atol=5e-3)
    assert all(bool(p.grad.isfinite().all()) and p.grad.dtype is torch.float32 for p in there.parameters())
