"""Sparse tensors on an NPU give what they give on the CPU and stay there; what an NPU lacks is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _npu
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only

CALLS = """
s.to_dense() | s.coalesce() | u.coalesce() | s + s | s + u | s * 2 | s / 2 | -s | s * s | s.sin() | s.relu() | s ** 2
s @ d.t() | s.mm(d.t()) | torch.sparse.mm(s, d.t()) | s.mv(v) | s.t() | s.transpose(0, 1) | s[0] | s.select(1, 2)
s.sum() | torch.sparse.sum(s, 0) | torch.sparse.sum(s, 1) | torch.sparse.softmax(s, 1) | torch.sparse.log_softmax(s, 1)
s.index_select(0, i) | torch.cat([s, s]) | torch.stack([s, s]) | d.sparse_mask(s) | d + s | d * s | s * d | s.abs()
c.to_dense() | c @ d.t() | c @ v | c + c | c * 2 | c.sin() | c.to_sparse() | c.t() | c.to_sparse_csc() | c.sum()
d.to_sparse() | d.to_sparse_csr() | d.to_sparse_csc() | q.to_sparse_bsr((2, 2)) | q.to_sparse_bsr((2, 2)).to_dense()
q.to_sparse_bsr((2, 2)) @ q | s.to_sparse_csr() | c.to_sparse().to_sparse_csc().to_dense() | h.to_dense() | h * 2
h.sum()
torch.sparse.sampled_addmm(c, d, d.t() @ d) | torch.addmm(d @ d.t(), s, d.t()) | torch.nn.functional.linear(d, s)
s.float()
"""


def world(device: str) -> dict[str, Any]:
    d = torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
    at = torch.tensor([[0, 0, 1], [2, 2, 0]], device=device)
    values = torch.tensor([3.0, 4.0, 5.0], device=device)
    return {
        "torch": torch,
        "d": d.to(device),
        "s": d.to_sparse().to(device),
        "u": torch.sparse_coo_tensor(at, values, (2, 3)),
        "c": d.to_sparse_csr().to(device),
        "h": torch.sparse_coo_tensor(at, values.unsqueeze(1) * torch.ones(2, device=device), (2, 3, 2)),
        "q": torch.eye(4, device=device) * 2,
        "v": torch.arange(3.0, device=device),
        "i": torch.tensor([1, 0], device=device),
    }


@pytest.mark.parametrize("call", [call.strip() for line in CALLS.strip().split("\n") for call in line.split(" | ")])
def test_as_on_the_cpu(call: str) -> None:
    _npu.start()
    ours = eval(call, world("cpu"))
    theirs = eval(call, world("npu"))
    assert theirs.device.type == "npu" and theirs.layout is ours.layout
    if ours.layout is not torch.strided:
        ours, theirs = ours.to_dense(), theirs.to_dense()
    torch.testing.assert_close(theirs.cpu(), ours)


def test_gradients_stay_there() -> None:
    _npu.start()
    found = []
    for device in ("cpu", "npu"):
        names = world(device)
        s, d = names["s"].requires_grad_(), names["d"].requires_grad_()
        torch.sparse.mm(s, d.t()).sin().sum().backward()
        assert s.grad.device.type == d.grad.device.type == device and s.grad.is_sparse
        found.append((s.grad.to_dense().cpu(), d.grad.cpu()))
    for ours, theirs in zip(*found):
        torch.testing.assert_close(theirs, ours)


def test_holes_are_named() -> None:
    _npu.start()
    names = world("npu")
    with pytest.raises(NotImplementedError, match="aten::triangular_solve.*torch.sparse_csr"):
        torch.triangular_solve(names["d"][:, :1], names["c"])
    with pytest.raises(NotImplementedError, match="aten::kron.*torch.sparse_coo"):
        torch.kron(names["s"], names["s"])
