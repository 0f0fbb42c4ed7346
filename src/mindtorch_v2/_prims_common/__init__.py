"""`torch._prims_common`: questions about shapes, strides and dtypes that other code asks here."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn, TypeAlias

import mindtorch_v2 as torch

from .dtypes import ELEMENTWISE_TYPE_PROMOTION_KIND as ELEMENTWISE_TYPE_PROMOTION_KIND
from .dtypes import REDUCTION_OUTPUT_TYPE_KIND as REDUCTION_OUTPUT_TYPE_KIND
from .dtypes import Number as Number
from .dtypes import can_safe_cast_to as can_safe_cast_to
from .dtypes import check_fp_or_complex as check_fp_or_complex
from .dtypes import check_same_dtype as check_same_dtype
from .dtypes import corresponding_complex_dtype as corresponding_complex_dtype
from .dtypes import corresponding_real_dtype as corresponding_real_dtype
from .dtypes import dtype_or_default as dtype_or_default
from .dtypes import dtype_to_type as dtype_to_type
from .dtypes import dtype_to_type_ctor as dtype_to_type_ctor
from .dtypes import elementwise_dtypes as elementwise_dtypes
from .dtypes import get_acc_type as get_acc_type
from .dtypes import get_computation_dtype as get_computation_dtype
from .dtypes import get_dtype as get_dtype
from .dtypes import get_higher_dtype as get_higher_dtype
from .dtypes import get_higher_type as get_higher_type
from .dtypes import is_boolean_dtype as is_boolean_dtype
from .dtypes import is_complex_dtype as is_complex_dtype
from .dtypes import is_float_dtype as is_float_dtype
from .dtypes import is_integer_dtype as is_integer_dtype
from .dtypes import is_low_precision_dtype as is_low_precision_dtype
from .dtypes import is_weakly_lesser_type as is_weakly_lesser_type
from .dtypes import number_type as number_type
from .dtypes import reduction_dtypes as reduction_dtypes
from .dtypes import type_to_dtype as type_to_dtype
from .shapes import apply_perm as apply_perm
from .shapes import canonicalize_device as canonicalize_device
from .shapes import canonicalize_dim as canonicalize_dim
from .shapes import canonicalize_dims as canonicalize_dims
from .shapes import check_all_strides as check_all_strides
from .shapes import check_is_matrix as check_is_matrix
from .shapes import check_same_device as check_same_device
from .shapes import check_same_shape as check_same_shape
from .shapes import check_significant_strides as check_significant_strides
from .shapes import clone_preserve_strides as clone_preserve_strides
from .shapes import compare_tensor_meta as compare_tensor_meta
from .shapes import compute_reduction_output_shape as compute_reduction_output_shape
from .shapes import device_or_default as device_or_default
from .shapes import extract_shape as extract_shape
from .shapes import extract_shape_from_varargs as extract_shape_from_varargs
from .shapes import infer_size as infer_size
from .shapes import invert_perm as invert_perm
from .shapes import is_contiguous as is_contiguous
from .shapes import is_cpu_scalar_tensor as is_cpu_scalar_tensor
from .shapes import is_expandable_to as is_expandable_to
from .shapes import is_same_shape as is_same_shape
from .shapes import is_valid_permutation as is_valid_permutation
from .shapes import make_contiguous_strides_for as make_contiguous_strides_for
from .shapes import prod as prod
from .shapes import reduction_dims as reduction_dims
from .shapes import set_correction as set_correction
from .shapes import suggest_memory_format as suggest_memory_format
from .shapes import validate_no_repeating_dims as validate_no_repeating_dims

ShapeType: TypeAlias = Any
StrideType: TypeAlias = Any
DimsType: TypeAlias = Any
DimsSequenceType: TypeAlias = Any
DeviceLikeType: TypeAlias = Any
TensorLike = torch.Tensor
TensorLikeType: TypeAlias = torch.Tensor
NumberType: TypeAlias = Any


class RETURN_TYPE(Enum):
    """What an operator gives: something new, a view, its argument, or nothing."""

    NEW = (0,)
    VIEW = (1,)
    INPLACE = (2,)
    NONE = (3,)


class CUDARngStateHelper:
    """Seed and offset of CUDA's generator; there is none."""

    @staticmethod
    def get_torch_state_as_tuple(fake_mode: object = None) -> NoReturn:
        raise RuntimeError("CUDA not available")
