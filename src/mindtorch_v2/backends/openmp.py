"""`torch.backends.openmp`: kernels use threads of their own."""


def is_available() -> bool:
    """The native module has its own threads, not OpenMP's."""
    return False
