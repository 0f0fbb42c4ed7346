"""`torch.npu.amp.autocast` and its decorators."""

from ...amp._older import classes, decorators

__all__ = ["autocast", "custom_bwd", "custom_fwd"]

autocast = classes("npu", __package__)[0]
custom_fwd, custom_bwd = decorators("npu", __package__)
