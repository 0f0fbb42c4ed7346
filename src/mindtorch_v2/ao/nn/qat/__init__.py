"""`torch.ao.nn.qat`: modules that PyTorch trains for quantization: importable, and raise when they are made."""

from . import modules as modules
from .modules import *  # noqa: F403
