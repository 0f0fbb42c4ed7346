"""Numbers, arrays and tensors of any device as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import mindtorch_v2 as torch


def make_np(x: Any) -> Any:
    """A NumPy array with the values of `x`; a meta tensor, which has none, gives one random number, as in PyTorch."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, torch.Tensor):
        if x.device.type == "meta":
            return np.random.randn(1)
        if x.dtype == torch.bfloat16:
            x = x.to(torch.float16)
        return x.detach().cpu().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
