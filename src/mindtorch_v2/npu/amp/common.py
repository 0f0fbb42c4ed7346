"""Whether the NPU's autocast could do anything."""

from ..._backends.npu import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no NPU."""
    return not is_available()
