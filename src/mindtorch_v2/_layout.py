"""Memory layouts and memory formats.

Invariant: each is a single object, so that identity is equality, also after pickling and copying.
"""

from typing import Final, final

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]


@final
class layout:
    """How the elements of a tensor are laid out in memory."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        # A plain string makes pickle and copy look the constant up by name in this module.
        return self.name


@final
class memory_format:
    """The order of the dimensions in memory, for operators that may choose it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        return self.name


strided: Final = layout("strided")
sparse_coo: Final = layout("sparse_coo")
sparse_csr: Final = layout("sparse_csr")
sparse_csc: Final = layout("sparse_csc")
sparse_bsr: Final = layout("sparse_bsr")
sparse_bsc: Final = layout("sparse_bsc")
jagged: Final = layout("jagged")

contiguous_format: Final = memory_format("contiguous_format")
preserve_format: Final = memory_format("preserve_format")
channels_last: Final = memory_format("channels_last")
channels_last_3d: Final = memory_format("channels_last_3d")
