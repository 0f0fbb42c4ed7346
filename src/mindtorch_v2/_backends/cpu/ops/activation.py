"""CPU lines of the activation functions that have native kernels.

Invariant: an activation without a line here is computed by the operators its row names.
"""
from __future__ import annotations

from .... import _native
from ...._dispatch.op import Kernel, PartsKernel
from ...._ops.activation import threshold_parts
from ..kernels.pointwise import Activation, Choice, OfFloats
from ..lines import binary, cpu, unary


def activation(code: str, *numbers: int) -> Kernel:
    """Of one tensor and the numbers at these positions."""
    return Activation(getattr(_native, code), -1, numbers)


def backward(code: str, *numbers: int, second: int = 1) -> Kernel:
    """Of a gradient and the tensor at position `second`."""
    return Activation(getattr(_native, code), second, numbers)



for _name in ("sigmoid", "tanh", "relu", "silu"):
    cpu(_name, unary(_name.upper()))
for _name in ("sigmoid_backward", "tanh_backward", "silu_backward"):
    cpu(_name, binary(_name.upper()))
cpu("threshold_backward", binary("THRESHOLD_BACKWARD", alpha=2))
cpu("threshold", OfFloats(1, activation("THRESHOLD", 1, 2), PartsKernel(threshold_parts)))
cpu("gelu", Choice(1, {"none": unary("GELU"), "tanh": unary("GELU_TANH")}))
cpu("gelu_backward", Choice(2, {"none": binary("GELU_BACKWARD"), "tanh": binary("GELU_TANH_BACKWARD")}))
cpu("leaky_relu", activation("LEAKY_RELU", 1))
cpu("leaky_relu_backward", backward("LEAKY_RELU_BACKWARD", 2))
cpu("elu", activation("ELU", 1, 2, 3))
cpu("elu_backward", Choice(4, {False: backward("ELU_BACKWARD", 1, 2, 3, second=5),
                               True: backward("ELU_BACKWARD_OF_RESULT", 1, 2, 3, second=5)}))
cpu("softplus", activation("SOFTPLUS", 1, 2))
cpu("softplus_backward", backward("SOFTPLUS_BACKWARD", 2, 3))
cpu("log_sigmoid", activation("LOG_SIGMOID"))
cpu("hardtanh_backward", backward("HARDTANH_BACKWARD", 2, 3))
cpu("_log_sigmoid_backward", backward("LOG_SIGMOID_BACKWARD"))
for _name in ("mish", "hardsigmoid", "hardswish"):
    cpu(_name, activation(_name.upper()))
    cpu(f"{_name}_backward", backward(f"{_name.upper()}_BACKWARD"))
