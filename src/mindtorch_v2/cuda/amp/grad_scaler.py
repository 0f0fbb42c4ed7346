"""`torch.cuda.amp.GradScaler`."""

from ...amp._older import classes

__all__ = ["GradScaler"]

GradScaler = classes("cuda", __package__)[1]
