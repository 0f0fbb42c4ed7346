"""The few names of torchvision that timm imports: torchvision has no build for this package's `torch`."""

from . import datasets as datasets
from . import ops as ops
from . import transforms as transforms

__version__ = "0.28.0"
