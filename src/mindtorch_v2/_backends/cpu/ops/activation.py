"""CPU lines of the activation functions that have native kernels.

Invariant: an activation without a line here is computed by the operators its row names.
"""
from __future__ import annotations

from ..kernels.pointwise import Choice
from ..lines import binary, cpu, unary

for _name in ("sigmoid", "tanh", "relu", "silu"):
    cpu(_name, unary(_name.upper()))
for _name in ("sigmoid_backward", "tanh_backward", "silu_backward"):
    cpu(_name, binary(_name.upper()))
cpu("threshold_backward", binary("THRESHOLD_BACKWARD", alpha=2))
cpu("gelu", Choice(1, {"none": unary("GELU"), "tanh": unary("GELU_TANH")}))
cpu("gelu_backward", Choice(2, {"none": binary("GELU_BACKWARD"), "tanh": binary("GELU_TANH_BACKWARD")}))
