"""Operators of PyTorch's table on sparse, nested, masked, conjugated and negated tensors: nothing is silently dense.

Where PyTorch refuses, we refuse; where both compute, the results are the same. A share of the operators runs always,
`MINDTORCH_LAYOUTS=all` takes all of them.
"""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _infos

pytestmark = [pytest.mark.oracle, mindtorch_only]

ALL = os.environ.get("MINDTORCH_LAYOUTS") == "all"
LAYOUTS = "coo csr csc bsr bsc nested jagged masked conj neg".split()
COUNT = 2
# Memory that nobody has set, and vectors that are known up to a factor.
UNSET = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_"}
UP_TO_A_FACTOR = {
    "svd_lowrank", "pca_lowrank", "linalg.eig", "linalg.eigh", "linalg.svd", "svd", "geqrf", "linalg.qr", "qr",
}  # fmt: skip
# Operators whose samples have a layout already.
LAID_OUT = {"sparse.sampled_addmm", "sparse.mm"}
# PyTorch does not survive these: it calls itself without end.
FATAL = {("meshgrid", "jagged")}
# Where PyTorch answers otherwise for reasons of its own: rows of COO that should broadcast are left out (mul); the
# negation of index tensors in lists, and of those whose memory is read, is overlooked; `equal` of jagged tensors fails
# after it is computed; masked norms fail by a wrong keyword; permuted tensors with unsorted indices count as coalesced.
# `a.__rsub__(b)`, called by name, is `b - a` in compiled classes, where PyTorch asks for `rsub`, which these lack.
OTHERWISE = {
    ("mul", "coo"), ("__rmul__", "coo"), ("tensor_split", "neg"), ("index_put", "neg"), ("_unsafe_masked_index", "neg"),
    ("nn.functional.binary_cross_entropy", "neg"), ("nn.functional.ctc_loss", "neg"), ("equal", "jagged"),
    ("norm", "masked"), ("permute", "coo"), ("to_sparse", "bsr"), ("_native_batch_norm_legit", "neg"),
    ("resize_as_", "masked"), ("linspace", "masked"), ("logspace", "masked"), ("nn.functional.pad", "masked"),
    ("__rsub__", "nested"), ("__rsub__", "jagged"), ("__rsub__", "masked"),
    ("linalg.matrix_rank", "coo"), ("linalg.pinv", "coo"), ("nn.functional.linear", "csc"), ("addr", "csc"),
}  # fmt: skip


class Unfit(Exception):
    """A sample that cannot have a layout."""


def laid_out(t: Any, kind: str, library: Any) -> Any:
    t = t.detach()
    if kind in ("conj", "neg"):
        if not t.dtype.is_complex if kind == "conj" else t.dtype is library.bool:
            raise Unfit
        return t.conj() if kind == "conj" else library._neg_view(t)
    if kind == "masked":
        mask = (library.arange(t.numel()).reshape(tuple(t.shape)) % 3) != 1
        return library.masked.masked_tensor(t.contiguous(), mask)
    if kind in ("nested", "jagged"):
        if t.dim() < 1 or t.shape[0] < 2:
            raise Unfit
        layout = library.strided if kind == "nested" else library.jagged
        return library.nested.nested_tensor([t.clone(), t[: t.shape[0] // 2 + 1].clone()], layout=layout)
    if t.dim() < (1 if kind == "coo" else 2):
        raise Unfit
    if kind == "coo":
        return t.to_sparse()
    return getattr(t, f"to_sparse_{kind}")(*([(1, 1)] if kind in ("bsr", "bsc") else []))


def told(v: Any) -> Any:
    """A result as plain values, with its layout."""
    if not hasattr(v, "layout"):
        return [told(x) for x in v] if isinstance(v, (list, tuple)) else v if isinstance(v, (bool, int, float)) else ""
    if type(v).__name__ == "MaskedTensor":
        mask = v.get_mask()
        return ["masked", told(mask), told(v.get_data().detach().masked_fill(~mask, 0))]
    if v.is_nested:
        return ["nested", [told(t) for t in v.detach().unbind()]]
    kind = str(v.layout).rpartition(".")[2]
    if kind != "strided":
        return [kind, told(v.detach().to_dense())]
    plain = v.detach().resolve_conj().resolve_neg()
    return [str(v.dtype).rpartition(".")[2], list(v.shape), plain.reshape(-1).tolist()]


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return (a != a and b != b) or a == b or abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))
    return bool(a == b)


def _tried(fn: Any, args: Any, kwargs: Any, library: Any) -> Any:
    library.manual_seed(3)
    try:
        found = fn(*args, **kwargs)
    except Exception as error:
        return error
    try:
        return told(found)
    except Exception:
        return None  # a result that cannot be read, as views of nested tensors may be


def _samples(info: Any, kind: str, dtype: Any) -> Any:
    every = itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), 16)
    fit = [s for s in every if isinstance(s.input, _oracle.load().Tensor) and s.input.dim() and s.input.numel()]
    return fit[:: max(1, len(fit) // COUNT)][:COUNT]


INFOS = (
    [i for i in _oracle.load_op_db() if i.name not in UNSET | UP_TO_A_FACTOR | LAID_OUT] if _oracle.available() else []
)


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("info", INFOS if ALL else INFOS[5::31], ids=lambda i: f"{i.name}-{i.variant_test_name}")
def test_layout(info: Any, kind: str) -> None:
    theirs, fn = _oracle.load(), _infos.in_subject(info)
    dtype = theirs.complex128 if kind == "conj" else theirs.float64
    if fn is None or dtype not in info.dtypes or (info.name, kind) in OTHERWISE | FATAL:
        return
    for sample in _samples(info, kind, dtype):
        try:
            first = laid_out(sample.input, kind, theirs)
        except (Unfit, RuntimeError):
            continue  # batches of another number of elements each have no compressed layout
        args, kwargs = list(sample.args), dict(sample.kwargs)
        mine = _oracle.convert_argument([sample.input, *args])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _tried(info.op, [first, *args], kwargs, theirs)
            given = [laid_out(mine[0], kind, torch), *mine[1:]]
            got = _tried(fn, given, _oracle.convert_argument(kwargs), torch)
        if isinstance(expected, Exception):
            assert isinstance(got, Exception), f"computed, where PyTorch says {expected!r}"
        elif not isinstance(got, Exception) and expected is not None:
            assert _close(got, expected)
