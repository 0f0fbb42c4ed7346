"""`torch.backends.mkl`: there is no MKL."""

from __future__ import annotations

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """There is no MKL here: matrix products are OpenBLAS's or the package's own."""
    return False


class verbose:
    """`with torch.backends.mkl.verbose(enable)`: there is no MKL that could say something."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose | None:
        if self.enable == VERBOSE_OFF:
            return None
        raise RuntimeError("Failed to set MKL into verbose mode: the package is built without it")

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        return None
