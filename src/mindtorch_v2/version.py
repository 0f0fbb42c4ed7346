"""`torch.version`: the version, and which other vendors' toolkits the package was built with: none."""

from typing import Final

from ._version import __version__ as _version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__: Final = str(_version)
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
# The package does not record the commit that it was built from.
git_version = "Unknown"
