"""Functions whose usual calls come to those of one row: which row, and how their arguments stand for its own.

Invariant: what is said here of a function is what it does in Python for such calls, which serves all others.
"""

from __future__ import annotations

from math import inf
from typing import Final

from ..._api.bound import Direct

_REDUCTION: Final = {"reduction": {"none": 0, "mean": 1, "sum": 2}}
_NORM: Final = {"eps": (0.0, inf)}

DIRECT: Final = {
    # activations
    **{name: Direct(name) for name in "relu silu elu celu selu leaky_relu relu6 mish glu threshold".split()},
    **{name: Direct(name, ignored=("_stacklevel",)) for name in ("softmax", "log_softmax")},
    # The least is not above the greatest.
    "hardtanh": Direct("hardtanh", spans={"min_val": (-inf, 0.0), "max_val": (0.0, inf)}),
    # layers
    "dropout": Direct("dropout", {"train": "training"}, spans={"p": (0.0, 1.0)}),
    "layer_norm": Direct("layer_norm"),
    "rms_norm": Direct("rms_norm"),
    "batch_norm": Direct("batch_norm", constants={"training": False, "cudnn_enabled": False}, spans=_NORM),
    # Without a largest norm nobody asks which norm.
    "embedding": Direct("embedding", {"indices": "input"}, known={"padding_idx": {None: -1}}, ignored=("norm_type",)),
    "pad": Direct("pad"),
    # pooling
    **{name: Direct(name) for name in ("max_pool1d", "max_pool2d", "max_pool3d")},
    "adaptive_avg_pool2d": Direct("adaptive_avg_pool2d", copies=-2),
    "adaptive_avg_pool3d": Direct("adaptive_avg_pool3d", copies=-3),
    # images
    "unfold": Direct("im2col", copies=2),
    "fold": Direct("col2im", copies=2),
    # losses
    "nll_loss": Direct("nll_loss_nd", known=_REDUCTION),
    "cross_entropy": Direct("cross_entropy_loss", known=_REDUCTION),
    **{
        name: Direct(name, known=_REDUCTION, alike=1)
        for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()
    },
    **{
        name: Direct(name, known=_REDUCTION)
        for name in "soft_margin_loss hinge_embedding_loss cosine_embedding_loss multilabel_margin_loss".split()
    },
    "triplet_margin_loss": Direct("triplet_margin_loss", known=_REDUCTION, spans={"margin": (1e-300, inf)}),
}
