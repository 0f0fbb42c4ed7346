"""`torch.backends.cpu`: what the kernels make of the processor."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set that the native kernels choose on this processor: "AVX512", "AVX2" or "DEFAULT"."""
    from ..cpu import _is_avx2_supported, _is_avx512_supported

    return "AVX512" if _is_avx512_supported() else "AVX2" if _is_avx2_supported() else "DEFAULT"
