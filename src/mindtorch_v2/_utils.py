"""`torch._utils`: names that other code expects to find there."""

from __future__ import annotations

from ._background import ExceptionWrapper as ExceptionWrapper
from ._background import KeyErrorMessage as KeyErrorMessage
from ._background import cpu_count as cpu_count
