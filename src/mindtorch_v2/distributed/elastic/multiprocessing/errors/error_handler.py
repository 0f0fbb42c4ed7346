"""`torch.distributed.elastic.multiprocessing.errors.error_handler`."""

from . import ErrorHandler

__all__ = ["ErrorHandler"]
