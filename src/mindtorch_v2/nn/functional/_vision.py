"""Resampling, sampling and rearranging of images.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

import math
import warnings
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .._tuples import pair as _pair
from ._pooling import adaptive_avg_pool2d, adaptive_avg_pool3d
from ._rows import here, row

_NEAREST = ("nearest", "area", "nearest-exact")
_AREA = {3: lambda *given: here("adaptive_avg_pool1d")(*given), 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}
_ROWS = {
    **{(n + 2, "nearest"): f"upsample_nearest{n}d" for n in (1, 2, 3)},
    **{(n + 2, "nearest-exact"): f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)},
    (3, "linear"): "upsample_linear1d",
    (4, "bilinear"): "upsample_bilinear2d",
    (4, "bicubic"): "upsample_bicubic2d",
    (4, "lanczos"): "upsample_lanczos2d",
    (5, "trilinear"): "upsample_trilinear3d",
}
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _is_integer(x: Any) -> bool:
    return not x.is_floating_point() if isinstance(x, Tensor) else hasattr(x, "__index__")


def _sizes(input: Tensor, size: Any, scale_factor: Any) -> tuple[list[int] | None, list[float] | None]:
    """Exactly one of the two, with a number for each dimension."""
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * dim, None
        if len(size) != dim:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {list(input.shape[2:])} and output size of {size}. "
                "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        if not all(_is_integer(x) for x in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                f"Tuple[int, int, int], but got size with types {[type(x) for x in size]}"
            )
        return list(size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * dim
    if len(scale_factor) != dim:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and "
            f"scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "scale_factor in (s1, s2, ...,sK) format."
        )
    return None, list(scale_factor)


def _check_factors(name: str, factors: list[Any]) -> None:
    """What PyTorch's operators say of factors; with sizes made from them here it is Python that complains."""
    if not all(isinstance(f, (int, float, Tensor)) for f in factors):
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, NoneType, list)")
    if not all(math.isfinite(f) for f in factors):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")


def _usual(input: Tensor, size: Any, scale_factor: Any) -> tuple[tuple[int, ...], tuple[float | None, ...]] | None:
    """The sizes and factors of a call with one of both, as Python's own numbers; None where a closer look is needed."""
    rank = input.dim() - 2
    if size is None:
        if (type(scale_factor) is not float and type(scale_factor) is not int) or not math.isfinite(scale_factor):
            return None
        return tuple([int(n * scale_factor) for n in input.shape[2:]]), (float(scale_factor),) * rank
    if scale_factor is not None:
        return None
    if type(size) is int:
        return (size,) * rank, (None,) * rank
    if type(size) is not tuple or len(size) != rank:
        return None
    for n in size:
        if type(n) is not int:
            return None
    return size, (None,) * rank


def _asked(
    input: Tensor, size: Any, scale_factor: Any, mode: Any, recompute_scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The sizes and factors of any call."""
    output_size, factors = _sizes(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    exact = recompute_scale_factor or mode == "area"
    if factors is not None:
        if not exact:
            _check_factors(f"upsample_{mode}{input.dim() - 2}d".replace("-", "_"), factors)
        output_size = [int(n * f) for n, f in zip(input.shape[2:], factors)]
    assert output_size is not None
    if factors is None or exact:
        return tuple(output_size), (None,) * len(output_size)
    return tuple(output_size), tuple(float(f) for f in factors)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    if mode in _NEAREST and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    found = None if recompute_scale_factor or mode == "area" else _usual(input, size, scale_factor)
    sizes, scales = found or _asked(input, size, scale_factor, mode, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    dim = input.dim()
    if mode == "area" and dim in _AREA:
        return _AREA[dim](input, sizes)
    if mode == "lanczos" and dim == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    name = _ROWS.get((dim, mode)) if isinstance(mode, str) else None
    if name is not None:
        if mode in _NEAREST:
            return row("resample", name).call((input, sizes, *scales))
        name = f"_{name}_aa" if antialias else name
        return row("resample", name).call((input, sizes, False if align_corners is None else align_corners, *scales))
    if dim in _AREA and isinstance(mode, str) and mode in _NEEDS:
        raise NotImplementedError(f"Got {dim}D input, but {mode} mode needs {_NEEDS[mode]}D input")
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {dim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | "
        f"nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Tensor:
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    if not isinstance(mode, str) or mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if not isinstance(padding_mode, str) or padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
        align_corners = False
    return torch.grid_sampler(
        input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], align_corners
    )


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    rank = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return torch.affine_grid_generator(theta, tuple(size), align_corners)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    return row("vision", "im2col").call((input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    return row("vision", "col2im").call(
        (input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    )
