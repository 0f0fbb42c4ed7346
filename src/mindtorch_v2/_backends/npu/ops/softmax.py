"""NPU lines of softmax.
"""
from __future__ import annotations

from ..lines import npu, parts

npu("_softmax", "aclnnSoftmax(self, dim, out)")
npu("_log_softmax", "aclnnLogSoftmax(self, dim, out)")
npu("_softmax_backward_data", "aclnnSoftmaxBackward(grad_output, output, dim, out)", cast=("grad_output", "output"),
    otherwise=parts(lambda grad_output, output, dim, input_dtype:
                    (grad_output - (grad_output * output).sum((dim,), True)) * output))
npu("_log_softmax_backward_data", "aclnnLogSoftmaxBackward(grad_output, output, dim, out)",
    cast=("grad_output", "output"), otherwise=parts(lambda grad_output, output, dim, input_dtype:
                                                    grad_output - output.exp() * grad_output.sum((dim,), True)))
