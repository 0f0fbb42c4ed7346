"""What `torch.profiler` and `torch.autograd.profiler` are made of: recording, the device's clock, and traces.

Invariant: nothing here is imported before somebody profiles, and nothing of it runs on the way of a call unless the
calling thread has the PROFILE bit among its modes.
"""
