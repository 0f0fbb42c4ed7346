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
[t.mul_(2)._version for t in torch.ones(3, 3).unsafe_split(1)]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_split_with_sizes((1, 1, 1))]
[t.add_(1)._version for t in torch.ones(3, 3).unsafe_chunk(3)]
torch.inference_mode()(lambda: torch.ones(1, 2, requires_grad=True).resize_(3).shape)()
torch.ones(1, 2, requires_grad=True).resize_(3)
(lambda x, m: pool.native_layer_norm_backward(x, x, [3], m, m, x[0], x[0], MASK))(torch.ones(2, 3), torch.ones(2, 1))[0]
(lambda x, m: pool.native_group_norm_backward(x, x, m, m, x[0], 1, 4, 1, 2, MASK))(torch.ones(1, 4), torch.ones(1, 2))
pool.convolution_backward(*([torch.ones(1, 1, 1)] * 3), [1], [1], [0], [1], False, [0], 1, (True, True, False))[2]
pool.convolution_backward(*([torch.ones(1, 1, 1, device="meta")] * 3), [1], [1], [0], [1], False, [0], 1, MASK)[0]
pool.native_batch_norm_backward(*([torch.ones(2, 1, 2)] * 2), *([torch.ones(1)] * 5), True, 1e-5, (False, False, False))
torch._running_with_deploy()
""".strip().split("\n")


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_lines(line: str) -> None:
    line = line.replace("MASK", "(False, True, True)")
    assert told(torch, line) == told(_oracle.load(), line)


def test_sparse_gradients_do_not_share_the_indices() -> None:
    layer, indices = torch.nn.Embedding(9, 2, sparse=True), torch.tensor([7, 1])
    layer(indices).sum().backward()
    indices.zero_()
    assert layer.weight.grad._indices().tolist() == [[7, 1]]
