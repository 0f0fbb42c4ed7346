"""CPU lines of losses."""
from __future__ import annotations

from .... import _native
from ..kernels.loss import Bent, Mse, MseBackward, Nll, NllBackward
from ..lines import cpu

cpu("nll_loss_forward", Nll())
cpu("nll_loss_backward", NllBackward())
cpu("mse_loss", Mse())
cpu("mse_loss_backward", MseBackward())
cpu("_smooth_l1_loss", Bent(_native.SMOOTH_L1, "smooth_l1_cpu"))
cpu("huber_loss", Bent(_native.HUBER, "huber_cpu"))
