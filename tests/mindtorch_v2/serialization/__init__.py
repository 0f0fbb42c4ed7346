"""Tests of `torch.save`, `torch.load` and `torch.serialization`."""
