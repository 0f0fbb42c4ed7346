"""`torch.ao.nn.quantized`: modules over quantized tensors: importable, and raise when they are made."""

from ....nn import MaxPool2d as MaxPool2d
from . import modules as modules
from .modules import *  # noqa: F403
