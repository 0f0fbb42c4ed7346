"""Tools for tests: comparison of tensors with messages that help, tensors of random numbers, assertions about texts."""

from . import _utils as _utils
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
