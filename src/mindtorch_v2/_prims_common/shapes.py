"""Questions about shapes, strides, dimensions and devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .dtypes import Number


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Dimensions counted from the front: one, or several."""
    if isinstance(indices, Sequence):
        return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)
    return canonicalize_dim(rank, indices, wrap_scalar)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; with `row_major=False` its last two dimensions are exchanged."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(strides) > 1:
        strides[-1], strides[-2] = max(shape[-2], 1), 1
    return tuple(strides)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    return tuple(a) == tuple(b)


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a shape broadcasts to another."""
    if len(shape) > len(desired):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(desired), strict=False))


def prod(xs: Sequence[Any]) -> Any:
    """The product of numbers; of none it is 1."""
    return math.prod(xs)


def is_contiguous(a: Any, false_if_dde: bool = False) -> bool:
    return bool(a.is_contiguous())


def is_cpu_scalar_tensor(a: object) -> bool:
    """Whether something is a tensor without dimensions on the CPU."""
    return isinstance(a, torch.Tensor) and a.ndim == 0 and a.device.type == "cpu"


def is_valid_permutation(rank: int, perm: Any) -> bool:
    return isinstance(perm, Sequence) and sorted(perm) == list(range(rank))


def apply_perm(inp: Sequence[Any], perm: Any) -> Any:
    """Entries in the order of a permutation; -1 leaves a place where it is."""
    found: list[Any] = [-1] * len(inp)
    for i, x in enumerate(perm):
        found[i] = inp[i if x == -1 else x]
    return found


def invert_perm(perm: Sequence[int]) -> list[int]:
    found = [-1] * len(perm)
    for i, x in enumerate(perm):
        found[x] = i
    return found


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    if len(dims) != len(set(dims)):
        raise RuntimeError("duplicate value in the list of dims")


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions that a reduction goes over, counted from the front; None means all."""
    if dims is None:
        return tuple(range(len(shape)))
    found = tuple(canonicalize_dim(len(shape), i) for i in dims)
    validate_no_repeating_dims(found)
    return found


def compute_reduction_output_shape(shape: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for i, size in enumerate(shape) if i not in dimensions)


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """Bessel's correction from its two spellings."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if not isinstance(correction, (int, float)):
        raise ValueError("correction argument should be integer or float")
    return float(correction)


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """A shape given as numbers or as one sequence."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    if validate:
        for size in shape:
            if size < 0:
                raise AssertionError(f"Received an invalid size {size}!")
    return tuple(shape)


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """A shape with its -1 filled in."""
    known = math.prod(size for size in shape if size != -1)
    unknown = [i for i, size in enumerate(shape) if size == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if not unknown:
        if known != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return tuple(shape)
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if size == -1 else size for size in shape)


def _tensors(args: Sequence[Any], allow_cpu_scalar_tensors: bool) -> list[Any]:
    return [
        x for x in args if isinstance(x, torch.Tensor) and not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x))
    ]


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Any:
    """The shape that tensors have in common, None if they do not; without tensors that of a number."""
    shapes = [x.shape for x in _tensors(args, allow_cpu_scalar_tensors)]
    if not shapes:
        return () if any(isinstance(x, (torch.Tensor, *Number)) for x in args) else None
    return shapes[0] if all(shape == shapes[0] for shape in shapes) else None


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Refuse tensors of different shapes; numbers fit all."""
    shapes = [x.shape for x in _tensors(args, allow_cpu_scalar_tensors)]
    for shape in shapes:
        if shape != shapes[0]:
            raise RuntimeError(f"Shape {shape} is not the expected shape {shapes[0]}!")


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Refuse tensors on different devices; numbers fit all."""
    devices = [x.device for x in _tensors(args, allow_cpu_scalar_tensors)]
    for device in devices:
        if device != devices[0]:
            raise RuntimeError(f"Tensor on device {device} is not on the expected device {devices[0]}!")


def check_is_matrix(A: Any, f_name: str, arg_name: str = "A") -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{f_name}: The input tensor {arg_name} must have at least 2 dimensions.")


def canonicalize_device(device: Any) -> Any:
    return device if isinstance(device, torch.device) else torch.device(device)


def device_or_default(device: Any) -> Any:
    return device if device is not None else torch.device("cpu")


def suggest_memory_format(x: Any) -> Any:
    """The memory format that a tensor's strides show."""
    if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        return torch.channels_last
    return torch.contiguous_format


def clone_preserve_strides(x: Any) -> Any:
    """A copy with the same strides, overlaps included."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.size(), x.stride(), strict=True)) if x.numel() else 0
    memory = torch.as_strided(x, (extent,), (1,), x.storage_offset()).clone()
    return torch.as_strided(memory, x.size(), x.stride())


def compare_tensor_meta(
    a: Any,
    b: Any,
    check_sizes: bool = True,
    check_strides: bool = False,
    *,
    allow_rhs_unbacked: bool = False,
    check_conj: bool = True,
) -> None:
    """Raise unless two tensors have the same shape, dtype, device and, if asked, strides."""
    from .._subclasses.fake_tensor import MetadataMismatchError

    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, torch.Tensor):
            raise AssertionError(f"{name} must be TensorLike, got {type(x)}")
    pairs = [("Dtypes", a.dtype, b.dtype), ("Devices", a.device, b.device)]
    if check_sizes:
        pairs.insert(0, ("Shapes", a.shape, b.shape))
    for name, left, right in pairs:
        if left != right:
            raise MetadataMismatchError(f"{name} {left} and {right} are not equal!")
    if check_strides:
        for i, (size, left, right) in enumerate(zip(a.shape, a.stride(), b.stride(), strict=True)):
            if left != right and size > 1 and a.numel() > 0:
                raise MetadataMismatchError(
                    f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at {i})!"
                )
        if a.storage_offset() != b.storage_offset():
            raise MetadataMismatchError(
                f"Storage offset mismatch! Storage offsets are {a.storage_offset()} and {b.storage_offset()}!"
            )
    if check_conj and a.is_conj() != b.is_conj():
        raise RuntimeError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
    if a.is_neg() != b.is_neg():
        raise RuntimeError(f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}")


def _first_difference(a: Any, b: Any, only_cuda: bool, significant: bool) -> tuple[bool, int | None]:
    if only_cuda and a.device.type != "cuda" and b.device.type != "cuda" or a.numel() == 0:
        return True, None
    for i, (x, y) in enumerate(zip(a.stride(), b.stride(), strict=True)):
        if x != y and (not significant or a.shape[i] > 1):
            return False, i
    return True, None


def check_significant_strides(
    a: Any, b: Any, *, only_cuda: bool = True, allow_rhs_unbacked: bool = False
) -> tuple[bool, int | None]:
    """Whether the strides of dimensions with more than one element agree, and the first dimension where not. PyTorch
    compares them on CUDA devices unless told otherwise."""
    return _first_difference(a, b, only_cuda, significant=True)


def check_all_strides(a: Any, b: Any, *, only_cuda: bool = True) -> tuple[bool, int | None]:
    """Whether all strides agree, and the first dimension where not."""
    return _first_difference(a, b, only_cuda, significant=False)
