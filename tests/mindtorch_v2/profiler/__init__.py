"""Tests of `torch.profiler` and `torch.autograd.profiler`."""
