"""The functions behind the layers: PyTorch's signatures over the rows of the operator tables, one file per family.

Invariant: a function that PyTorch has in `torch` as well is that very function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import mindtorch_v2 as torch

from ..._overridable import NN_FUNCTIONS as _NN_FUNCTIONS
from ..._overrides import overridable as _overridable
from ._activations import *  # noqa: F403
from ._attention import *  # noqa: F403
from ._attention import _canonical_mask as _canonical_mask
from ._attention import _none_or_dtype as _none_or_dtype
from ._layers import *  # noqa: F403
from ._linear_loss import *  # noqa: F403
from ._losses import *  # noqa: F403
from ._margins import *  # noqa: F403
from ._pooling import *  # noqa: F403
from ._rows import function as row_function
from ._vision import *  # noqa: F403

# Functions that are those of `torch`, made when first asked for.
_OF_TORCH = frozenset("""adaptive_avg_pool1d avg_pool1d celu_ relu_ rrelu_ selu_ threshold_""".split()) | frozenset(
    """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc pixel_shuffle pixel_unshuffle
    channel_shuffle native_channel_shuffle hardshrink prelu bilinear cosine_similarity pairwise_distance
    pdist conv_tbc""".split()
)
# Functions that are an operator's, as it stands.
_OF_ROWS = frozenset("avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot softplus softshrink".split())
# Where those say they are defined, if not here: the name `torch` fills it.
_homes: dict[str, str] = {}
# Seldom used, with the modules that have them.
_LATE = {
    **dict.fromkeys("ScalingType SwizzleType grouped_mm scaled_grouped_mm scaled_mm".split(), "._grouped"),
    **dict.fromkeys(
        "BroadcastingList1 BroadcastingList2 BroadcastingList3 assert_int_or_pair boolean_dispatch".split(), "._script"
    ),
    **dict.fromkeys(
        "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic".split(),
        "...overrides",
    ),
}


def _direct(name: str, fn: Any) -> Any:
    """How calls of a function come to those of one operator, asked at its first call."""

    def form() -> Any:
        from ._direct import DIRECT

        return DIRECT[name].form(fn) if name in DIRECT else None

    return form


# Handlers see these as wholes, and not the operators behind them; the rest are operators.
for _name in _NN_FUNCTIONS:
    if _name in globals():
        globals()[_name] = _overridable(globals()[_name], _direct(_name, globals()[_name]))
        globals()[_name].__module__ = __name__  # where pickles find it


def __getattr__(name: str) -> Any:
    if name in _OF_TORCH:
        found = getattr(torch, name)
    elif name in _OF_ROWS:
        found = row_function(name)
        found.__module__ = _homes.get(name, __name__)
    elif name == "_threshold":
        # What PyTorch calls it in generated code.
        found = threshold  # noqa: F405
    elif name in _LATE:
        found = getattr(import_module(_LATE[name], __name__), name)
    elif name == "grad":
        found = import_module("..grad", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


# What the files of the families import for themselves.
_HELPERS = frozenset(
    ("Any", "Ints", "annotations", "eager", "import_module", "here", "registry", "row", "row_function")
)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_TORCH, *_OF_ROWS, *_LATE, "grad"} - _HELPERS)
