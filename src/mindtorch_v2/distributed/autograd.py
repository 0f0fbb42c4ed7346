"""`torch.distributed.autograd`: importable, and refused by name."""

from __future__ import annotations

from .._unserved import offer as _offer


def is_available() -> bool:
    """Whether it can be used: it cannot."""
    return False


_offer(__name__, "_init backward get_gradients", "context", "{name} is not served; it needs rpc, which is not served")
