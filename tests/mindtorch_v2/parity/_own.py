"""Samples for rows that PyTorch's table of operators does not have, and the rows that need none, with the reason.

Invariant: every entry names a row; `test_rows_covered.py` fails for one that does not exist any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Rows whose OpInfo has another name.
INFO_NAMES: dict[str, str] = {
    "index": "__getitem__",
    "nll_loss": "nn.functional.nll_loss",
}

# OpInfos that cannot be asked here, with the reason.
SKIPPED_INFOS: dict[str, str] = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "slice": "an operator without a public name; indexing reaches it",
}

SKIPPED_VARIANTS: dict[tuple[str, str], str] = {
    ("norm", "nuc"): "needs singular values, which come with linalg",
}
UNSUPPORTED: dict[tuple[str, str], str] = {
    ("complex", "float16"): "complex32 is no dtype here",
    ("view_as_complex", "float16"): "complex32 is no dtype here",
}

# Places of equal elements may be any; their values are compared.
TIES = frozenset("sort argsort msort topk kthvalue mode median nanmedian cummax cummin".split())

# Results of a random generator: shapes and dtypes are compared, values are not.
RANDOM_ROWS = frozenset(
    "rand randn randint rand_like randn_like randint_like randperm normal bernoulli multinomial dropout uniform "
    "exponential cauchy geometric log_normal".split()
)

Sample = Callable[[Any], Any]

# Row name to calls that run in either library and give something to compare.
SAMPLES: dict[str, list[Sample]] = {
    "empty": [lambda t: tuple(t.empty(2, 3).shape), lambda t: t.empty((2, 3), dtype=t.int32).dtype],
    "empty_strided": [lambda t: t.empty_strided((2, 3), (1, 2)).stride()],
    "empty_like": [lambda t: t.empty_like(t.ones(2, 3).t()).stride()],
    "copy": [lambda t: t.zeros(2, 3).copy_(t.arange(3))],
    "copy_": [
        lambda t: t.zeros(2, 3).copy_(t.arange(3)),
        lambda t: t.zeros(2, dtype=t.int8).copy_(t.tensor([1.9, -1.9])),
    ],
    "fill_": [lambda t: t.zeros(2, 3).fill_(7), lambda t: t.zeros(2, 3).t().fill_(t.tensor(2.5))],
    "zero_": [lambda t: t.ones(2, 3).zero_()],
    "relu": [lambda t: t.relu(t.tensor([-1.0, 0.0, 2.0])), lambda t: t.tensor([-1, 2]).relu()],
    "detach": [lambda t: t.ones(2, requires_grad=True).detach()],
    "index": [lambda t: t.arange(6).view(2, 3)[t.tensor([0, 1]), 1:]],
    "_softmax": [lambda t: t.softmax(t.arange(6.0).view(2, 3), 1)],
    "_log_softmax": [lambda t: t.log_softmax(t.arange(6.0).view(2, 3), 0)],
}

# Rows that need no samples of their own, with the reason.
REASONS: dict[str, str] = {}


def internal(row: str) -> bool:
    """Rows that users do not call: halves of an operator, and derivatives, which the gradient tests run."""
    return row.startswith("_") or row.endswith(("_backward", "_forward", "_backward_data"))


# Rows whose node has another name than PyTorch's, with the reason.
OTHER_NODE_NAMES: dict[str, str] = {}

# The derivative jumps at PyTorch's sample points, so finite differences say nothing.
NOT_SMOOTH = frozenset("floor ceil round trunc fix sign sgn remainder fmod floor_divide heaviside frac".split())

# Rows that take layouts which PyTorch refuses, with the reason.
MORE_LAYOUTS: dict[str, str] = {
    "take_along_dim": "PyTorch flattens with view, which fails for memory in another order",
}

# PyTorch has an out= form that we do not offer, with the reason.
NO_OUT: dict[str, str] = {}


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
