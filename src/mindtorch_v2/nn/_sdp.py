"""Which implementations scaled dot product attention may use: the one place for `nn.attention` and `backends.cuda`.

Invariant: `SDP.restricted` says whether any implementation is switched off, so that a call with all of them pays one
look at it.
"""

from __future__ import annotations

from .._numbered import Numbered


class SDPBackend(Numbered):
    """The implementations of scaled dot product attention, for `sdpa_kernel`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __hash__(self) -> int:
        return int(self.value)


SDPBackend.__module__ = __name__.rpartition(".")[0] + ".attention"

# By the words in the names of the switches (`enable_flash_sdp`), in the order in which they are listed.
BACKENDS: dict[str, SDPBackend] = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "overrideable": SDPBackend.OVERRIDEABLE,
}


class _State:
    """The switches, and the order of preference."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = dict.fromkeys(BACKENDS, True)
        self.priority: list[int] = [1, 2, 0, 3, 4]
        self.restricted: bool = False

    def enable(self, name: str, value: bool) -> None:
        """Switch an implementation on or off, by its word in `BACKENDS`."""
        self.enabled[name] = value
        self.restricted = not all(self.enabled.values())


SDP = _State()
