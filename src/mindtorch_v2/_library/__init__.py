"""Operators from outside the package; `torch.library` is their public face."""
