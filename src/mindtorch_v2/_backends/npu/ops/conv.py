"""NPU lines of convolutions.

Invariant: the matrix unit has float32, float16 and bfloat16. Of other dtypes a convolution is a sum of products, one
for each place of the kernel; a transposed one is the same with its two sides exchanged.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from ...._dispatch import registry
from ...._ops.composites.conv import expand
from ..lines import helper, into, npu

Ints = tuple[int, ...]
_PAD = registry.get("constant_pad_nd")


@helper
def channels_of(bias_sizes: Any, grad_output: Any) -> tuple[int, ...]:
    """The shape of the bias, which the vendor wants to hear even where there is none."""
    return (int(grad_output._shape[1]),) if bias_sizes is None else tuple(bias_sizes)


# -- without the matrix unit ------------------------------------------------------------------------------------------
# A convolution has a wide side, which is padded, and a narrow one; the weight is (narrow channels, wide channels of a
# group, kernel). Plain convolutions go from wide to narrow, transposed ones from narrow to wide.
class _Window:
    """Which places of the wide side meet the narrow side at each place of the kernel."""

    def __init__(self, weight: Any, narrow: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
        self.kernel: Ints = tuple(weight._shape[2:])
        rank = len(self.kernel)
        self.places: Ints = tuple(narrow[2:])
        self.stride, self.dilation = expand(stride, rank, "stride"), expand(dilation, rank, "dilation")
        self.padding, self.groups = expand(padding, rank, "padding"), groups

    def padded(self, wide: Any) -> Any:
        around = [p for p in reversed(self.padding) for _ in range(2)]
        return _PAD.call((wide, tuple(around), 0)) if any(around) else wide

    def cropped(self, wide: Any, shape: Ints) -> Any:
        for d, p in enumerate(self.padding):
            wide = wide.narrow(d + 2, p, shape[d + 2])
        return wide

    def parts(self, wide: Any, weight: Any) -> Iterator[tuple[Any, Any]]:
        """For each place of the kernel: a view of the padded wide side, and a matrix for each group."""
        for at in product(*map(range, self.kernel)):
            view, matrix = wide, weight
            for d, k in enumerate(at):
                step = self.stride[d]
                reach = (self.places[d] - 1) * step + 1
                view = view.narrow(d + 2, k * self.dilation[d], reach)
                if step > 1:
                    index = (slice(None),) * (d + 2) + (slice(None, None, step),)
                    view = view[index]
                matrix = matrix.select(2, k)
            yield view, self.by_group(matrix)

    def by_group(self, matrix: Any) -> Any:
        """(narrow channels, wide channels of a group) as (group, narrow channels of it, wide channels of it)"""
        return matrix.unflatten(0, (self.groups, -1))

    def rows(self, t: Any) -> Any:
        """(batch, channels, places) as (group, batch and places, channels of the group)"""
        return t.unflatten(1, (self.groups, -1)).movedim((1, 2), (0, -1)).flatten(1, -2)

    def back(self, rows: Any, batch: int) -> Any:
        return rows.unflatten(1, (batch, *self.places)).movedim((0, -1), (1, 2)).flatten(1, 2)

    def to_narrow(self, wide: Any, weight: Any) -> Any:
        total: Any = None
        for view, matrix in self.parts(self.padded(wide), weight):
            part = self.rows(view).matmul(matrix.mT)
            total = part if total is None else total + part
        return self.back(total, wide._shape[0])

    def to_wide(self, narrow: Any, weight: Any, shape: Ints) -> Any:
        sizes = tuple(n + 2 * p for n, p in zip(shape[2:], self.padding))
        wide = narrow.new_zeros((*shape[:2], *sizes))
        rows = self.rows(narrow)
        for view, matrix in self.parts(wide, weight):
            view.add_(self.back(rows.matmul(matrix), narrow._shape[0]))
        return self.cropped(wide, shape)

    def to_weight(self, wide: Any, narrow: Any, weight: Any) -> Any:
        made = weight.new_empty(weight._shape)
        columns = self.rows(narrow).mT
        for view, matrix in self.parts(self.padded(wide), made):
            matrix.copy_(columns.matmul(self.rows(view)))
        return made


def _convolution(out: Any, input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints,
                 transposed: bool, output_padding: Ints, groups: int) -> None:
    if not input.numel() or not weight.numel():
        out.zero_()
    elif transposed:
        window = _Window(weight, input._shape, stride, padding, dilation, groups)
        out.copy_(window.to_wide(input, weight, out._shape))
    else:
        out.copy_(_Window(weight, out._shape, stride, padding, dilation, groups).to_narrow(input, weight))
    if bias is not None and out.numel():
        out.add_(bias.reshape((-1, *(1,) * (out.dim() - 2))))


def _backward(outs: Any, grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Ints, padding: Ints,
              dilation: Ints, transposed: bool, output_padding: Ints, groups: int, output_mask: Any) -> None:
    if output_mask[2]:
        outs[2].copy_(grad_output.sum([0, *range(2, grad_output.dim())], dtype=grad_output._dtype))
    if not all(t.numel() for t in (grad_output, input, weight)):
        for out in outs[:2]:
            out.zero_()
        return
    narrow = input if transposed else grad_output
    window = _Window(weight, narrow._shape, stride, padding, dilation, groups)
    w, x = (t.conj() if t._dtype.is_complex else t for t in (weight, input))
    if output_mask[0] and transposed:
        outs[0].copy_(window.to_narrow(grad_output, w))
    elif output_mask[0]:
        outs[0].copy_(window.to_wide(grad_output, w, input._shape))
    if output_mask[1]:
        wide, thin = (grad_output, x) if transposed else (x, grad_output)
        outs[1].copy_(window.to_weight(wide, thin, weight))


npu("convolution", "aclnnConvolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, "
    "groups, out, cube_of_convolution())", cast=("input", "weight", "bias"), otherwise=into(_convolution))
npu("convolution_backward", "aclnnConvolutionBackward(grad_output, input, weight, channels_of(bias_sizes, "
    "grad_output), stride, padding, dilation, transposed, output_padding, groups, output_mask, "
    "cube_of_convolution(), out0, out1, out2)", cast=("grad_output", "input", "weight"), empty=0,
    otherwise=into(_backward))
