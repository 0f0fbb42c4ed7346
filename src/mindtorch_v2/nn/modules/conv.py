"""Convolution layers.

Invariant: a padding mode other than zeros pads the input first, with as much on each side as the convolution would.
"""

from __future__ import annotations

import math
from typing import Any, cast

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .._tuples import each
from ..parameter import Parameter
from .lazy import LazyModuleMixin
from .module import Module

Ints = tuple[int, ...]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    _rank = 0
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        rank = self._rank
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in each(stride, rank)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = each(kernel_size, rank)
        self.stride = each(stride, rank)
        self.padding = padding if isinstance(padding, str) else each(padding, rank)
        self.dilation = each(dilation, rank)
        self.transposed = transposed
        self.output_padding = each(output_padding, rank)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._around()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _around(self) -> list[int]:
        """Padding of both sides, last dimension first, as `functional.pad` takes it."""
        if not isinstance(self.padding, str):
            return [side for side in reversed(self.padding) for _ in range(2)]
        sides: list[int] = []
        for d in reversed(range(self._rank)):
            total = self.dilation[d] * (self.kernel_size[d] - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            False,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(torch, f"conv{self._rank}d")
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    _rank = 1


class Conv2d(_Conv):
    _rank = 2


class Conv3d(_Conv):
    _rank = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> Ints:
        """What must be added to reach an output size; one input size belongs to `stride` output sizes."""
        rank = self._rank
        if output_size is None:
            return self.output_padding
        sizes = output_size
        batched = input.dim() == rank + 2
        if len(sizes) == input.dim():
            sizes = sizes[2 if batched else 1 :]
        if len(sizes) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.dim()}D input, output_size must have {rank} or {input.dim()} "
                f"elements (got {len(sizes)})"
            )
        assert not isinstance(self.padding, str)
        extra: list[int] = []
        places = input.shape[-rank:]
        if len(places) < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-len(places)}, {len(places) - 1}], but got "
                f"{len(places)})"
            )
        if min(len(o) for o in (self.stride, self.padding, self.dilation, self.kernel_size)) < rank:
            raise IndexError(f"ConvTranspose{rank}D: stride, padding, dilation and kernel_size need {rank} elements")
        low = [
            (places[d] - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(rank)
        ]
        high = [n + s - 1 for n, s in zip(low, self.stride)]
        for d in range(rank):
            if not low[d] <= sizes[d] <= high[d]:
                raise ValueError(
                    f"requested an output size of {sizes}, but valid sizes range from {low} to {high} (for an "
                    f"input of {places})"
                )
            extra.append(sizes[d] - low[d])
        return tuple(extra)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        function = getattr(torch, f"conv_transpose{self._rank}d")
        extra = self._output_padding(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    _rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    _rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    _rank = 3


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that takes `in_channels` from its first input."""

    _rank: int
    in_channels: int
    out_channels: int
    groups: int
    transposed: bool
    kernel_size: Any

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            cast(Any, super()).reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = self.out_channels, self.in_channels // self.groups
        if self.transposed:
            channels = self.in_channels, self.out_channels // self.groups
        cast(Any, self.weight).materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            cast(Any, self.bias).materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        rank = self._get_num_spatial_dims()
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return int(input.shape[input.dim() - rank - 1])

    def _get_num_spatial_dims(self) -> int:
        return self._rank


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._declare(bias, device, dtype)
        self.out_channels = out_channels


class LazyConv1d(_LazyConv, Conv1d):
    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._declare(bias, device, dtype)
        self.out_channels = out_channels


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    cls_to_become = ConvTranspose3d
