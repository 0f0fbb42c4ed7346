"""Conjugate and negative views on the NPU: the same views, resolved on the device."""

from __future__ import annotations

import mindtorch_v2 as torch


def test_views_are_lazy_and_writes_reach_the_base() -> None:
    x = torch.tensor([[1 + 2j, 3 - 4j], [2j, 1 + 0j]])
    base = x.to("npu")
    c = base.conj()
    assert c.is_conj() and c.imag.is_neg() and base.mH.is_conj() and c.data_ptr() == base.data_ptr()
    assert torch.equal((c * 2).cpu(), x.conj() * 2) and torch.equal(c.cpu(), x.conj())
    c.mul_(2j)
    assert torch.equal(base.cpu(), (x.conj() * 2j).conj())
    c.copy_(x)
    assert torch.equal(base.cpu(), x.conj()) and c.tolist() == x.tolist()
    base._neg_view().copy_(x.conj())
    assert torch.equal(base.cpu(), -x.conj())


def test_copies_between_devices_and_products() -> None:
    x = torch.tensor([[1 + 2j, 3 - 4j], [2j, 1 + 0j]])
    base = x.to("npu")
    there = torch.zeros(2, 2, dtype=torch.complex64, device="npu")
    there.copy_(x.conj())
    back = torch.zeros(2, 2, dtype=torch.complex64)
    back.copy_(base.conj()._neg_view())
    assert torch.equal(there.cpu(), x.conj()) and torch.equal(back, -x.conj())
    assert torch.allclose((base.mH @ base).cpu(), x.mH @ x)
    assert base.conj()[0, 0].item() == 1 - 2j
