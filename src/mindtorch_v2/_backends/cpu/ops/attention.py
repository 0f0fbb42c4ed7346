"""CPU lines of attention."""

from __future__ import annotations

from ...._dispatch.keys import AUTOGRAD, CPU
from ...._dispatch.op import FnKernel
from ...._ops.attention import ATTENTION
from ...recorded import Whole, recorder
from ..kernels.attention import backward, fits, forward
from ..lines import cpu

_WHOLE = Whole(ATTENTION, int(CPU), fits, forward, backward)
cpu("scaled_dot_product_attention", FnKernel(_WHOLE))
ATTENTION.kernels[int(CPU | AUTOGRAD)] = FnKernel(recorder(_WHOLE))
