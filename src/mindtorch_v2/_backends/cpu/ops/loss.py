"""CPU lines of losses."""
from __future__ import annotations

from ..kernels.loss import Mse, MseBackward, Nll, NllBackward
from ..lines import cpu

cpu("nll_loss_forward", Nll())
cpu("nll_loss_backward", NllBackward())
cpu("mse_loss", Mse())
cpu("mse_loss_backward", MseBackward())
