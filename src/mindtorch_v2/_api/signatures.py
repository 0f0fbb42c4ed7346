"""What PyTorch's argument parser accepts where it has several signatures for one name.

Invariant: each signature is spelled as PyTorch 2.13.0 prints it (a test asks it again). Rows merge such signatures, so
this is needed only to word a complaint, and is loaded by the first one. A method's signatures are those of the function
without `input` and `out`; an in-place form has those of the form that makes a new result, without `out`.
"""
from __future__ import annotations

# Names, then their signatures, indented; a line indented further continues the one above. `.name` is a method that is
# no function, or has fewer signatures. One signature alone stands beside older ones that PyTorch accepts but hides.
_TABLE = """
fill
    Tensor input, Tensor value
    Tensor input, Number value
add sub
    Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None
rsub
    Tensor input, Tensor other, *, Number alpha = 1
    Tensor input, Number other, Number alpha = 1
div
    Tensor input, Tensor other, *, Tensor out = None
    Tensor input, Tensor other, *, str rounding_mode, Tensor out = None
    Tensor input, Number other, *, str rounding_mode
floor_divide true_divide multiply
    Tensor input, Tensor other, *, Tensor out = None
    Tensor input, Number other
remainder bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    Tensor input, Tensor other, *, Tensor out = None
    Number self, Tensor other
    Tensor input, Number other, *, Tensor out = None
fmod copysign eq ne lt le gt ge not_equal less less_equal greater greater_equal
    Tensor input, Tensor other, *, Tensor out = None
    Tensor input, Number other, *, Tensor out = None
divide
    Tensor input, Tensor other, *, Tensor out = None
    Tensor input, Tensor other, *, str rounding_mode, Tensor out = None
    Tensor input, Number other
    Tensor input, Number other, *, str rounding_mode
subtract
    Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None
    Tensor input, Number other, Number alpha = 1
pow float_power
    Tensor input, Tensor exponent, *, Tensor out = None
    Number self, Tensor exponent, *, Tensor out = None
    Tensor input, Number exponent, *, Tensor out = None
xlogy special_xlog1py special_xlogy special_zeta
    Tensor input, Tensor other, *, Tensor out = None
    Number self, Tensor other, *, Tensor out = None
    Tensor input, Number other, *, Tensor out = None
xlogy_
    Tensor input, Tensor other
    Tensor input, Number other
round
    Tensor input, *, Tensor out = None
    Tensor input, *, int decimals, Tensor out = None
clamp clip
    Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None
    Tensor input, Number min = None, Number max = None, *, Tensor out = None
clamp_min
    Tensor input, Tensor min, *, Tensor out = None
    Tensor input, Number min, *, Tensor out = None
clamp_max
    Tensor input, Tensor max, *, Tensor out = None
    Tensor input, Number max, *, Tensor out = None
lerp
    Tensor input, Tensor end, Tensor weight, *, Tensor out = None
    Tensor input, Tensor end, Number weight, *, Tensor out = None
addcmul addcdiv
    Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None
where
    Tensor condition
    Tensor condition, Tensor input, Tensor other, *, Tensor out = None
    Tensor condition, Number self, Tensor other
    Tensor condition, Tensor input, Number other
    Tensor condition, Number self, Number other
masked_fill
    Tensor input, Tensor mask, Tensor value
    Tensor input, Tensor mask, Number value
movedim moveaxis
    Tensor input, int source, int destination
    Tensor input, tuple of ints source, tuple of ints destination
linspace
    Tensor start, Tensor end, int steps, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Number start, Tensor end, int steps, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Tensor start, Number end, int steps, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Number start, Number end, int steps, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
logspace
    Tensor start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Number start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Tensor start, Number end, int steps, float base = 10.0, *, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    Number start, Number end, int steps, float base = 10.0, *, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
normal
    Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None
    Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None
    float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None
    float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None,
        torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False,
        bool requires_grad = False
rand
    tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    tuple of ints size, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
randint
    int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    int high, tuple of ints size, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
    int low, int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    int low, int high, tuple of ints size, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
randn
    tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None,
        torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False
    tuple of ints size, *, Tensor out = None, torch.dtype dtype = None, torch.layout layout = None,
        torch.device device = None, bool pin_memory = False, bool requires_grad = False
set_
    Tensor input
    Tensor input, torch.Storage source
    Tensor input, torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None
    Tensor input, Tensor source
    Tensor input, Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None
split
    Tensor input, int split_size, int dim = 0
    Tensor input, tuple of ints split_size, int dim = 0
narrow
    Tensor input, int dim, Tensor start, int length
    Tensor input, int dim, int start, int length
squeeze
    Tensor input
    Tensor input, int dim
    Tensor input, tuple of ints dim
tensor_split
    Tensor input, tuple of ints indices, int dim = 0
    Tensor input, Tensor tensor_indices_or_sections, int dim = 0
    Tensor input, int sections, int dim = 0
hsplit vsplit dsplit
    Tensor input, int sections
    Tensor input, tuple of ints indices
repeat_interleave
    Tensor input, Tensor repeats, int dim = None, *, int output_size = None
    Tensor repeats, *, int output_size = None
    Tensor input, int repeats, int dim = None, *, int output_size = None
sum
    Tensor input, *, torch.dtype dtype = None
    Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None
mean
    Tensor input, *, torch.dtype dtype = None, Tensor out = None
    Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None
prod
    Tensor input, *, torch.dtype dtype = None
    Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None
max min
    Tensor input, *, Tensor out = None
    Tensor input, Tensor other, *, Tensor out = None
    Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None
any all
    Tensor input, *, Tensor out = None
    Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None
    Tensor input, int dim, bool keepdim = False, *, Tensor out = None
count_nonzero
    Tensor input, int dim = None
    Tensor input, tuple of ints dim
var std
    Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None
    Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None
    Tensor input, bool unbiased = True
var_mean std_mean
    Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False
    Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False
    Tensor input, bool unbiased = True
mm bmm
    Tensor input, Tensor mat2, *, Tensor out = None
    Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None
addmm
    Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None
    Tensor input, Tensor mat1, Tensor mat2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor out
        = None
baddbmm
    Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None
    Tensor input, Tensor batch1, Tensor batch2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor
        out = None
addbmm
    Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None
addmv
    Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1, Tensor out = None
addr
    Tensor input, Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1, Tensor out = None
scatter
    Tensor input, int dim, Tensor index, Tensor src, *, Tensor out = None
    Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor out = None
    Tensor input, int dim, Tensor index, Number value, *, Tensor out = None
    Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor out = None
index_fill
    Tensor input, int dim, Tensor index, Tensor value
    Tensor input, int dim, Tensor index, Number value
sort
    Tensor input, *, bool stable, int dim = -1, bool descending = False, tuple of Tensors out = None
    Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None
argsort
    Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = None
    Tensor input, int dim = -1, bool descending = False
median nanmedian
    Tensor input
    Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None
squeeze_copy
    Tensor input, *, Tensor out = None
    Tensor input, int dim, *, Tensor out = None
    Tensor input, tuple of ints dim, *, Tensor out = None
view_copy
    Tensor input, torch.dtype dtype, *, Tensor out = None
    Tensor input, tuple of ints size, *, Tensor out = None
isin
    Tensor elements, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None
    Number element, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None
    Tensor elements, Number test_element, *, bool assume_unique = False, bool invert = False, Tensor out = None
searchsorted
    Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = False, str side = None, Tensor
        sorter = None, Tensor out = None
    Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = False, str side = None, Tensor
        sorter = None, Tensor out = None
bucketize
    Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, Tensor out = None
    Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False
histogram
    Tensor input, Tensor bins, *, Tensor weight = None, bool density = False, tuple of Tensors out = None
    Tensor input, int bins = 100, *, tuple of floats range = None, Tensor weight = None, bool density = False, tuple
        of Tensors out = None
quantile nanquantile
    Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None
    Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None
trapezoid cumulative_trapezoid
    Tensor y, Tensor x, *, int dim = -1
    Tensor y, *, Number dx = 1, int dim = -1
trapz
    Tensor y, *, float dx = 1, int dim = -1
    Tensor y, Tensor x, *, int dim = -1
_foreach_add
    tuple of Tensors self, Number scalar
    tuple of Tensors self, tuple of Scalars scalars
    tuple of Tensors self, Tensor other, *, Number alpha = 1
    tuple of Tensors self, tuple of Tensors other, *, Number alpha = 1
_foreach_sub
    tuple of Tensors self, Number scalar
    tuple of Tensors self, tuple of Scalars scalars
    tuple of Tensors self, tuple of Tensors other, *, Number alpha = 1
_foreach_mul _foreach_div
    tuple of Tensors self, tuple of Scalars scalars
    tuple of Tensors self, Tensor other
    tuple of Tensors self, tuple of Tensors other
    tuple of Tensors self, Number scalar
_foreach_pow
    Number self, tuple of Tensors exponent
    tuple of Tensors self, Number exponent
    tuple of Tensors self, tuple of Scalars exponent
    tuple of Tensors self, tuple of Tensors exponent
_foreach_pow_
    tuple of Tensors self, Number exponent
    tuple of Tensors self, tuple of Scalars exponent
    tuple of Tensors self, tuple of Tensors exponent
_foreach_maximum _foreach_clamp_min _foreach_minimum _foreach_clamp_max
    tuple of Tensors self, Number scalar
    tuple of Tensors self, tuple of Scalars scalars
    tuple of Tensors self, tuple of Tensors other
_foreach_addcmul _foreach_addcdiv
    tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, tuple of Scalars scalars
    tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, Tensor scalars
    tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, Number value = 1
_foreach_lerp
    tuple of Tensors self, tuple of Tensors tensors1, Number weight
    tuple of Tensors self, tuple of Tensors tensors1, tuple of Scalars weight
    tuple of Tensors self, tuple of Tensors tensors1, tuple of Tensors weights
conv1d conv2d conv3d
    Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints padding = 0, tuple of
        ints dilation = 1, int groups = 1
    Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, str padding = "valid", tuple of ints
        dilation = 1, int groups = 1
embedding_bag
    Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor
        per_sample_weights, bool include_last_offset, int padding_idx
    Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq = False, int mode = 0, bool sparse =
        False, Tensor per_sample_weights = None, bool include_last_offset = False
ctc_loss
    Tensor log_probs, Tensor targets, tuple of ints input_lengths, tuple of ints target_lengths, int blank = 0, int
        reduction = at::Reduction::Mean, bool zero_infinity = False
    Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank = 0, int reduction =
        at::Reduction::Mean, bool zero_infinity = False
linalg_cond
    Tensor input, Number p = None, *, Tensor out = None
    Tensor input, str p, *, Tensor out = None
linalg_matrix_norm
    Tensor input, Number ord, tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None, Tensor
        out = None
    Tensor input, str ord = "fro", tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None,
        Tensor out = None
linalg_matrix_rank
    Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None
    Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None
    Tensor input, Tensor tol, bool hermitian = False, *, Tensor out = None
    Tensor input, float tol, bool hermitian = False, *, Tensor out = None
linalg_norm
    Tensor input, Number ord = None, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None,
        Tensor out = None
    Tensor input, str ord, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None, Tensor out =
        None
linalg_pinv
    Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None
    Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None
    Tensor input, Tensor rcond, bool hermitian = False, *, Tensor out = None
    Tensor input, float rcond, bool hermitian = False, *, Tensor out = None
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w
    Tensor x, Tensor n, *, Tensor out = None
    Number x, Tensor n, *, Tensor out = None
    Tensor x, Number n, *, Tensor out = None
.view
    torch.dtype dtype
    tuple of ints size
.copy_
    Tensor other, bool non_blocking = False
.addmm
    Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1
.baddbmm
    Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1
"""


def _read() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    names: list[str] = []
    found: list[str] = []
    for line in _TABLE.splitlines():
        if line.startswith("        "):
            found[-1] += " " + line.strip()
        elif line.startswith("    "):
            found.append(line.strip())
        else:
            if found:
                names, found = [], []
            names += line.split()
            table.update(dict.fromkeys(names, found))
    return table


_SIGNATURES = _read()
# Their methods have one signature, which is the row's.
_FUNCTIONS_ONLY = ("mm", "bmm")


def _without(text: str, method: bool) -> str:
    parts = [p for p in text.split(", ") if not p.endswith(" out = None") and not (method and p == "Tensor input")]
    return ", ".join(parts[:-1] if parts and parts[-1] == "*" else parts)


def signatures(name: str, method: bool) -> list[str] | None:
    """PyTorch's signatures of a name, or None where it has one that its row's schema already says."""
    for known in ("." + name, "." + name[:-1]) if method else (name,):
        if known in _SIGNATURES:
            return _SIGNATURES[known]
    base = name if name in _SIGNATURES else name[:-1] if name.endswith("_") else ""
    if base not in _SIGNATURES or base in _FUNCTIONS_ONLY:
        return None
    found = [t for t in _SIGNATURES[base] if not method or "Tensor input" in t.split(", ")]
    return list(dict.fromkeys(_without(text, method) for text in found))
