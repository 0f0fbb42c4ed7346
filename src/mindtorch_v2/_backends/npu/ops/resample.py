"""NPU lines of resampling.

Invariant: a scale that was not given is 0 to the vendor; what it does not resample is composed of the row's taps.
"""
from __future__ import annotations

from ..lines import helper, with_fallback

_SIDES = {1: ("",), 2: ("_h", "_w"), 3: ("_d", "_h", "_w")}


@helper
def factor(scale: float | None) -> float:
    return scale if scale is not None and scale > 0 else 0.0


def _serve(name: str, rank: int, forward: str, backward: str, aligned: bool) -> None:
    how = ("align_corners, " if aligned else "") + ", ".join(f"factor(scales{side})" for side in _SIDES[rank])
    with_fallback(name, f"aclnnUpsample{forward}(self, output_size, {how}, out)")
    with_fallback(f"{name}_backward", f"aclnnUpsample{backward}(grad_output, output_size, input_size, {how}, out)")


_serve("upsample_nearest1d", 1, "Nearest1dV2", "Nearest1dBackward", False)
_serve("upsample_nearest2d", 2, "Nearest2dV2", "Nearest2dBackward", False)
_serve("upsample_nearest3d", 3, "Nearest3d", "Nearest3dBackward", False)
for _rank in (1, 2, 3):
    _serve(f"_upsample_nearest_exact{_rank}d", _rank, f"NearestExact{_rank}d", f"NearestExact{_rank}dBackward", False)
_serve("upsample_linear1d", 1, "Linear1d", "Linear1dBackward", True)
_serve("upsample_bilinear2d", 2, "Bilinear2d", "Bilinear2dBackward", True)
_serve("upsample_trilinear3d", 3, "Trilinear3d", "Trilinear3dBackward", True)
_serve("upsample_bicubic2d", 2, "Bicubic2d", "Bicubic2dBackward", True)
_serve("_upsample_bilinear2d_aa", 2, "Bilinear2dAA", "Bilinear2dAABackward", True)
_serve("_upsample_bicubic2d_aa", 2, "Bicubic2dAA", "Bicubic2dAAGrad", True)
