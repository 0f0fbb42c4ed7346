"""Products of groups of matrices, and of matrices in eight bits with scales.

Invariant: what is refused is what PyTorch refuses on the CPU, in its words; the same holds on every device.
"""

from typing import Any

import mindtorch_v2 as torch

from ..._dispatch.binding import need_all
from ..._dispatch.schema import parse
from ..._numbered import Numbered
from ..._tensor import Tensor

__all__ = ["ScalingType", "SwizzleType", "grouped_mm", "scaled_grouped_mm", "scaled_mm"]

_GROUPED = parse(
    "_grouped_mm(Tensor input, Tensor mat2, *, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None)"
    " -> Tensor"
)
_KINDS = ("Float", "BFloat16", "Half")


class ScalingType(Numbered):
    """Which elements of a matrix share a scale."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Numbered):
    """How scales of blocks are laid out in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _check_aligned(t: Tensor) -> None:
    """One of the last two dimensions is dense, the other begins at multiples of 16 bytes."""
    rows, columns = t.stride(-2), t.stride(-1)
    align = 16 // t.element_size()
    if columns == 1 and rows >= max(1, t.size(-1)):
        step = rows
    elif rows == 1 and columns >= max(1, t.size(-2)):
        step = columns
    else:
        raise RuntimeError(f"Invalid strides/sizes, got {list(t.stride())} for strides and {list(t.shape)} for sizes")
    if step % align != 0:
        raise RuntimeError("strides should be multiple of 16 bytes")


def _check_grouped(a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Any) -> None:
    for name, t in (("mat_a", a), ("mat_b", b)):
        if t.dtype.scalar_name not in _KINDS:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {t.dtype.scalar_name}")
    for name, t in (("mat_a", a), ("mat_b", b)):
        if t.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat = a.dim() == 2 or b.dim() == 2
    if not (a.dim() == 2 and b.dim() == 2) and a.size(-1) != b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    _check_aligned(a)
    _check_aligned(b)
    if (offs is not None) != flat:
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None:
        if offs.dim() != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype != torch.int32:
            raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None and a.size(0) != b.size(0):
        raise RuntimeError("batched dimension has to match")
    if offs is not None and flat and a.dim() != b.dim():
        groups = b.size(0) if a.dim() == 2 else a.size(0)
        if offs.size(0) != groups:
            raise RuntimeError("matrix batch sizes have to match")


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """One product for each group. A matrix without a dimension for groups is cut at `offs`, which marks their ends."""
    need_all(_GROUPED, mat_a, mat_b, offs, bias, out_dtype)
    _check_grouped(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return torch.bmm(mat_a, mat_b)
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return torch.stack([mat_a[:, low:high] @ mat_b[low:high] for low, high in spans])
    along = 0 if mat_a.dim() == 2 else 1
    if along == 0:
        parts = [mat_a[low:high] @ mat_b[i] for i, (low, high) in enumerate(spans)]
        missing, other = mat_a.size(0) - (ends[-1] if ends else 0), mat_b.size(-1)
    else:
        parts = [mat_a[i] @ mat_b[:, low:high] for i, (low, high) in enumerate(spans)]
        missing, other = mat_b.size(1) - (ends[-1] if ends else 0), mat_a.size(-2)
    if missing > 0:
        # Beyond the last group; PyTorch leaves these places undefined.
        parts.append(mat_a.new_zeros((missing, other) if along == 0 else (other, missing)))
    return torch.cat(parts, dim=along)


def _only(name: str, value: Any) -> Any:
    """The one entry of what may be given as a list."""
    if isinstance(value, list):
        if len(value) != 1:
            raise ValueError(f"scaled_mm: one {name} is supported, got {len(value)}")
        return value[0]
    return value


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: Any = torch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices in eight bits, each with one scale or one for each row or column.

    Sums are made in single precision. On the CPU that is all PyTorch does too, whatever `use_fast_accum` says.
    """
    if use_fast_accum and mat_a.is_npu:
        raise NotImplementedError(
            "scaled_mm: use_fast_accum is not supported on npu, where sums are made in single precision"
        )
    first, second = _only("scale_a", scale_a), _only("scale_b", scale_b)
    recipes = _only("scale_recipe_a", scale_recipe_a), _only("scale_recipe_b", scale_recipe_b)
    for name, swizzle in (("swizzle_a", swizzle_a), ("swizzle_b", swizzle_b)):
        if swizzle is not None and _only(name, swizzle) is not SwizzleType.NO_SWIZZLE:
            raise NotImplementedError(f"scaled_mm: {name} other than NO_SWIZZLE is not supported")
    if tuple(contraction_dim) not in ((), (1, 0), (-1, -2)):
        raise NotImplementedError(f"scaled_mm: contraction_dim {contraction_dim} is not supported")
    for name, t in (("mat_a", mat_a), ("mat_b", mat_b)):
        if t.dim() != 2:
            raise ValueError(f"{name} must be a matrix")
    if mat_a.size(1) != mat_b.size(0):
        raise ValueError(
            f"mat_a and mat_b shapes cannot be multiplied ({mat_a.size(0)}x{mat_a.size(1)} and "
            f"{mat_b.size(0)}x{mat_b.size(1)})"
        )
    if bias is not None and bias.numel() != mat_b.size(1):
        raise ValueError(f"Bias must be size {mat_b.size(1)} but got {bias.numel()}")
    _check_scales(mat_a, mat_b, first, second, recipes)
    result = (mat_a.float() @ mat_b.float()) * first * second
    if bias is not None:
        result = result + bias.float()
    return result.to(mat_a.dtype if output_dtype is None else output_dtype)


def _check_scales(a: Tensor, b: Tensor, first: Tensor, second: Tensor, recipes: tuple[Any, Any]) -> None:
    small = all(t.element_size() == 1 and t.is_floating_point() for t in (a, b))
    single = first.dtype == torch.float32 and second.dtype == torch.float32
    rows, columns = a.size(0), b.size(1)
    if small and single and recipes == (ScalingType.TensorWise,) * 2:
        for name, scale in (("scale_a", first), ("scale_b", second)):
            if scale.numel() != 1:
                raise ValueError(f"{name} must have 1 Float element")
        return
    if small and single and recipes == (ScalingType.RowWise,) * 2:
        for name, scale, shape in (("scale_a", first, [rows, 1]), ("scale_b", second, [1, columns])):
            if [scale.size(0), scale.size(1)] != shape:
                raise ValueError(f"{name} must have shape {shape}, got [{list(scale.shape)}]")
        return
    said = [
        f"{name}.dtype()={t.dtype.scalar_name}, {scale}.dtype()={s.dtype.scalar_name}, {scale}.size()={list(s.shape)}"
        f"{comma} {scale}.stride()={list(s.stride())}"
        for name, t, scale, s, comma in (("mat_a", a, "scale_a", first, ","), ("mat_b", b, "scale_b", second, " and"))
    ]
    raise ValueError(
        "Invalid scaling configuration.\n"
        "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
        f"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({rows}, 1) and "
        f"scale_b should be (1, {columns}), and both should be contiguous.\n"
        f"Got {said[0]}, {said[1]}"
    )


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: Any = torch.bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """PyTorch has this on CUDA only; no device of this package does."""
    raise NotImplementedError(
        f"Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the '{mat_a.device.type.upper()}' backend: "
        "scale the matrices and use grouped_mm."
    )
