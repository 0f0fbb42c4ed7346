"""`flex_attention` against PyTorch's: scores and masks written by users, blocks, gradients, errors.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's. Gradients are
compared with those of PyTorch's own dense formula, since its function refuses them on the CPU.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from ._both import Cases, attempt, check

case = Cases()


def flex_of(lib: Any) -> Any:
    module = importlib.import_module(f"{lib.__name__}.nn.attention.flex_attention")
    # PyTorch would trace the functions first, which takes long and changes nothing.
    vars(module)["_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"] = True
    return module


def score_mods(lib: Any, heads: int, queries: int, keys: int) -> dict[str, Any]:
    """Written for one score, as PyTorch's examples are; with tensors they capture, some of which require gradients."""
    slopes = lib.rand(heads, requires_grad=True)
    bias = lib.randn(heads, queries, keys, requires_grad=True)
    table = lib.randn(2 * max(queries, keys), heads, requires_grad=True)
    documents = lib.arange(max(queries, keys)) // 5
    batch_bias = lib.randn(2, keys)
    one = lib.tensor(0.3, requires_grad=True)

    def soft_cap(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return 5 * lib.tanh(score / 5)

    def nested(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return lib.where(q >= k, soft_cap(score, b, h, q, k) + bias[h][q][k], -float("inf"))

    def in_place(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        score = score * 1
        score += slopes[h]
        return score.mul_(2)

    return {
        "identity": (lambda score, b, h, q, k: score, []),
        "alibi": (lambda score, b, h, q, k: score + (k - q) * slopes[h], [slopes]),
        "bias": (lambda score, b, h, q, k: score + bias[h, q, k], [bias]),
        "chained": (lambda score, b, h, q, k: score + bias[h][q, k] - bias[h, q][k] + bias[h][q][k], [bias]),
        "relative": (lambda score, b, h, q, k: score + table[q - k + max(queries, keys) - 1, h], [table]),
        "column": (lambda score, b, h, q, k: score + table[:, h][k] + table[..., h].sum() + table[0, h], [table]),
        "causal": (lambda score, b, h, q, k: lib.where(q >= k, score, -float("inf")), []),
        "soft_cap": (soft_cap, []),
        "nested": (nested, [bias]),
        "in_place": (in_place, [slopes]),
        "batched": (lambda score, b, h, q, k: score * (b + 1) + batch_bias[b, k], []),
        "documents": (lambda score, b, h, q, k: lib.where(documents[q] == documents[k], score, -5.0), []),
        "vector": (lambda score, b, h, q, k: score + (bias[h, q] * bias[h, q].abs()).mean() + bias[h].amax(), [bias]),
        "one": (lambda score, b, h, q, k: score * one + lib.exp(one * h), [one]),
        "window": (lambda score, b, h, q, k: lib.where((q - k).abs() <= 2, score, score - 1e3), []),
        "constant": (lambda score, b, h, q, k: slopes[h] * k, [slopes]),
        "dtype": (lambda score, b, h, q, k: score.double() + (q % 3).to(lib.float64), []),
    }


# Index a captured tensor in steps, which PyTorch cannot differentiate; `test_gradients_of_parts` does.
PART_BY_PART = ("chained", "column", "nested", "vector")


def mask_mods(lib: Any, heads: int, queries: int, keys: int) -> dict[str, Any]:
    fa = flex_of(lib)
    documents = (lib.arange(max(queries, keys)) * 3) // 20
    lengths = lib.tensor([keys // 2, keys - 1])
    looked_up = lib.rand(heads, queries, keys) > 0.5

    def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
        return q >= k

    def window(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (q - k <= 7) & (q - k >= -2)

    def document(b: Any, h: Any, q: Any, k: Any) -> Any:
        return documents[q] == documents[k]

    return {
        "causal": causal,
        "noop": fa.noop_mask,
        "window": window,
        "document": document,
        "and": fa.and_masks(causal, window, document),
        "or": fa.or_masks(document, lambda b, h, q, k: k < 3),
        "padding": lambda b, h, q, k: k < lengths[b],
        "heads": lambda b, h, q, k: lib.where(h % 2 == 0, q >= k, q <= k),
        "table": lambda b, h, q, k: looked_up[h, q, k],
        "chained": lambda b, h, q, k: looked_up[h][q][k],
        "nothing": lambda b, h, q, k: k < 0,
        "some_rows": lambda b, h, q, k: (q > 5) & ~(k == 1),
        "not": lambda b, h, q, k: lib.logical_not(k > q) | (k == 0),
        "prefix": lambda b, h, q, k, n=4: (k < n) | (q >= k),
    }


def inputs(lib: Any, q: tuple[int, ...], k: tuple[int, ...], width: int = 8, dtype: str = "float32") -> list[Any]:
    kind = getattr(lib, dtype)
    return [lib.randn(*shape, w).to(kind) for shape, w in ((q, width), (k, width), (k, width + 2))]


def reference(lib: Any, q: Any, k: Any, v: Any, score_mod: Any, mask: Any, scale: float) -> Any:
    """PyTorch's dense formula; ours is the function itself."""
    if lib.__name__ != "torch":
        return flex_of(lib).flex_attention(q, k, v, score_mod, mask, scale=scale, enable_gqa=True)
    from torch._higher_order_ops.flex_attention import math_attention

    parts = (None, flex_of(lib).noop_mask) if mask is None else mask.as_tuple()
    change = (lambda score, b, h, q, k: score) if score_mod is None else score_mod
    return math_attention(q, k, v, change, parts, scale, {})[0]


@case
def scores(lib: Any) -> Any:
    fa = flex_of(lib)
    results: dict[str, Any] = {}
    for name, (fn, _) in score_mods(lib, 4, 9, 13).items():
        q, k, v = inputs(lib, (2, 4, 9), (2, 4, 13))
        with lib.no_grad():
            results[name] = attempt(lambda q=q, k=k, v=v, fn=fn: fa.flex_attention(q, k, v, fn))
    return results


@case
def masks(lib: Any) -> Any:
    fa = flex_of(lib)
    results: dict[str, Any] = {}
    for name, fn in mask_mods(lib, 4, 37, 45).items():
        q, k, v = inputs(lib, (2, 4, 37), (2, 4, 45))
        dense = fa.create_mask(fn, 2, 4, 37, 45, device="cpu")
        results[name] = [dense]
        for size in (128, 16, (8, 4), (1, 45)):
            mask = fa.create_block_mask(fn, 2, 4, 37, 45, device="cpu", BLOCK_SIZE=size)
            asked = fa.AuxRequest(lse=True)
            results[name].append(fa.flex_attention(q, k, v, block_mask=mask, return_aux=asked))
    return results


@case
def gradients(lib: Any) -> Any:
    fa = flex_of(lib)
    results: dict[str, Any] = {}
    for masked in (False, True):
        for name, (fn, captured) in score_mods(lib, 4, 21, 18).items():
            if name in PART_BY_PART:
                continue
            q, k, v = (t.requires_grad_() for t in inputs(lib, (2, 4, 21), (2, 2, 18)))
            mask = None
            if masked:
                mask = fa.create_block_mask(mask_mods(lib, 4, 21, 18)["some_rows"], 2, 4, 21, 18, "cpu", 4)
            out = reference(lib, q, k, v, fn, mask, 0.4)
            grads = lib.autograd.grad(out.nan_to_num().square().sum(), [q, k, v, *captured], allow_unused=True)
            results[f"{name} {masked}"] = [out, grads]
    return results


@case
def dtypes_and_layouts(lib: Any) -> Any:
    fa = flex_of(lib)
    results: list[Any] = []
    for dtype in ("float64", "float16", "bfloat16"):
        q, k, v = inputs(lib, (1, 2, 9), (1, 2, 11), dtype=dtype)
        results.append(fa.flex_attention(q, k, v, return_aux=fa.AuxRequest(lse=True)))
    q, k, v = inputs(lib, (2, 4, 9), (2, 4, 9))
    moved = q.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2)
    results += [fa.flex_attention(moved, k, v).stride(), fa.flex_attention(q.mT.contiguous().mT, k, v).stride()]
    results += [fa.flex_attention(q, k.half(), v.bfloat16())]
    causal = fa.create_block_mask(lambda b, h, q, k: q >= k, 2, None, 9, 9, device="cpu", BLOCK_SIZE=4)
    results += [fa.flex_attention(q, k[:1], v[:1], block_mask=causal), fa.flex_attention(q, k, v, scale=2.0)]
    results += [fa.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True), fa.flex_attention(q[:, :, :0], k, v)]
    results += [attempt(lambda: fa.flex_attention(q, k, v, return_aux=fa.AuxRequest()))]
    results += [fa.flex_attention(q, k, v, lambda s, b, h, q, k: s.half() if k.dtype == lib.int64 else s)]
    return results


def shown(mask: Any) -> Any:
    """Everything of a block mask but its function."""
    return [
        repr(mask),
        str(mask),
        list(mask.as_tuple()[:-1]),
        mask.to_dense().tolist(),
        mask.sparsity(),
        mask.numel(),
        mask.shape,
    ]


@case
def block_masks(lib: Any) -> Any:
    fa = flex_of(lib)
    results: list[Any] = []
    for fn in mask_mods(lib, 3, 70, 100).values():
        for size in (128, 16, (16, 32), (33, 7)):
            mask = fa.create_block_mask(fn, 2, 3, 70, 100, device="cpu", BLOCK_SIZE=size)
            results.append(shown(mask)[1:])
    causal = mask_mods(lib, 3, 70, 100)["causal"]
    for separate in (True, False):
        mask = fa.create_block_mask(causal, None, 5, 70, 100, "cpu", (16, 32), separate_full_blocks=separate)
        results += [shown(mask), mask.to_string(3), mask.to_string((2, 50), 2), mask.to_string(limit=9)]
        for index in (0, -1, (0, 2), (slice(None), slice(1, 3)), (0, 1, 2), (slice(None), slice(None), slice(0, 2))):
            results.append(attempt(lambda m=mask, i=index: shown(m[i])))
        results.append(shown(mask[:, lib.tensor([0, 3])]))
        results += [shown(mask._adjust(33, 64))[1:], shown(mask._adjust(16, 200))[1:], mask.as_tuple(False)[0]]
        moved = mask.to("cpu")
        results += [shown(moved), moved.mask_mod is causal]
    for order in (True, False):
        mask = fa.create_block_mask(causal, 1, 2, 70, 100, "cpu", 16, compute_dq_write_order=True, dq_kv_order=order)
        results += [shown(mask), shown(mask[0, 1]), shown(mask._adjust(40, 40))[1:]]
    num, order = lib.tensor([[[2, 1]]], dtype=lib.int32), lib.tensor([[[[1, 0, 2], [2, 0, 1]]]], dtype=lib.int32)
    results.append(shown(fa.BlockMask.from_kv_blocks(num, order, BLOCK_SIZE=(4, 8))))
    results.append(shown(fa.BlockMask.from_kv_blocks(num, order, num, order, seq_lengths=(200, 300))))
    results.append(shown(fa.BlockMask.from_kv_blocks(num[0], order[0], compute_q_blocks=False)))
    score = fa.create_mask(lambda s, b, h, q, k: lib.where(q >= k, s, -float("inf")), 2, None, 5, 6, "cpu")
    return results, score


@case
def data_dependent_functions(lib: Any) -> Any:
    fa = flex_of(lib)

    def make(fn: Any) -> Any:
        return attempt(lambda: fa.create_mask(fn, 2, 2, 3, 3, device="cpu"))

    return [
        make(lambda b, h, q, k: q >= k if q > 1 else k > q),
        make(lambda b, h, q, k: lib.tensor(q.item()) > 0),
        make(lambda b, h, q, k: lib.tensor(int(q)) > 0),
        make(lambda b, h, q, k: lib.arange(3)[q:k].sum() > 0),
        make(lambda b, h, q, k: True),
        make(lambda b, h, q: q),
        make(lambda b, h, q, k: q + k),
        [str(s) for s in make(lambda b, h, q, k: lib.full_like(q, q.dim() + len(q.shape) + q.numel())).unique()],
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    rough = name == "dtypes_and_layouts"
    check(case[name], rtol=2e-3 if rough else 1e-4, atol=2e-3 if rough else 5e-5, stride=name != "gradients")


def test_blocks_that_a_mask_lacks_are_not_looked_at() -> None:
    """As PyTorch's compiled kernels do; its dense formula for the CPU only looks at the mask_mod."""
    if IS_ORACLE:
        pytest.skip("needs a compiler")
    fa = flex_of(torch)
    q, k, v = inputs(torch, (1, 1, 8), (1, 1, 8))
    num, order = torch.tensor([[[1, 1]]], dtype=torch.int32), torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    mask = fa.BlockMask.from_kv_blocks(num, order, BLOCK_SIZE=4)
    seen = torch.zeros(8, 8, dtype=torch.bool)
    seen[:4, 4:] = True
    seen[4:, :4] = True
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
    assert torch.allclose(fa.flex_attention(q, k, v, block_mask=mask), expected, atol=1e-5)
    # Full blocks are not asked about either.
    full = fa.BlockMask.from_kv_blocks(
        torch.zeros_like(num), order, num, order, BLOCK_SIZE=4, mask_mod=lambda b, h, q, k: k < 0
    )
    assert torch.allclose(fa.flex_attention(q, k, v, block_mask=full), expected, atol=1e-5)


@pytest.mark.parametrize("name", PART_BY_PART)
@mindtorch_only
def test_gradients_of_parts(name: str) -> None:
    fa = flex_of(torch)
    torch.manual_seed(2)
    q, k, v = (t.double().requires_grad_() for t in inputs(torch, (1, 2, 3), (1, 2, 4), 2))
    fn, captured = score_mods(torch, 2, 3, 4)[name]
    for tensor in captured:
        tensor.data = tensor.data.double()
    assert torch.autograd.gradcheck(lambda *given: fa.flex_attention(*given[:3], fn), (q, k, v, *captured))


@mindtorch_only
def test_parts_are_computed_again_for_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many parts give what one gives, also where a captured tensor requires gradients."""
    fa = flex_of(torch)
    torch.manual_seed(1)
    q, k, v = (t.double().requires_grad_() for t in inputs(torch, (2, 2, 33), (2, 2, 40)))
    bias = torch.randn(2, 33, 40, dtype=torch.float64, requires_grad=True)
    mask = fa.create_block_mask(lambda b, h, q, k: q >= k, None, None, 33, 40, device="cpu", BLOCK_SIZE=8)
    results = []
    for tile, rows in ((fa.TILE, 128), (500, 8)):
        monkeypatch.setattr(fa, "TILE", tile)
        monkeypatch.setattr(fa, "_ROWS", rows)
        for chosen in (mask, None):
            out = fa.flex_attention(q, k, v, lambda s, b, h, i, j: s * 2 + bias[h, i, j], chosen)
            results.append([out, *torch.autograd.grad(out.square().sum(), [q, k, v, bias])])
    for one, other in ((0, 2), (1, 3)):
        for a, b in zip(results[one], results[other]):
            assert torch.allclose(a, b, atol=1e-9)


@mindtorch_only
def test_an_unknown_operator_is_refused() -> None:
    fa = flex_of(torch)
    x = torch.ones(1, 1, 2, 2)
    for fn in (lambda s, *p: s.cumsum(0), lambda s, *p: torch.stack([s, s]).sum(0), lambda s, *p: s.reshape(1)):
        with pytest.raises((NotImplementedError, IndexError, RuntimeError)):
            fa.flex_attention(x, x, x, fn)
    with pytest.raises(RuntimeError, match="one value for each score"):
        fa.flex_attention(x, x, x, lambda s, b, h, q, k: s + torch.ones(3))


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    theirs = importlib.import_module("torch.nn.attention.flex_attention")
    mine = submodule("nn.attention.flex_attention")
    assert sorted(mine.__all__) == sorted(theirs.__all__)
    assert set(theirs.FlexKernelOptions.__annotations__) == set(mine.FlexKernelOptions.__annotations__)
    missing = [n for n in vars(theirs.BlockMask) if not n.startswith("_") and not hasattr(mine.BlockMask, n)]
    assert missing == [] and math.inf > 0
