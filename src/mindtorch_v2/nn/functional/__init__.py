"""The functions behind the layers: PyTorch's signatures over the rows of the operator tables, one file per family.

Invariant: a function that PyTorch has in `torch` as well is that very function.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._activations import *  # noqa: F403
from ._attention import *  # noqa: F403
from ._layers import *  # noqa: F403
from ._linear_loss import *  # noqa: F403
from ._losses import *  # noqa: F403
from ._margins import *  # noqa: F403
from ._pooling import *  # noqa: F403
from ._vision import *  # noqa: F403

# Functions that are those of `torch`, made when first asked for.
_OF_TORCH = frozenset(
    """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d pixel_shuffle pixel_unshuffle
    channel_shuffle native_channel_shuffle hardshrink prelu bilinear cosine_similarity pairwise_distance
    pdist""".split()
)


def __getattr__(name: str) -> Any:
    if name not in _OF_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(torch, name)
    return found


# What the files of the families import for themselves.
_HELPERS = frozenset(("Any", "Ints", "annotations", "eager", "registry", "row"))


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_TORCH} - _HELPERS)
