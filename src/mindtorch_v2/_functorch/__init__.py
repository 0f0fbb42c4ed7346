"""`torch._functorch`: only the settings that programs touch; the transforms are in `torch.func`."""
