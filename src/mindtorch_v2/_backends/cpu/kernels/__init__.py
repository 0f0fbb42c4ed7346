"""Kernels of the CPU: classes that unpack tensors and call the native module."""
