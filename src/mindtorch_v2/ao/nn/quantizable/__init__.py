"""`torch.ao.nn.quantizable`: modules that PyTorch can quantize: importable, and raise when they are made."""

from . import modules as modules
from .modules import *  # noqa: F403
