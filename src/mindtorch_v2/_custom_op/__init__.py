"""`torch._custom_op`: the older way to operators from outside; `torch.library.custom_op` is the newer one."""
