"""NPU lines of convolutions."""
from __future__ import annotations

from typing import Any

from ..lines import helper, npu


@helper
def channels_of(bias_sizes: Any, grad_output: Any) -> tuple[int, ...]:
    """The shape of the bias, which the vendor wants to hear even where there is none."""
    return (int(grad_output._shape[1]),) if bias_sizes is None else tuple(bias_sizes)


npu("convolution", "aclnnConvolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, "
    "groups, out, cube())", cast=("input", "weight", "bias"))
npu("convolution_backward", "aclnnConvolutionBackward(grad_output, input, weight, channels_of(bias_sizes, "
    "grad_output), stride, padding, dilation, transposed, output_padding, groups, output_mask, cube(), out0, out1, "
    "out2)", cast=("grad_output", "input", "weight"), empty=0)
