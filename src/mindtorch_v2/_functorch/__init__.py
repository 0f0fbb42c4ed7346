"""`torch._functorch`: the transforms of `torch.func` where PyTorch has them, those of `functorch`, and settings."""
