"""`torch._refs.nn`: references of `torch.nn`."""

from . import functional as functional
