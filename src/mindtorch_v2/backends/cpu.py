"""`torch.backends.cpu`: what the kernels make of the processor."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set that the native kernels use: "AVX512", "AVX2" or "DEFAULT". MINDTORCH_CPU lowers it."""
    from .. import _native

    level = _native.cpu_level()
    return "DEFAULT" if level == "baseline" else level.upper()
