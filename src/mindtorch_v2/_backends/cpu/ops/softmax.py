"""CPU lines of softmax."""
from __future__ import annotations

from ..kernels.softmax import Softmax, SoftmaxBackward
from ..lines import cpu

cpu("_softmax", Softmax(False))
cpu("_log_softmax", Softmax(True))
cpu("_softmax_backward_data", SoftmaxBackward(False))
cpu("_log_softmax_backward_data", SoftmaxBackward(True))
