"""`torch.npu.amp.GradScaler`."""

from ...amp._older import classes

__all__ = ["GradScaler"]

GradScaler = classes("npu", __package__)[1]
