"""Forward-mode derivatives on the NPU: rows serve every device, so a share of them is asked here.

Invariant: the tangents are PyTorch's on the CPU, within float32.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule
from ..parity import _infos, _tangents
from ._place import NPU

SHARE = 9


@pytest.mark.oracle
@pytest.mark.parametrize("case", _tangents.covered()[::SHARE], ids=lambda case: case.label)
def test_tangents(case: _infos.Covered) -> None:
    if case.label not in _tangents.OTHERS and _infos.supported(case.info, "float32"):
        assert [verdict for verdict in _tangents.verdicts(case, "float32", 1, NPU) if verdict] == []


def test_a_network_and_its_hessian_product() -> None:
    fw = submodule("autograd.forward_ad")

    def run(device: str) -> Any:
        w = (torch.arange(12.0).reshape(3, 4) / 10).to(device)
        x = (torch.arange(8.0).reshape(2, 4) / 7).to(device)
        with fw.dual_level():
            d = fw.make_dual(w.requires_grad_(), torch.ones_like(w.detach()))
            loss = torch.nn.functional.linear(x, d).tanh().softmax(-1).pow(2).sum()
            (g,) = torch.autograd.grad(loss, d)
            return fw.unpack_dual(loss).tangent.tolist(), fw.unpack_dual(g).tangent.flatten().tolist()

    (want, hessian), (got, product) = run("cpu"), run("npu")
    assert got == pytest.approx(want, abs=1e-5) and product == pytest.approx(hessian, abs=1e-5)
