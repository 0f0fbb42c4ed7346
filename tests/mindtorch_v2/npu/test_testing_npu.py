"""`torch.testing` with tensors on an NPU."""

from __future__ import annotations

import pytest

from .._subject import subject as torch
from .._subject import submodule

testing = submodule("testing")


def test_comparison() -> None:
    a, b = torch.tensor([1.0, 2.0], device="npu"), torch.tensor([1.0, 3.0], device="npu")
    testing.assert_close(a, a.clone())
    testing.assert_close(a, a.cpu(), check_device=False)
    with pytest.raises(AssertionError) as caught:
        testing.assert_close(a, b)
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.3333333432674408 at index (1,) (up to 1.3e-06 allowed)"
    )
    with pytest.raises(AssertionError, match="The values for attribute 'device' do not match: npu:0 != cpu."):
        testing.assert_close(a, a.cpu())
    testing.assert_close(torch.ones(2, device="npu"), torch.ones(2, device="npu", dtype=torch.int32), check_dtype=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_made_tensors(dtype: torch.dtype) -> None:
    low, high = (0, 2) if dtype is torch.bool else (2, 5)
    made = testing.make_tensor(3, 4, dtype=dtype, device="npu", low=low, high=high, exclude_zero=True)
    assert made.device.type == "npu" and made.dtype is dtype
    values = made.cpu().double()
    assert max(low, 1) <= values.min().item() <= values.max().item() <= high
    apart = testing.make_tensor(3, 4, dtype=dtype, device="npu", noncontiguous=True)
    assert apart.shape == (3, 4) and not apart.is_contiguous()


def test_frozen_generators() -> None:
    states = torch.get_rng_state(), torch.npu.get_rng_state()
    with testing._utils.freeze_rng_state():
        torch.randn(3)
        torch.randn(3, device="npu")
    assert torch.equal(torch.get_rng_state(), states[0]) and torch.equal(torch.npu.get_rng_state(), states[1])
