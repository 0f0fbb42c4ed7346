"""`torch._higher_order_ops.cudagraph_conditional_nodes`: branches inside graphs of CUDA; there are none."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "",
    "ControlFlowOpWarmupDispatchMode CUDAGraphCaptureControlFlowOpDispatchMode",
    "{name}: there are no graphs of CUDA here",
)
