"""Recurrent layers and packed sequences on an NPU.

Invariant: results and gradients are those of the CPU; nothing but lengths and orders of sequences is known to the host.
"""

from __future__ import annotations

import mindtorch_v2 as torch


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
