"""`torch._tensor_str`: what clients use of the text of tensors."""

from __future__ import annotations

from typing import Any

from . import _printing
from ._printing import get_printoptions as get_printoptions
from ._printing import printoptions as printoptions
from ._printing import set_printoptions as set_printoptions

PRINT_OPTS = _printing._OPTIONS
_add_suffixes = _printing._with_suffixes


def _tensor_str(t: Any, indent: int) -> str:
    """The elements alone, whose lines after the first begin `indent` to the right."""
    return _printing._elements(t, indent)


def _str_intern(t: Any, *, tensor_contents: str | None = None) -> str:
    return _printing.tensor_str(t, tensor_contents)


def _str(t: Any, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor; `tensor_contents` stands for its elements."""
    return _printing.tensor_str(t, tensor_contents)


def get_summarized_data(self: Any) -> Any:
    """The elements that the text of a large tensor shows: a few at each end of every dimension."""
    import mindtorch_v2 as torch

    edge = PRINT_OPTS.edgeitems
    for dim, size in enumerate(self.shape):
        if size > 2 * edge:
            ends = (self.narrow(dim, 0, edge), self.narrow(dim, size - edge, edge))
            self = torch.cat(ends, dim) if edge else ends[0]
    return self
