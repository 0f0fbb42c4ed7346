"""`torch.autograd._functions`: the Functions that PyTorch keeps for old programs."""

from .tensor import Resize as Resize
