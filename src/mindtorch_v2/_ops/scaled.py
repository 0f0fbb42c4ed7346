"""Products of float8 matrices with scales, and attention operators that PyTorch has for GPUs alone."""

from __future__ import annotations

from typing import Any, NoReturn

from .._dtype import float32, int8, int32, uint8
from .._dtype_names import cpp_name
from .table import composite

_TENSOR_WISE, _ROW_WISE = 0, 1
_C_NAMES = {uint8: "unsigned char", int32: "int"}


def _refuse(a: Any, b: Any, scale_a: Any, scale_b: Any) -> NoReturn:
    if len(a._shape) != 2 or len(b._shape) != 2:
        raise ValueError(f"mat_a and mat_b must be matrices, but got {len(a._shape)}-D and {len(b._shape)}-D")
    rows, columns = a._shape[0], b._shape[1]
    raise ValueError(
        "Invalid scaling configuration.\n"
        "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
        "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
        f"({rows}, 1) and scale_b should be (1, {columns}), and both should be contiguous.\n"
        f"Got mat_a.dtype()={a._dtype.scalar_name}, scale_a.dtype()={scale_a._dtype.scalar_name}, "
        f"scale_a.size()={list(scale_a.size())}, scale_a.stride()={list(scale_a.stride())}, "
        f"mat_b.dtype()={b._dtype.scalar_name}, scale_b.dtype()={scale_b._dtype.scalar_name}, "
        f"scale_b.size()={list(scale_b.size())} and scale_b.stride()={list(scale_b.stride())}")


def _recipe(a: Any, b: Any, scale_a: Any, scale_b: Any) -> int:
    """How the scales are meant, by their sizes."""
    small = all(t._dtype.name.startswith("float8_e") and t._dtype.itemsize == 1 for t in (a, b))
    if not small or scale_a._dtype is not float32 or scale_b._dtype is not float32:
        _refuse(a, b, scale_a, scale_b)
    if scale_a.numel() == 1 and scale_b.numel() == 1:
        return _TENSOR_WISE
    rows = tuple(scale_a._shape) == (a._shape[0], 1) and tuple(scale_b._shape) == (1, b._shape[1])
    if not rows or not scale_a.is_contiguous() or not scale_b.is_contiguous():
        _refuse(a, b, scale_a, scale_b)
    return _ROW_WISE


def _scaled_mm(
    self: Any, mat2: Any, scale_a: Any, scale_b: Any, bias: Any, scale_result: Any, out_dtype: Any, use_fast_accum: bool
) -> Any:
    """The product in float32, scaled, then the bias. PyTorch's CPU takes `scale_result` and `use_fast_accum` for GPUs,
    where alone they change something."""
    for t, name in ((self, "mat1"), (mat2, "mat2")):
        if len(t._shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if self._shape[1] != mat2._shape[0]:
        (m, k), (n, p) = self._shape, mat2._shape
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {n}x{p})")
    _recipe(self, mat2, scale_a, scale_b)
    if bias is not None and bias.numel() != mat2._shape[1]:
        raise RuntimeError(f"Bias must be size {mat2._shape[1]} but got {bias.numel()}")
    product = self.to(float32).mm(mat2.to(float32)) * scale_a.reshape(-1, 1) * scale_b.reshape(1, -1)
    if bias is not None:
        product = product + bias.to(float32)
    return product.to(self._dtype if out_dtype is None else out_dtype)


def _scaled_mm_v2(
    self: Any,
    mat2: Any,
    scale_a: Any,
    recipe_a: Any,
    swizzle_a: Any,
    scale_b: Any,
    recipe_b: Any,
    swizzle_b: Any,
    bias: Any,
    out_dtype: Any,
    contraction_dim: Any,
    use_fast_accum: bool,
) -> Any:
    """The same with lists of scales and their meanings: one for the whole, or one for each row and column."""
    if contraction_dim:
        raise NotImplementedError("_scaled_mm_v2(): argument 'contraction_dim' is not supported")
    for recipes, scales in ((recipe_a, scale_a), (recipe_b, scale_b)):
        if len(recipes) != 1 or len(scales) != 1 or recipes[0] not in (_TENSOR_WISE, _ROW_WISE):
            _refuse(self, mat2, scale_a[0], scale_b[0])
    return _scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, use_fast_accum)


composite(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    _scaled_mm,
    method=False,
)
composite(
    "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, "
    "int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], "
    "bool use_fast_accum=False) -> Tensor",
    _scaled_mm_v2,
    method=False,
)


def _int_mm(self: Any, mat2: Any) -> Any:
    """The product of bytes, in int32."""
    if len(self._shape) != 2:
        raise RuntimeError(f"int_mm_out_cpu: Expected self to be of dimension 2 but got {len(self._shape)}")
    columns = mat2.size(1)
    if len(mat2._shape) != 2:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 to be of dimension 2 but got {len(mat2._shape)}")
    if self._shape[1] != mat2._shape[0]:
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {self._shape[1]} and "
                           f"{mat2._shape[0]}")
    if self._dtype not in (int8, uint8):
        raise RuntimeError("int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got "
                           f"{_C_NAMES.get(self._dtype, cpp_name(self._dtype))}")
    if mat2._dtype is not int8:
        raise RuntimeError("int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got "
                           f"{_C_NAMES.get(mat2._dtype, cpp_name(mat2._dtype))}")
    return self.to(int32).mm(mat2.to(int32)).view(self._shape[0], columns)


composite("_int_mm(Tensor self, Tensor mat2) -> Tensor", _int_mm, method=False, out=True)


def _for_gpus(name: str) -> Any:
    def refuse(query: Any, *rest: Any) -> NoReturn:
        backend = query._device.type.upper() if query._device.type != "meta" else "Meta"
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{backend}' backend: PyTorch has it for GPUs alone; "
            "use torch.nn.functional.scaled_dot_product_attention"
        )

    return refuse


_QKV = "Tensor query, Tensor key, Tensor value"
composite(
    f"_flash_attention_forward({_QKV}, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k, "
    "float dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None, int? window_size_left=None, "
    "int? window_size_right=None, Tensor? seqused_k=None, Tensor? alibi_slopes=None, Tensor? block_table=None, "
    "int? num_splits=None) -> (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, Tensor unused, "
    "Tensor debug_attn_mask)",
    _for_gpus("_flash_attention_forward"),
    function=False,
    method=False,
)
composite(
    f"_efficient_attention_forward({_QKV}, Tensor? bias, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, "
    "int? max_seqlen_q, int? max_seqlen_k, float dropout_p, int custom_mask_type, bool compute_log_sumexp=False, "
    "*, float? scale=None, Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, Tensor logsumexp, "
    "Tensor philox_seed, Tensor philox_offset, int max_seqlen_batch_q, int max_seqlen_batch_k)",
    _for_gpus("_efficient_attention_forward"),
    function=False,
    method=False,
)
