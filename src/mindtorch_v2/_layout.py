"""Memory layouts and memory formats.

Invariant: each is a single object, so that identity is equality, also after pickling and copying.
"""

from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "_mkldnn",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "legacy_contiguous_format",
    "memory_format",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "preserve_format",
    "qscheme",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]


class _Constant:
    """An object known by its name in this module."""

    __slots__ = ("name",)
    name: str

    def __new__(cls) -> "Self":
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    @classmethod
    def _make(cls, name: str) -> "Self":
        made = object.__new__(cls)
        object.__setattr__(made, "name", name)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"'torch.{type(self).__name__}' object has no attribute '{name}'")
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        # A plain string makes pickle and copy look the constant up by name in this module.
        return self.name


@final
class layout(_Constant):
    """How the elements of a tensor are laid out in memory."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        # By a function and not by name, as PyTorch pickles it.
        return _get_layout, (str(self),)


@final
class memory_format(_Constant):
    """The order of the dimensions in memory, for operators that may choose it."""

    __slots__ = ()


@final
class qscheme(_Constant):
    """How a quantized tensor's numbers are scaled. There are none here; programs ask for the names."""

    __slots__ = ()


strided: Final = layout._make("strided")
sparse_coo: Final = layout._make("sparse_coo")
sparse_csr: Final = layout._make("sparse_csr")
sparse_csc: Final = layout._make("sparse_csc")
sparse_bsr: Final = layout._make("sparse_bsr")
sparse_bsc: Final = layout._make("sparse_bsc")
jagged: Final = layout._make("jagged")
_mkldnn: Final = layout._make("_mkldnn")

contiguous_format: Final = memory_format._make("contiguous_format")
preserve_format: Final = memory_format._make("preserve_format")
channels_last: Final = memory_format._make("channels_last")
channels_last_3d: Final = memory_format._make("channels_last_3d")
legacy_contiguous_format: Final = contiguous_format

per_tensor_affine: Final = qscheme._make("per_tensor_affine")
per_channel_affine: Final = qscheme._make("per_channel_affine")
per_tensor_symmetric: Final = qscheme._make("per_tensor_symmetric")
per_channel_symmetric: Final = qscheme._make("per_channel_symmetric")
per_channel_affine_float_qparams: Final = qscheme._make("per_channel_affine_float_qparams")


def _get_layout(name: str) -> layout:
    """The layout with this text."""
    for value in globals().values():
        if isinstance(value, layout) and str(value) == name:
            return value
    raise KeyError(name)


# What a user sees of a class is where it is found.
for _public in (layout, memory_format, qscheme):
    setattr(_public, "__module__", "mindtorch_v2")
