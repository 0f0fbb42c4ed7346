"""`torch.cpu.amp.autocast`."""

from ...amp._older import classes

__all__ = ["autocast"]

autocast = classes("cpu", __package__)[0]
