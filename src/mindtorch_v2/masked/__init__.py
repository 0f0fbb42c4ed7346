"""`torch.masked`: reductions and normalizations over the elements that a mask lets through, and tensors with a mask."""

from __future__ import annotations

from typing import Any

from ._ops import _canonical_dim as _canonical_dim
from ._ops import _combine_input_and_mask as _combine_input_and_mask
from ._ops import _input_mask as _input_mask
from ._ops import _output_mask as _output_mask
from ._ops import _reduction_identity as _reduction_identity
from ._ops import _where as _where
from ._ops import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_TENSORS = {
    "MaskedTensor": "core",
    "is_masked_tensor": "core",
    "as_masked_tensor": "creation",
    "masked_tensor": "creation",
}


def __getattr__(name: str) -> Any:
    """Tensors with a mask are loaded when first asked for."""
    if name not in _TENSORS and name != "maskedtensor":
        raise AttributeError(f"module 'torch.masked' has no attribute '{name}'")
    from importlib import import_module

    if name == "maskedtensor":
        return import_module(".maskedtensor", __name__)
    found = getattr(import_module(f".maskedtensor.{_TENSORS[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_TENSORS, "maskedtensor"})
