"""`torch.npu.streams`: streams and events by PyTorch's name of the module."""

from .._backends.npu.streams import Event as Event
from .._backends.npu.streams import ExternalStream as ExternalStream
from .._backends.npu.streams import Stream as Stream
