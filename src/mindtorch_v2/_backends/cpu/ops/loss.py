"""CPU lines of losses."""
from __future__ import annotations

from .... import _native
from ...._dispatch.op import PartsKernel
from ...._ops.loss import entropy_in_parts, logits_entropy_in_parts
from ..kernels.loss import Bent, Entropy, Mse, MseBackward, Nll, NllBackward
from ..lines import cpu

cpu("binary_cross_entropy", Entropy(PartsKernel(entropy_in_parts), False))
cpu("binary_cross_entropy_with_logits", Entropy(PartsKernel(logits_entropy_in_parts), True))
cpu("nll_loss_forward", Nll())
cpu("nll_loss_backward", NllBackward())
cpu("mse_loss", Mse())
cpu("mse_loss_backward", MseBackward())
cpu("_smooth_l1_loss", Bent(_native.SMOOTH_L1, "smooth_l1_cpu"))
cpu("huber_loss", Bent(_native.HUBER, "huber_cpu"))
