"""Tools for tests: comparison of tensors with messages that help, and tensors of random numbers."""

from . import _utils as _utils
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
