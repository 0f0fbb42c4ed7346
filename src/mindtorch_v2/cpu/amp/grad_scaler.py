"""`torch.cpu.amp.GradScaler`."""

from ...amp._older import classes

__all__ = ["GradScaler"]

GradScaler = classes("cpu", __package__)[1]
