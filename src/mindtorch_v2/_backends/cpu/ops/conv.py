"""CPU lines of convolution."""

from __future__ import annotations

from ..kernels.conv import convolution, convolution_backward
from ..lines import cpu, into

cpu("convolution", into(convolution))
cpu("convolution_backward", into(convolution_backward))
