"""`torch._library.custom_ops`: operators from functions, under PyTorch's name of the module."""

from __future__ import annotations

from .custom_op import OPDEFS as OPDEFS
from .custom_op import CustomOpDef as CustomOpDef
from .custom_op import custom_op as custom_op
