"""`torch.distributed.elastic.multiprocessing.errors.handlers`."""

from . import ErrorHandler as ErrorHandler
from . import get_error_handler

__all__ = ["get_error_handler"]
