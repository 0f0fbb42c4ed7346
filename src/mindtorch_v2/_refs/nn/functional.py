"""`torch._refs.nn.functional`: references of functions of networks."""

from __future__ import annotations

import mindtorch_v2 as torch

from .._names import finder

_NAMES = """
    alpha_dropout celu celu_ channel_shuffle dropout elu elu_ gelu glu group_norm hardshrink hardtanh
    hinge_embedding_loss huber_loss l1_loss layer_norm leaky_relu log_softmax margin_ranking_loss mish mish_
    mse_loss nll_loss pairwise_distance pdist poisson_nll_loss prelu relu relu6 selu selu_ smooth_l1_loss
    softmax softmin softplus softshrink tanhshrink threshold threshold_ triplet_margin_loss pixel_shuffle
    pixel_unshuffle hardsigmoid logsigmoid
    """

__getattr__ = finder("_refs.nn.functional", _NAMES, lambda: torch.nn.functional, lambda: torch._C._nn)
__all__ = _NAMES.split()  # noqa: PLE0605
