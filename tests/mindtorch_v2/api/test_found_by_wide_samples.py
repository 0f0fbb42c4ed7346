"""Differences that wide samples of PyTorch's own tests found: lines of code on both libraries."""

from __future__ import annotations

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from .test_found_by_pytorchs_tests import told

LINES = """
torch.pow(1, torch.ones(2, dtype=torch.complex32))
torch.pow(1 + 0j, torch.ones(2, dtype=torch.float16))
torch.pow(2, torch.ones(2, dtype=torch.complex32))
torch.nn.functional.fold(torch.tensor([[True, False, False, True]] * 4).t().reshape(1, 4, 4), (3, 3), (2, 2))
[t._version for b in [torch.ones(3, 3)] for t in b.unsafe_split(1) if t.mul_(2) is t] + [b._version for b in [torch.ones(3)]]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_split_with_sizes((1, 1, 1))]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_chunk(3)]
torch.inference_mode()(lambda: torch.ones(1, 2, requires_grad=True).resize_(3).shape)()
torch.ones(1, 2, requires_grad=True).resize_(3)
pool.native_layer_norm_backward(*([torch.ones(2, 3)] * 2), [3], *([torch.ones(2, 1)] * 2), *([torch.ones(3)] * 2), (False, True, True))[0]
pool.native_group_norm_backward(*([torch.ones(1, 4, 9)] * 2), *([torch.ones(1, 2)] * 2), torch.ones(4), 1, 4, 9, 2, (True, False, True))[1]
pool.convolution_backward(*([torch.ones(1, 1, 1)] * 3), [1], [1], [0], [1], False, [0], 1, (True, True, False))[2]
pool.convolution_backward(*([torch.ones(1, 1, 1, device="meta")] * 3), [1], [1], [0], [1], False, [0], 1, (False, True, True))[0]
pool.native_batch_norm_backward(*([torch.ones(2, 1, 2)] * 2), *([torch.ones(1)] * 5), True, 1e-5, (False, False, False))
torch._running_with_deploy()
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)
