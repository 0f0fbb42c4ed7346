"""Samples for rows that PyTorch's table of operators does not have, and the rows that need none, with the reason.

Invariant: a row that has neither an OpInfo nor an entry here makes `test_rows_covered.py` fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._subject import IS_ORACLE, submodule

COMPILED = not IS_ORACLE and not str(submodule("_tensor_base").__file__).endswith(".py")

# Rows whose OpInfo has another name.
INFO_NAMES: dict[str, str] = {
    "index": "__getitem__",
    "nll_loss": "nn.functional.nll_loss",
    "im2col": "nn.functional.unfold",
    "segment_reduce": "_segment_reduce",
    "special_gammainc": "igamma",
    "special_gammaincc": "igammac",
}

# Functions and methods that are no rows: no schema can say what they take.
WRITTEN_BY_HAND: tuple[str, ...] = tuple(
    """H T mT __radd__ __rand__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rxor__
    atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_shapes broadcast_tensors byte cdouble cfloat char double
    einsum float half int item long lu meshgrid short stft to unique
    block_diag cartesian_prod gradient unravel_index resize_ resize_as_ signal.windows.bartlett
    signal.windows.blackman signal.windows.cosine signal.windows.exponential signal.windows.gaussian
    signal.windows.general_cosine signal.windows.general_hamming signal.windows.hamming signal.windows.hann
    signal.windows.kaiser signal.windows.nuttall unique_consecutive zero_ istft
    masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax
    masked.logaddexp masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax
    masked.softmin masked.std masked.sum masked.var
    """.split()
)

# Functions of `torch.nn.functional` that are no rows but have an OpInfo.
FUNCTIONS: tuple[str, ...] = tuple(
    """max_unpool1d local_response_norm normalize interpolate upsample_nearest upsample_bilinear grid_sample tanhshrink
    softsign softmin dropout2d dropout3d gaussian_nll_loss multilabel_soft_margin_loss
    triplet_margin_with_distance_loss linear_cross_entropy fractional_max_pool2d fractional_max_pool3d
    multi_head_attention_forward""".split()
)

# OpInfos that cannot be asked here, with the reason.
SKIPPED_INFOS: dict[str, str] = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "max_pool2d_with_indices_backward": "asks torch.ops.aten; the second derivatives of max_pool2d run it",
    "slice": "an operator without a public name; indexing reaches it",
}

SKIPPED_VARIANTS: dict[tuple[str, str], str] = {}
UNSUPPORTED: dict[tuple[str, str], str] = {
    ("complex", "float16"): "complex32 is no dtype here",
    ("view_as_complex", "float16"): "complex32 is no dtype here",
    ("matrix_exp", "float16"): "PyTorch overflows on the way",
    ("matrix_exp", "bfloat16"): "PyTorch overflows on the way",
    ("linalg.eig", "complex64"): "the order of eigenvalues is free",
    ("linalg.tensorsolve", "float32"): "the sample is too ill-conditioned for float32",
    ("special.bessel_j0", "float64"): "PyTorch errs by 3e-7 around 5",
    ("special.bessel_j1", "float64"): "PyTorch errs by 3e-7 around 5",
    ("special.bessel_y1", "float64"): "PyTorch errs by 6e-7 around 5",
}

# Places of equal elements may be any; their values are compared.
TIES = frozenset("sort argsort msort topk kthvalue mode median nanmedian cummax cummin".split())

# Results of a random generator: shapes and dtypes are compared, values are not.
RANDOM_ROWS = frozenset(
    "rand randn randint rand_like randn_like randint_like randperm normal bernoulli multinomial dropout uniform "
    "exponential cauchy geometric log_normal alpha_dropout feature_dropout feature_alpha_dropout dropout2d dropout3d "
    "rrelu poisson binomial".split()
)

Sample = Callable[[Any], Any]


def aten(t: Any, name: str, *given: Any) -> Any:
    """The operator itself, without the public function around it, in either library."""
    if t.__name__ == "torch":
        base, _, overload = name.partition(".")
        operator = getattr(t.ops.aten, base)
        return (getattr(operator, overload) if overload else operator)(*given)
    row = submodule("_dispatch.registry").get(name)
    rest = [argument.default for argument in row.schema.args[len(given) :]]
    return row.call((*given, *rest))


def aten_out(t: Any, name: str, word: str, *given: Any) -> Any:
    """The out= form of an operator; the last argument is what it writes to, and `word` what PyTorch calls that."""
    if t.__name__ == "torch":
        *plain, out = given
        overload = getattr(getattr(t.ops.aten, name), word)
        return overload(*plain, **{word: out})
    return submodule("_dispatch.registry").get(f"{name}.out").call(given)


def drawn(t: Any, name: str, *given: Any) -> Any:
    """The functional form of what draws random numbers in place; not their values."""
    made = aten(t, name, *given)
    return made.dtype, tuple(made.shape), made.stride()


def regular(t: Any) -> Any:
    """A matrix of full rank."""
    return t.tensor([[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, -1.0, 1.5]])


def no_elements(t: Any) -> Any:
    return t.empty(0)


def x(t: Any) -> Any:
    return t.tensor([[-2.0, -0.5, 0.0], [0.5, 3.0, 1.5]])


def y(t: Any) -> Any:
    return t.tensor([[0.25, 0.5, 0.75], [0.125, 1.0, 0.0]])


def i(t: Any) -> Any:
    return t.tensor([1, 2, 40])


def image(t: Any) -> Any:
    return t.arange(24.0).view(2, 3, 2, 2).log_softmax(1)


def picture(t: Any) -> Any:
    return (t.arange(70.0) * 7 % 11).view(1, 2, 5, 7)


# What processes exchange for batch normalization runs on accelerators; npu/test_sync_norm_npu.py has the values.
SYNCHRONISED = """batch_norm_stats batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
batch_norm_backward_reduce batch_norm_backward_elemt""".split()


def synchronised(t: Any, name: str) -> Any:
    """The call of an operator of `SYNCHRONISED`, or the name of its complaint."""
    x, one, rows = picture(t), t.ones(2), t.ones(3, 2)
    args: dict[str, tuple[Any, ...]] = {
        "batch_norm_stats": (x, 1e-5),
        "batch_norm_elemt": (x, one, one, one, one, 1e-5),
        "batch_norm_gather_stats": (x, rows, rows, one, one, 0.1, 1e-5, 4),
        "batch_norm_gather_stats_with_counts": (x, rows, rows, one, one, 0.1, 1e-5, t.ones(3)),
        "batch_norm_backward_reduce": (x, x, one, one, one, True, True, True),
        "batch_norm_backward_elemt": (x, x, one, one, one, one, one, t.ones(2)),
    }
    try:
        return getattr(t, name)(*args[name])
    except NotImplementedError as error:
        return str(error)[:80]


def labels(t: Any) -> Any:
    return t.tensor([[[0, 1], [2, 0]], [[1, 1], [2, 2]]])


def gradient(function: Callable[[Any], Any], at: Any) -> Any:
    at = at.detach().requires_grad_()
    function(at).sum().backward()
    return at.grad


def resized(t: Any, mode: str) -> Any:
    """Resampling with a filter against aliases, and its derivative."""
    shrink = t.nn.functional.interpolate
    return gradient(lambda p: shrink(p, size=(2, 2), mode=mode, antialias=True) ** 2, t.arange(32.0).view(1, 2, 4, 4))


def gradient_of_pad(t: Any, mode: str) -> Any:
    return gradient(lambda p: t.nn.functional.pad(p, (1, 1, 1, 1, 1, 1), mode) ** 2, t.arange(16.0).view(1, 2, 2, 2, 2))


def scaled(t: Any, name: str, rank: int, align: tuple[bool, ...]) -> Any:
    """Resampling by factors instead of sizes."""
    return aten(t, f"{name}.vec", t.arange(3.0**rank * 2).view(1, 2, *[3] * rank) ** 2, None, *align, (2.0,) * rank)


def without_statistics(t: Any) -> Any:
    """The out= form of batch normalization without running statistics."""
    given = (picture(t), None, None, True, 0.1, 1e-5)
    outs = [t.empty(0) for _ in range(3)]
    if t.__name__ == "torch":
        words = dict(zip(("out", "save_mean", "save_invstd"), outs))
        return t.ops.aten._native_batch_norm_legit.no_stats_out(*given, **words)
    return submodule("_dispatch.registry").get("_native_batch_norm_legit.no_stats_out").call((*given, *outs))


def recurrent(t: Any, name: str, packed: bool) -> Any:
    """Two steps of a recurrent network in both directions, from two inputs to one unit."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    weight = y(t)[0].repeat(4)[:gates].unsqueeze(1)
    params = [weight.repeat(1, 2), weight, weight[:, 0], -weight[:, 0]] * 2
    given = t.arange(8.0).sin().view(2, 2, 2)
    state = t.ones(2, 2, 1) / 2
    hx = [state, state] if name == "lstm" else state
    batch = (given.flatten(0, 1), t.tensor([2, 1, 1], device="cpu")) if packed else (given,)
    return getattr(t, name)(*batch, hx, params, True, 1, 0.0, False, True, *([] if packed else [True]))


def recurrent_cell(t: Any, name: str) -> Any:
    """One step, from three inputs to one unit."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    weight = x(t).repeat(2, 1)[:gates]
    state = y(t)[:, :1]
    return getattr(t, f"{name}_cell")(y(t), [state, state] if name == "lstm" else state, weight, weight[:, 1:2])


# Row name to calls that run in either library and give something to compare.
SAMPLES: dict[str, list[Sample]] = {
    **{
        name: [lambda t, name=name, packed=packed: recurrent(t, name, packed) for packed in (False, True)]
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    **{
        f"{name}_cell": [lambda t, name=name: recurrent_cell(t, name)]
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "pad_sequence": [lambda t: aten(t, "pad_sequence", [x(t), y(t)[:1]])],
    "empty": [lambda t: tuple(t.empty(2, 3).shape), lambda t: t.empty((2, 3), dtype=t.int32).dtype],
    "empty_strided": [lambda t: t.empty_strided((2, 3), (1, 2)).stride()],
    "empty_like": [lambda t: t.empty_like(t.ones(2, 3).t()).stride()],
    "new_empty": [lambda t: tuple(x(t).new_empty((4, 2)).shape)],
    "new_empty_strided": [lambda t: x(t).new_empty_strided((2, 3), (1, 2)).stride()],
    "rand": [lambda t: tuple(t.rand(2, 3).shape)],
    "randn": [lambda t: tuple(t.randn(2, 3).shape)],
    "randint": [lambda t: tuple(t.randint(3, (2, 3)).shape)],
    "randperm": [lambda t: sorted(t.randperm(9).tolist())],
    "poisson": [lambda t: (t.manual_seed(3), t.poisson(t.tensor([[0.0, 0.5, 7.0], [12.0, 100.0, 10.0]])))[1]],
    "binomial": [
        lambda t: (t.manual_seed(3), t.binomial(t.tensor([[0.0], [9.0], [70.0]]), t.tensor([0.2, 0.5, 0.9, 1.0])))[1]
    ],
    **{name: [lambda t, name=name: synchronised(t, name)] for name in SYNCHRONISED},
    "batch_norm_update_stats": [
        lambda t: t.batch_norm_update_stats(picture(t), None, None, 0.1),
        lambda t: (lambda m, v: (*t.batch_norm_update_stats(picture(t), m, v, 0.3), m, v))(t.zeros(2), t.ones(2)),
    ],
    "conv_tbc": [lambda t: t.conv_tbc(t.arange(30.0).view(5, 2, 3), t.ones(2, 3, 4), t.arange(4.0), 1)],
    "fill_diagonal_": [lambda t: t.zeros(7, 3).fill_diagonal_(5, True), lambda t: t.zeros(2, 2).fill_diagonal_(1)],
    "frobenius_norm": [
        lambda t: t.frobenius_norm(x(t), 1),
        lambda t: t.frobenius_norm(x(t), (0, 1), True),
        lambda t: t.frobenius_norm(x(t), 1, out=t.empty(0)),
    ],
    "nuclear_norm": [
        lambda t: t.nuclear_norm(x(t)),
        lambda t: t.nuclear_norm(x(t), (0, 1), True),
        lambda t: t.nuclear_norm(x(t), out=t.empty(0)),
        lambda t: t.nuclear_norm(x(t), (0, 1), out=t.empty(0)),
    ],
    "slice_inverse": [lambda t: (lambda a: a[1:].slice_inverse(a, 0, 1))(t.arange(12.0).view(3, 4))],
    "vander": [lambda t: t.vander(t.arange(4.0), 3), lambda t: t.vander(t.arange(4), 3, True)],
    "_batch_norm_with_update": [
        lambda t: aten(t, "_batch_norm_with_update", picture(t), None, None, t.zeros(2), t.ones(2), 0.1, 1e-5)[:3]
    ],
    "_native_batch_norm_legit": [
        lambda t: aten(t, "_native_batch_norm_legit.no_stats", picture(t), None, None, True, 0.1, 1e-5),
        without_statistics,
    ],
    **{
        f"_upsample_{mode}": [lambda t, mode=mode, rank=rank, align=align: scaled(t, f"_upsample_{mode}", rank, align)]
        for mode, rank, align in (
            ("nearest_exact1d", 1, ()),
            ("nearest_exact2d", 2, ()),
            ("nearest_exact3d", 3, ()),
            ("bilinear2d_aa", 2, (False,)),
            ("bicubic2d_aa", 2, (False,)),
            ("lanczos2d_aa", 2, (False,)),
        )
    },
    "_upsample_lanczos2d_aa_backward": [
        lambda t: aten(t, "_upsample_lanczos2d_aa_backward", t.ones(1, 1, 2, 2), [2, 2], [1, 1, 4, 4], False)
    ],
    "norm_except_dim": [
        lambda t: [t.norm_except_dim(picture(t), p, dim) for p in (1, 2) for dim in (-1, 0, 1, 2, 3)],
        lambda t: gradient(lambda at: t.norm_except_dim(at, 2, 1) * x(t)[0], picture(t)[0, 0, :, :3] + 1),
    ],
    "_weight_norm_interface": [
        lambda t: [t._weight_norm_interface(x(t).to(d), y(t)[:, :1].to(d), 0) for d in (t.float64, t.bfloat16)],
        lambda t: [t._weight_norm(x(t), y(t)[:1], 1), t._weight_norm(picture(t), y(t)[0, 0], 2)],
        lambda t: gradient(lambda at: t._weight_norm(at, y(t)[:, :1], 0) * y(t), x(t)),
        lambda t: gradient(lambda at: t._weight_norm(x(t), at, 1) * y(t), y(t)[:1]),
    ],
    "_safe_softmax": [
        lambda t: aten(t, "_safe_softmax", t.tensor([[1.0, float("-inf")], [float("-inf"), float("-inf")]]), 1),
        lambda t: gradient(lambda at: aten(t, "_safe_softmax", at, 0) * x(t), y(t)),
    ],
    "native_dropout": [lambda t: t.native_dropout(x(t), 0.0, True)],
    "copy": [lambda t: t.zeros(2, 3).copy_(t.arange(3)), lambda t: aten(t, "copy", t.zeros(2, 3), t.arange(3))],
    "to_copy": [lambda t: x(t).to(t.float64), lambda t: x(t).to(t.int8)],
    "zero": [lambda t: aten(t, "zero", x(t))],
    "alias": [lambda t: aten(t, "alias", x(t).t())],
    "slice": [lambda t: x(t)[:, 1:], lambda t: x(t)[::2]],
    "relu": [lambda t: t.relu(x(t)), lambda t: t.tensor([-1, 2]).relu()],
    "dropout_": [lambda t: t.dropout_(t.ones(3), 0.5, False), lambda t: t.dropout_(t.ones(2, 3), 1.0, True)],
    "detach": [lambda t: x(t).requires_grad_().detach()],
    "index": [lambda t: t.arange(6).view(2, 3)[t.tensor([0, 1]), 1:]],
    "is_conj": [lambda t: t.is_conj(x(t))],
    "is_neg": [lambda t: t.is_neg(x(t))],
    "lshift": [lambda t: i(t) << 2, lambda t: 1 << t.tensor([1, 2])],
    "rshift": [lambda t: i(t) >> 1],
    "conj_physical_": [lambda t: t.tensor([1 + 2j]).conj_physical_(), lambda t: x(t).conj_physical_()],
    "float_power_": [lambda t: y(t).double().float_power_(2)],
    "linalg_vector_norm": [
        lambda t: aten(t, "linalg_vector_norm", x(t)),
        lambda t: aten(t, "linalg_vector_norm", x(t), 1),
    ],
    "nll_loss2d": [lambda t: aten(t, "nll_loss2d", image(t), labels(t))],
    "nll_loss_nd": [lambda t: aten(t, "nll_loss_nd", image(t), labels(t))],
    "cross_entropy_loss": [lambda t: aten(t, "cross_entropy_loss", image(t), labels(t))],
    "one_hot": [lambda t: aten(t, "one_hot", labels(t), 4)],
    "rms_norm": [lambda t: aten(t, "rms_norm", x(t), (3,))],
    "embedding_renorm": [lambda t: aten(t, "embedding_renorm", x(t), t.tensor([1]), 1.0, 2.0)],
    "kl_div": [lambda t: aten(t, "kl_div", x(t), y(t), 1)],
    "binary_cross_entropy": [lambda t: aten(t, "binary_cross_entropy", y(t), y(t).flip(0))],
    "binary_cross_entropy_with_logits": [
        lambda t: aten(t, "binary_cross_entropy_with_logits", x(t), y(t), None, None, 1)
    ],
    **{name: [lambda t, name=name: aten(t, name, x(t), y(t))] for name in "l1_loss smooth_l1_loss huber_loss".split()},
    **{
        name: [lambda t, name=name: aten(t, name, x(t))]
        for name in (
            "celu elu selu hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish softplus relu6 relu6_ selu_"
        ).split()
    },
    "select_copy": [lambda t: t.select_copy(x(t), 1, 2)],
    "slice_copy": [lambda t: t.slice_copy(x(t), 1, 1, 3)],
    "detach_copy": [lambda t: t.detach_copy(x(t).t())],
    "split_copy": [lambda t: t.split_copy(x(t), 1)],
    "unsafe_split_with_sizes": [lambda t: t.unsafe_split_with_sizes(x(t), (1, 2), 1)],
    "view_as_real_copy": [lambda t: t.view_as_real_copy(t.tensor([1 + 2j]))],
    "view_as_complex_copy": [lambda t: t.view_as_complex_copy(t.tensor([[1.0, 2.0]]))],
    "unique_dim": [lambda t: aten(t, "unique_dim", t.tensor([[1, 2], [0, 3], [1, 2]]), 0, True, True, True)],
    "threshold": [lambda t: aten(t, "threshold", x(t), 0.75, -3.0)],
    # Overloads that PyTorch's samples do not lead to.
    "isin": [
        lambda t: t.isin(i(t), 1),
        lambda t: t.isin(2, i(t)),
        lambda t: t.isin(i(t), 1, out=t.empty(0, dtype=t.bool)),
        lambda t: t.isin(2, i(t), out=t.empty((), dtype=t.bool)),
    ],
    "moveaxis": [lambda t: t.moveaxis(x(t), 0, 1)],
    "scatter": [
        lambda t: x(t).scatter(0, t.tensor([[0, 1, 0]]), 2.0, reduce="add"),
        lambda t: x(t).scatter_(0, t.tensor([[0, 1, 0]]), 2.0, reduce="multiply"),
        lambda t: t.scatter(x(t), 0, t.tensor([[0, 1, 0]]), 2.0, reduce="add", out=no_elements(t)),
    ],
    "squeeze_copy": [lambda t: t.squeeze_copy(x(t).view(1, 6, 1), (0, 2))],
    "view": [lambda t: x(t).view(t.int32)],
    "view_copy": [lambda t: t.view_copy(x(t), t.int32)],
    "where": [lambda t: t.where(x(t) > 0)],
    "slogdet": [lambda t: t.slogdet(regular(t)), lambda t: t.slogdet(regular(t), out=(no_elements(t), no_elements(t)))],
    "linalg_cond": [
        lambda t: t.linalg.cond(regular(t), "fro"),
        lambda t: t.linalg.cond(regular(t), "fro", out=no_elements(t)),
    ],
    "linalg_matrix_rank": [
        lambda t: t.linalg.matrix_rank(regular(t), 1.0),
        lambda t: t.linalg.matrix_rank(regular(t), 1.0, out=t.empty(0, dtype=t.int64)),
        lambda t: t.linalg.matrix_rank(regular(t)[None], t.tensor([1.0])),
        lambda t: t.linalg.matrix_rank(regular(t)[None], t.tensor([1.0]), out=t.empty(0, dtype=t.int64)),
    ],
    "linalg_norm": [
        lambda t: t.linalg.norm(regular(t), "fro"),
        lambda t: t.linalg.norm(regular(t), "nuc", out=no_elements(t)),
    ],
    "linalg_pinv": [
        lambda t: t.linalg.pinv(regular(t), 0.1),
        lambda t: t.linalg.pinv(regular(t), 0.1, out=no_elements(t)),
        lambda t: t.linalg.pinv(regular(t)[None], t.tensor([0.1])),
        lambda t: t.linalg.pinv(regular(t)[None], t.tensor([0.1]), out=no_elements(t)),
    ],
    **{
        name: [lambda t, name=name: getattr(t, name)(x(t), t.tensor([0.25, 0.5]), 1, out=no_elements(t))]
        for name in ("quantile", "nanquantile")
    },
    **{
        name: [lambda t, name=name: getattr(t, name)(x(t), (0,), True, True, out=no_elements(t))]
        for name in ("std", "var")
    },
    # Conjugates of PyTorch's, which forgets to conjugate what it writes.
    **{
        f"fft_{name}": [lambda t, name=name: getattr(t.fft, name)(x(t), out=t.empty(0, dtype=t.complex64)).abs()]
        for name in ("ihfft2", "ihfftn")
    },
    "adaptive_avg_pool2d": [lambda t: aten_out(t, "adaptive_avg_pool2d", "out", picture(t), (2, 3), no_elements(t))],
    "adaptive_avg_pool3d": [lambda t: aten_out(t, "adaptive_avg_pool3d", "out", picture(t), (1, 2, 3), no_elements(t))],
    "max_pool2d_with_indices_backward": [
        lambda t: aten_out(
            t,
            "max_pool2d_with_indices_backward",
            "grad_input",
            t.ones(1, 2, 2, 3),
            picture(t),
            (2, 2),
            (2, 2),
            (0, 0),
            (1, 1),
            False,
            t.nn.functional.max_pool2d(picture(t), 2, return_indices=True)[1],
            no_elements(t),
        )
    ],
    "conj_physical": [
        lambda t: t.conj_physical(t.tensor([1 + 2j])),
        lambda t: t.conj_physical(t.tensor([1 + 2j]), out=t.empty(0, dtype=t.complex64)),
    ],
    "native_dropout_backward": [lambda t: aten(t, "native_dropout_backward", x(t), x(t) > 0, 2.0)],
    "value_selecting_reduction_backward": [
        lambda t: aten(t, "value_selecting_reduction_backward", t.ones(2), 1, t.tensor([2, 0]), (2, 3), False)
    ],
    **{name: [lambda t, name=name: drawn(t, name, x(t))] for name in "cauchy exponential log_normal uniform".split()},
    "random": [lambda t: tuple(x(t).random_().shape), lambda t: drawn(t, "random", x(t))],
    "histogramdd": [lambda t: t.histogramdd(y(t), 3)],
    "geometric": [lambda t: drawn(t, "geometric", x(t), 0.5)],
    "repeat_interleave": [lambda t: t.repeat_interleave(t.tensor([1, 0, 2]))],
    "polygamma": [lambda t: (y(t) + 1).polygamma(1)],
    "bernoulli": [lambda t: t.bernoulli(y(t).round()), lambda t: aten(t, "bernoulli.Tensor", x(t), y(t).round())],
    "chain_matmul": [
        lambda t: t.chain_matmul(x(t), x(t).t(), x(t)),
        lambda t: t.chain_matmul(x(t), x(t).t(), x(t), out=no_elements(t)),
    ],
    "rand_like": [lambda t: tuple(t.rand_like(x(t)).shape)],
    "nll_loss": [lambda t: aten(t, "nll_loss", x(t), t.tensor([0, 2]))],
    "embedding_bag": [lambda t: t.embedding_bag(x(t), t.tensor([0, 1]), t.tensor([0, 1]))[0]],
    "interpolate": [lambda t: resized(t, "bilinear"), lambda t: resized(t, "bicubic")],
    "pad": [lambda t: gradient_of_pad(t, "reflect"), lambda t: gradient_of_pad(t, "replicate")],
    "nll_loss2d_backward": [lambda t: gradient(lambda p: aten(t, "nll_loss_nd", p, labels(t)), image(t))],
    "convolution": [
        lambda t: aten(t, "convolution", picture(t), t.ones(4, 1, 3, 3), None, (2, 1), (1, 0), (1, 1), False, (0, 0), 2)
    ],
    "affine_grid_generator": [
        lambda t, align=align: t.affine_grid_generator(t.arange(12.0).view(2, 2, 3), (2, 1, 3, 4), align)
        for align in (True, False)
    ],
    "grid_sampler": [
        lambda t, mode=mode: t.grid_sampler(picture(t), t.linspace(-1.2, 1.2, 12).view(1, 2, 3, 2), mode, 1, False)
        for mode in (0, 1, 2)
    ],
    "col2im": [lambda t: aten(t, "col2im", t.arange(72.0).view(1, 8, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))],
    "native_channel_shuffle": [lambda t: t.native_channel_shuffle(t.arange(24.0).view(1, 4, 3, 2), 2)],
    "alpha_dropout_": [lambda t: t.alpha_dropout_(x(t), 0.5, False)],
    "feature_alpha_dropout_": [lambda t: t.feature_alpha_dropout_(x(t), 1.0, True)],
    "feature_dropout": [lambda t: t.feature_dropout(x(t), 1.0, True)],
    "feature_dropout_": [lambda t: t.feature_dropout_(x(t), 0.5, False)],
    "rrelu_": [lambda t: t.rrelu_(x(t), 0.25, 0.5, False)],
    "max_pool1d_with_indices": [lambda t: aten(t, "max_pool1d_with_indices", picture(t)[0], (2,))],
    "max_pool2d_with_indices": [lambda t: aten(t, "max_pool2d_with_indices", picture(t), (2, 3), (1, 2), (1, 1))],
    "max_pool3d_with_indices": [lambda t: aten(t, "max_pool3d_with_indices", picture(t), (2, 2, 2))],
    **{
        f"{kind}_pad{rank}d": [
            lambda t, name=f"{kind}_pad{rank}d", rank=rank: aten(
                t, name, t.arange(2.0 * 3**rank).view(2, *[3] * rank), (1, 2, 1, 0, 0, 2)[: 2 * rank]
            )
        ]
        for kind in ("reflection", "replication")
        for rank in (1, 2, 3)
    },
    **{
        f"upsample_{mode}": [
            lambda t, mode=mode, rank=rank, align=align: aten(
                t, f"upsample_{mode}", t.arange(3.0**rank * 2).view(1, 2, *[3] * rank) ** 2, (5,) * rank, *align
            ),
            lambda t, mode=mode, rank=rank, align=align: scaled(t, f"upsample_{mode}", rank, align),
        ]
        for mode, rank, align in (
            ("nearest1d", 1, ()),
            ("nearest2d", 2, ()),
            ("nearest3d", 3, ()),
            ("linear1d", 1, (False,)),
            ("bilinear2d", 2, (True,)),
            ("bicubic2d", 2, (False,)),
            ("trilinear3d", 3, (False,)),
        )
    },
}

# Rows in which rounding is magnified, so that two good results differ: how much farther than PyTorch's from the precise
# result ours may be. Attention takes exponentials of scores near 100, whose last bit is 8e-6: each errs by as much.
# Convolutions add a hundred products in another order: the worst of some thousand results differs by chance.
SENSITIVE: dict[str, float] = {
    "scaled_dot_product_attention": 2.0,
    "multi_head_attention_forward": 3.0,
    "conv_transpose3d": 1.5,
}

# Rows that need no samples of their own, with the reason.
REASONS: dict[str, str] = dict.fromkeys(
    """cudnn_is_acceptable dim is_contiguous is_non_overlapping_and_dense is_same_size is_strides_like_format
    numel resize_ set_ size storage_offset stride sym_is_contiguous sym_numel sym_size sym_storage_offset
    sym_stride""".split(),
    "asks or changes the tensor's geometry: `rows/test_private.py`",
)
# Tables whose rows are compared with PyTorch, or shown to refuse as it does, by `rows/test_inner.py`.
INNER_TABLES = frozenset(
    {"elsewhere", "fake_quantize", "inner", "inner_backward", "inner_forward", "inner_layers", "probes"}
)


def of_inner_tables(row: str) -> bool:
    found = submodule("_dispatch.registry").overloads(row)
    return bool(found) and all(o.row.family in INNER_TABLES for o in found)


def internal(row: str) -> bool:
    """Rows that users do not call: halves of an operator, and derivatives, which the gradient tests run."""
    return row.startswith("_") or row.endswith(("_backward", "_forward", "_backward_data"))


# Operators, by the label of their OpInfo, whose results have a node of another name than PyTorch's, with the reason.
OTHER_NODE_NAMES: dict[str, str] = {
    **dict.fromkeys(
        """_unsafe_masked_index _unsafe_masked_index_put_accumulate block_diag cdist cholesky linalg.lu linalg.multi_dot
        nn.functional.ctc_loss nn.functional.embedding_bag nn.functional.multi_margin_loss
        nn.functional.multilabel_margin_loss
        nn.functional.pairwise_distance nn.functional.pdist grid_sampler_2d grid_sampler_3d
        nn.functional.grid_sample nn.functional.scaled_dot_product_attention triangular_solve""".split(),
        "PyTorch differentiates it as a whole; here it is made of other operators, and its node is the last one's",
    ),
    "_native_batch_norm_legit": "the node of `native_batch_norm`, which it is",
    # A method of a compiled class called by its name goes through CPython's slot, which serves both sides.
    **({"__rsub__": "`a.__rsub__(b)` of tensors is `b - a`"} if COMPILED else {}),
    **dict.fromkeys(
        """special.ndtr trapezoid trapz cumulative_trapezoid nn.functional.linear_cross_entropy
        nn.functional.linear_cross_entropy-chunked""".split(),
        "PyTorch multiplies or divides by a number of C++, which has a node of its own; numbers here are Python's",
    ),
    "combinations": "PyTorch selects with masks and stacks; here one index gathers",
    "nn.functional.pad-circular": "slices are joined, where PyTorch copies them into an empty tensor",
}

# Finite differences say nothing: the derivative jumps at PyTorch's sample points, or those hold float32, or its wrapper
# takes only its own tensors.
NOT_SMOOTH = frozenset(
    "floor ceil round trunc fix sign sgn remainder fmod floor_divide heaviside frac "
    "bfloat16 half float cfloat cov cholesky_inverse __rpow__".split()
)

# The same for one variant of an OpInfo.
NOT_SMOOTH_VARIANTS = frozenset({("linalg.norm", "subgradients_at_zero")})

# Gradients that differ from PyTorch's, with the reason.
OTHER_GRADIENTS: dict[str, str] = {
    "linalg_eig": "eigenvectors are free up to a factor; PyTorch refuses losses that depend on it",
    "linalg_eigh": "eigenvectors are free up to their sign",
    "linalg_svd": "singular vectors are free up to their sign",
    "svd": "singular vectors are free up to their sign",
    "as_strided_scatter": "PyTorch keeps the gradient where src was written and drops the rest; gradcheck refuses that",
}

# Vectors among the results are free up to their sign.
UP_TO_SIGN = frozenset("linalg_eig linalg_eigh linalg_svd svd".split())

# Rows that take layouts which PyTorch refuses, with the reason.
MORE_LAYOUTS: dict[str, str] = {
    "stft": "MKL refuses tensors without elements",
    **{
        f"fft_{name}{rank}": "MKL refuses tensors without elements"
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for rank in ("", "2", "n")
    },
    "take_along_dim": "PyTorch flattens with view, which fails for memory in another order",
    "native_group_norm": "PyTorch's kernel takes only memory in the usual order, and group_norm puts it there first",
}

# Layouts that say nothing about a row, or that PyTorch gets wrong, with the reason.
WRONG_LAYOUTS: dict[str, dict[str, str]] = {
    **{
        name: {"expanded": "equal rows make a matrix singular, and what then comes out is rounding"}
        for name in "cholesky_inverse geqrf linalg_cholesky_ex linalg_cond linalg_eig linalg_eigvals linalg_inv_ex "
        "linalg_lstsq linalg_lu_factor linalg_qr linalg_solve_ex linalg_svd linalg_tensorinv linalg_tensorsolve qr svd "
        "svd_lowrank pca_lowrank pinverse".split()
    },
    "resize_": dict.fromkeys(("emptied", "zero_dim"), "the tensor grows by memory that nobody has written"),
    **{
        name: {"expanded": "PyTorch reads memory behind the input"} for name in "median nanmedian masked.median".split()
    },
    "native_group_norm": {"expanded": "PyTorch reads expanded parameters as if they were dense"},
    **{
        name: {"emptied": "PyTorch does not look at the number of statistics where there is nothing to normalize"}
        for name in "batch_norm instance_norm native_batch_norm _native_batch_norm_legit".split()
    },
    "_chunk_cat": {"zero_dim": "PyTorch dies"},
    "scaled_dot_product_attention": {"emptied": "PyTorch lets batches pass that do not fit each other"},
    **{name: {"emptied": "PyTorch never writes the loss"} for name in ("multi_margin_loss", "multilabel_margin_loss")},
    "_segment_reduce": {"emptied": "PyTorch reads more elements than there are"},
    "pixel_unshuffle": {"emptied": "PyTorch returns the input in its own shape"},
}
WRONG_LAYOUTS["linalg_tensorsolve"]["emptied"] = "PyTorch does not check the sizes"

# Rows that share memory otherwise than PyTorch's, with the reason.
OTHER_SHARING: dict[str, str] = {}

# Rows whose schema is silent about what it shares or writes, on purpose, as PyTorch's is.
SILENT: dict[str, str] = {
    **dict.fromkeys(
        ("_unsafe_view", "_squeeze_row", "unsafe_split", "unsafe_split_with_sizes"),
        "shares memory with an input that nobody else holds",
    ),
    "_native_batch_norm_legit": "writes the running statistics, which have no gradient",
    "_batch_norm_with_update": "writes the running statistics, which have no gradient",
    "native_batch_norm": "writes the running statistics, which have no gradient",
}

# Views that are none for autograd, with the reason. `test_memory_is_shared_as_in_pytorch` holds them to PyTorch's.
TRACKS_NO_BASE: dict[str, str] = {
    "aten::lift_fresh": "the argument itself",
    "detach": "what its user asks for",
    "view.dtype": "bits have no derivative, and so the result no base, in PyTorch too",
}

# Rows whose results' shapes depend on values, which meta tensors do not have.
NEEDS_VALUES = frozenset("nonzero masked_select".split())

# Rows that no sample reaches, by full name, with the reason.
NEVER_CALLED: dict[str, str] = {
    "_abs_real": "what `abs_` computes; it runs the kernel, below the dispatcher",
    "_layer_norm_output": "what `layer_norm` runs where nobody looks on; handlers see `native_layer_norm`",
}
# Rows without samples here, by the tests that compare them with PyTorch.
CALLED_ELSEWHERE: dict[str, str] = {
    name: where
    for where, names in {
        "amp/test_grad_scaler.py": "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_",
        "optim/test_fused.py": " ".join(
            f"_fused_{name}_ _fused_{name}_.tensor_lr" for name in ("adagrad", "adam", "adamw", "sgd")
        ),
        "parity/test_gamma_random.py": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad",
        "nn/test_rnn_utils.py": "_pack_padded_sequence _pad_packed_sequence",
        "nn/test_recurrent.py": "_thnn_fused_gru_cell_backward _thnn_fused_lstm_cell_backward_impl",
        "tensor/test_lazy_clone.py": "_lazy_clone",
        "tensor/test_lazy_views.py": (
            "_conj_copy _conj_copy.out _is_zerotensor _neg_view _neg_view_copy _neg_view_copy.out"
        ),
        "torch_name/test_surface.py": "_pin_memory _sparse_addmm _sparse_mm_reduce_impl",
        "rows/test_private.py": (
            """_add_relu _add_relu_ _add_relu.out _addmm_activation _addmm_activation.out _aminmax _aminmax.dim
            _assert_async _assert_async.msg _compute_linear_combination _compute_linear_combination.out
            _debug_has_internal_overlap _efficient_attention_forward _flash_attention_forward
            _functional_assert_async.msg _grid_sampler_2d_cpu_fallback
            _masked_softmax _masked_softmax_backward _new_zeros_with_same_feature_meta
            _unique cudnn_is_acceptable dim is_contiguous is_contiguous.memory_format
            is_non_overlapping_and_dense is_same_size is_strides_like_format numel resize_ set_
            set_.source_Tensor set_.source_Tensor_storage_offset size size.int storage_offset stride
            stride.int sym_is_contiguous sym_numel sym_size sym_size.int sym_storage_offset sym_stride sym_stride.int"""
        ),
        "api/test_found_by_pytorchs_tests.py": "_int_mm _int_mm.out",
        "rows/test_second_names.py": " ".join(
            f"special_{name} special_{name}.out" for name in ("gammainc", "gammaincc")
        ),
        "api/test_reference_modules.py": "_scaled_mm _scaled_mm_v2",
        "nn/test_transformer.py": "_native_multi_head_attention _transformer_encoder_layer_fwd",
    }.items()
    for name in names.split()
}

# Rows whose results are laid out otherwise on meta than on the CPU, as in PyTorch; `test_corners.py` compares with its
# meta device.
OTHER_ON_META: dict[str, str] = {
    "linalg_eig": "PyTorch's meta device lays eigenvectors out by rows, LAPACK by columns",
    **dict.fromkeys(
        "native_batch_norm _native_batch_norm_legit".split(),
        "PyTorch's CPU keeps no statistics where it computes none, its meta device does",
    ),
    **dict.fromkeys(
        "linalg_svd svd".split(),
        "PyTorch's meta device lays singular vectors out as without gradients, LAPACK by columns",
    ),
    "max_unpool2d": "PyTorch's meta device forgets channels last, its CPU keeps it",
}

# Rows whose wrong values meta takes, where PyTorch's meta device does not take the call at all.
OTHER_META_ERRORS: dict[str, str] = {
    "cov": "weights may not be negative; PyTorch's meta device cannot compare them with themselves"
}

# Kinds of out= (`test_out_rules.py` says what they are) with which PyTorch's result is not the operator's, with the
# reason.
OTHER_TARGETS: dict[str, dict[str, str]] = {
    "all": {"narrower": "into bytes, PyTorch makes the input bytes first, which cuts fractions off"},
    **{
        name: {"input": "of a tensor without dimensions, PyTorch fills the target before it reads it"}
        for name in "amax amin mean nanmean nansum".split()
    },
    **{
        name: {"view": "PyTorch writes as if the target's memory had no gaps, and beside the target"}
        for name in "narrow_copy nn.functional.avg_pool3d nn.functional.gelu".split()
    },
    "diff": {"input": "of no order, PyTorch copies a tensor onto itself; ours refuses shared memory at every order"},
    "nn.functional.avg_pool2d": {"input": "PyTorch reads pixels that it has overwritten"},
    **{
        name: {"input": "PyTorch puts the right side where the matrix is that it then reads"}
        for name in "linalg.solve_triangular linalg.ldl_solve ormqr".split()
    },
    "nn.functional.linear": {
        "input": "PyTorch's product reads factors that it has overwritten",
        "other input": "PyTorch's product reads factors that it has overwritten",
        "view": "for a vector, PyTorch makes the target a matrix of one row and loses its strides",
    },
}

# Whose out= form is not compared here, with the reason.
NO_OUT: dict[str, str] = {
    **dict.fromkeys(("split_with_sizes_copy", "unbind_copy"), "a list: rows/test_copies_into_lists.py"),
    "fft_ihfft2": "PyTorch forgets to conjugate what it writes",
    "fft_ihfftn": "PyTorch forgets to conjugate what it writes",
}


# Used only when the tests run on PyTorch itself, which has no registry of ours.
ROWS_WHEN_PYTORCH_IS_TESTED: tuple[str, ...] = tuple(
    """zeros ones full arange linspace eye zeros_like ones_like full_like add sub mul div pow remainder fmod
    floor_divide neg abs sign reciprocal sqrt rsqrt square exp expm1 exp2 log log2 log10 log1p sin cos tan
    asin acos atan sinh cosh tanh atan2 floor ceil round trunc frac clamp maximum minimum lerp addcmul
    addcdiv eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
    bitwise_xor bitwise_not isnan isinf isfinite where relu sigmoid gelu silu erf softmax log_softmax sum
    mean prod max min amax amin argmax argmin any all var std cumsum mm bmm mv dot matmul addmm linear view
    reshape transpose permute t select narrow squeeze unsqueeze expand diagonal as_strided unfold split chunk
    unbind flatten movedim cat stack flip tril triu index index_put gather scatter scatter_add index_select
    index_add masked_fill nonzero nll_loss cross_entropy mse_loss layer_norm embedding clone contiguous to
    fill zero_ relu""".split()
)
