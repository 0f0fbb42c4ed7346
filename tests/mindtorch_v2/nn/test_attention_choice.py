"""`torch.nn.attention`: which implementations are allowed, causal biases, packed sequences.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._both import Cases, attempt, check

case = Cases()


def attention_of(lib: Any, name: str = "") -> Any:
    return importlib.import_module(f"{lib.__name__}.nn.attention{name}")


def told(fn: Any) -> Any:
    """Without the places in C++ files that PyTorch's warnings name."""
    seen = attempt(fn)
    if isinstance(seen, list):
        return [re.sub(r" \(Triggered internally .*\)$", "", s) if isinstance(s, str) else s for s in seen]
    return seen


@case
def the_enumeration(lib: Any) -> Any:
    S = attention_of(lib).SDPBackend
    return [
        *(f"{m!r} {m} {m.name} {m.value} {int(m)} {hash(m)}" for m in S.__members__.values()),
        list(S.__members__),
        S.MATH == 0,
        S.MATH == S(0),
        {S.MATH: 1}[S.MATH],
        [10, 20][S.FLASH_ATTENTION],
        attempt(lambda: S.MATH < 1),
    ]


@case
def allowed_backends(lib: Any) -> Any:
    A, F = attention_of(lib), lib.nn.functional
    S = A.SDPBackend
    R = lib.randn

    def one(backends: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
        with A.sdpa_kernel(backends):
            return F.scaled_dot_product_attention(q, k, v, **options)

    q, k, mask = R(1, 4, 3, 8), R(1, 4, 5, 8), R(3, 5) > -1
    results: list[Any] = [
        told(lambda b=b, o=o: one([S(v) for v in b], q, k, k, **o))
        for b in ([0], [1], [2], [3], [4], [], [-1], [1, 0], [2, 1])
        for o in ({}, {"attn_mask": mask}, {"is_causal": True}, {"scale": 0.5})
    ]
    calls: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (R(2, 2, 4, 8), R(1, 2, 4, 8), R(1, 2, 4, 8), {}),
        (R(1, 4, 4, 8), R(1, 2, 4, 8), R(1, 2, 4, 8), {}),
        (R(1, 4, 4, 8), R(1, 2, 4, 8), R(1, 2, 4, 8), {"enable_gqa": True}),
        (R(1, 4, 4, 8), R(1, 3, 4, 8), R(1, 3, 4, 8), {"enable_gqa": True}),
        (R(1, 4, 4, 8), R(1, 2, 4, 8), R(1, 1, 4, 8), {"enable_gqa": True}),
        (q, k, R(1, 4, 5, 6), {}),
        (q, R(1, 4, 5, 6), k, {}),
        (q, k, k, {"dropout_p": 0.5}),
        (R(4, 8), R(4, 8), R(4, 8), {}),
        (R(2, 4, 8), R(2, 4, 8), R(2, 4, 8), {}),
        (R(1, 4, 8, 8).mT, R(1, 4, 8, 8), R(1, 4, 8, 8), {}),
        (q.int(), k.int(), k.int(), {}),
        (q, k.double(), k, {}),
        (lib.ones(3), k, k, {}),
        *(
            (q, k, k, {"attn_mask": lib.ones(shape, dtype=lib.bool)})
            for shape in ((3, 5), (1, 5), (3, 1), (1, 1, 3, 5), (1, 4, 3, 5), (4, 3, 5), (2, 5), (1, 2, 3, 5), (5,))
        ),
        (q, k, k, {"attn_mask": lib.zeros(3, 5, requires_grad=True)}),
        (q, k, k, {"attn_mask": lib.zeros(3, 5, dtype=lib.float64)}),
    ]
    for query, key, value, options in calls:
        results.append(told(lambda a=(query, key, value), o=options: one(S.FLASH_ATTENTION, *a, **o)))
    meta = q.to("meta")
    results += [told(lambda b=b: one([S(v) for v in b], meta, meta, meta)) for b in ([], [0], [1])]
    return results


@case
def blocks_and_decorators(lib: Any) -> Any:
    A = attention_of(lib)
    S = A.SDPBackend
    x = lib.randn(1, 2, 3, 8)

    def now(priority: bool = False) -> list[str]:
        return [str(b) for b in A._cur_sdpa_kernel_backends(with_priority=priority)]

    @A.sdpa_kernel([S.CUDNN_ATTENTION])
    def decorated() -> Any:
        return lib.nn.functional.scaled_dot_product_attention(x, x, x)

    results: list[Any] = [now(), now(True), attempt(decorated), now()]
    with A.sdpa_kernel([S.MATH, S.FLASH_ATTENTION, S.MATH], set_priority=True) as got:
        results += [got, now(), now(True)]
        with A.sdpa_kernel(S.EFFICIENT_ATTENTION):
            results.append(now(True))
        results.append(now(True))
    results += [now(), now(True)]

    def failing() -> None:
        with A.sdpa_kernel(S.MATH):
            raise ValueError("inside")

    results += [attempt(failing), now()]
    results += [attempt(lambda b=b: A.sdpa_kernel(b).__enter__()) for b in (3, (S.MATH,), None, "MATH")]
    return results


@case
def other_flash_implementations(lib: Any) -> Any:
    A = attention_of(lib)
    log: list[Any] = []

    class Handle:
        def remove(self) -> None:
            log.append("removed")

    def put() -> Any:
        log.append("put")
        return Handle()

    A.register_flash_attention_impl("mine", register_fn=put)
    A.register_flash_attention_impl("nothing", register_fn=lambda: None)
    log += [A.current_flash_attention_impl(), "mine" in A.list_flash_attention_impls()]
    for name in ("mine", "mine", "nothing", "mine"):
        A.activate_flash_attention_impl(name)
        log.append(A.current_flash_attention_impl())
    A.restore_flash_attention_impl()
    A.restore_flash_attention_impl()
    unknown = attempt(lambda: A.activate_flash_attention_impl("other"))
    return log, A.current_flash_attention_impl(), unknown.partition(". ")[0]


@case
def causal_biases(lib: Any) -> Any:
    B, F = attention_of(lib, ".bias"), lib.nn.functional
    results: list[Any] = []
    for make in (B.causal_upper_left, B.causal_lower_right):
        for rows, columns in ((3, 3), (3, 5), (5, 3)):
            bias = attempt(lambda m=make, r=rows, c=columns: m(r, c))
            results.append(repr(bias) if not isinstance(bias, list) else [repr(bias[0]), bias[1:]])
            bias = bias[0] if isinstance(bias, list) else bias
            results += [bias.shape, bias.variant.name, bias.seq_len_q, bias.seq_len_kv, bias._materialize(), str(bias)]
            q, k = lib.randn(2, 4, rows, 8, requires_grad=True), lib.randn(2, 2, columns, 8, requires_grad=True)
            for options in ({}, {"scale": 0.3}):
                out = F.scaled_dot_product_attention(q, k, k, attn_mask=bias, enable_gqa=True, **options)
                results += [out, lib.autograd.grad(out.nan_to_num().square().sum(), [q, k])]
    bias = B.causal_lower_right(3, 4)
    x, y = lib.ones(1, 1, 3, 2), lib.ones(1, 1, 4, 2)
    return results, [
        attempt(lambda: F.scaled_dot_product_attention(x, y, y, bias, is_causal=True)),
        attempt(lambda: F.scaled_dot_product_attention(x, y, y.double(), bias)),
        attempt(lambda: F.scaled_dot_product_attention(x, y.to("meta"), y, bias)),
        attempt(lambda: F.scaled_dot_product_attention(lib.ones(3), y, y, bias)),
        attempt(lambda: B.causal_upper_left(3)),
        attempt(lambda: B.causal_lower_right(3, 4, 5)),
        attempt(lambda: B.CausalBias(1, 2, 3)),
        type(bias + 1).__name__,
        list(B.CausalVariant.__members__),
    ]


@case
def reasons_for_unfused_kernels(lib: Any) -> Any:
    A, B = attention_of(lib), attention_of(lib, ".bias")
    q, k = lib.randn(1, 2, 3, 8), lib.randn(1, 2, 5, 8)
    A.WARN_FOR_UNFUSED_KERNELS = True
    try:
        return attempt(lambda: lib.nn.functional.scaled_dot_product_attention(q, k, k, B.causal_lower_right(3, 5)))
    finally:
        A.WARN_FOR_UNFUSED_KERNELS = False


@case
def packed_sequences(lib: Any) -> Any:
    V = attention_of(lib, ".varlen")
    x, cu = lib.randn(6, 2, 8), lib.tensor([0, 2, 6], dtype=lib.int32)
    m, c = x.to("meta"), cu.to("meta")
    full = [
        attempt(lambda: V.varlen_attn(x, x[:, :1], x, cu, cu, 4, 4)),
        attempt(lambda: V.varlen_attn(lib.randn(6, 3, 8), x, x, cu, cu, 4, 4, enable_gqa=True)),
        attempt(lambda: V.varlen_attn(x, x, x, cu, cu, 4, 4, window_size=(1,))),
        attempt(lambda: V.varlen_attn(m, m, m, c, c, 4, 4)),
        attempt(lambda: V.varlen_attn(m, m, m, c, c, 4, 4, return_aux=V.AuxRequest(lse=True))),
        V.AuxRequest(),
    ]
    refused = [
        attempt(lambda: V.varlen_attn(x, x, x, cu, cu, 4, 4)),
        attempt(lambda: V.varlen_attn_out(x.clone(), x, x, x, cu, cu, 4, 4)),
    ]
    return full, [text.partition(". ")[0] for text in refused]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    check(case[name], stride=False)


def test_a_restriction_ends_with_its_block() -> None:
    A = attention_of(torch)
    x = torch.ones(1, 1, 2, 2)
    with A.sdpa_kernel(A.SDPBackend.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
        torch.nn.functional.scaled_dot_product_attention(x, x, x)
    assert torch.nn.functional.scaled_dot_product_attention(x, x, x).tolist() == x.tolist()


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    for name in ("", ".bias", ".varlen"):
        theirs = importlib.import_module("torch.nn.attention" + name)
        mine = submodule("nn.attention" + name)
        assert [n for n in theirs.__all__ if not hasattr(mine, n)] == [], name
