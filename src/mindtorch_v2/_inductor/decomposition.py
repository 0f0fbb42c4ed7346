"""`torch._inductor.decomposition`: what PyTorch's code generator takes apart; no code is generated here."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import WHY

_offer(__name__, "select_decomp_table conv1d_to_conv2d get_decompositions fast_random_decomps", "", WHY)
