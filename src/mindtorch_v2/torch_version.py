"""`torch.torch_version`: version strings that compare as versions."""

from ._version import TorchVersion as TorchVersion
from ._version import __version__ as __version__

__all__ = ["TorchVersion"]
