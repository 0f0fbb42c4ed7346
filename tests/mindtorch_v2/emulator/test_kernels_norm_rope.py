"""Heads that are normalised, put together and turned, and masked causal convolutions, against PyTorch's autograd."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .. import _oracle
from ._kernels import Out, assert_same, call, refused

pytestmark = pytest.mark.oracle
if not _oracle.available():
    pytest.skip("the references are PyTorch's: make test ORACLE=1", allow_module_level=True)
t = _oracle.load()

B, N, D = 2, 3, 8
TOKENS, ENCODED, ROWS, EPS = 5, 2, 4, 1e-5
WORDS = ("Query", "Key", "Value")


def data(*shape: int) -> Any:
    generator = t.Generator().manual_seed(sum(shape) * 7 + len(shape))
    return t.randn(shape, generator=generator, dtype=t.float64).float()


def normed(x: Any, weight: Any, bias: Any, kind: int) -> Any:
    if kind == 0:
        return x
    mean = x.mean(-1, keepdim=True) if kind in (1, 2) else 0
    out = (x - mean) * ((x - mean) ** 2).mean(-1, keepdim=True).add(EPS).rsqrt()
    return out * weight + (bias if kind == 2 else 0) if kind in (2, 4) else out


def turned(x: Any, sin: Any, cos: Any, kind: int) -> Any:
    """(batch, heads, tokens, size)"""
    if kind == 0:
        return x
    some, rest = x[:, :, :ROWS], x[:, :, ROWS:]
    if kind == 1:
        other = t.stack((-some[..., 1::2], some[..., ::2]), -1).flatten(-2)
    else:
        other = t.cat((-some[..., D // 2 :], some[..., : D // 2]), -1)
    return t.cat((some * cos + other * sin, rest), 2)


class Case:
    """All arguments of the forward function, with gradients, and what it gives."""

    def __init__(self, norm: int, added: int, rope: int, order: int, encoder: bool) -> None:
        self.modes = {"normType": norm, "normAddedType": added, "ropeType": rope, "concatOrder": order}
        self.given: dict[str, Any] = {}
        for i, word in enumerate(WORDS):
            self.given[word.lower()] = data(B, TOKENS, N, D) + i
            if encoder:
                self.given[f"encoder{word}"] = data(B, ENCODED, N, D) - i
            for kind, prefix in ((norm, f"norm{word}"), (added, f"normAdded{word}")):
                if word != "Value" and (encoder or "Added" not in prefix):
                    if kind in (2, 4):
                        self.given[f"{prefix}Weight"] = data(D) + 1
                    if kind == 2:
                        self.given[f"{prefix}Bias"] = data(D)
        if rope:
            self.given["ropeSin"], self.given["ropeCos"] = data(ROWS, D), data(ROWS, D).flip(0)
        self.leaves = {k: v.clone().requires_grad_() for k, v in self.given.items()}
        self.results = {word: self.result(word) for word in WORDS}

    def result(self, word: str) -> Any:
        g, plain = self.leaves, word == "Value"
        parts = [normed(g[word.lower()], g.get(f"norm{word}Weight"), g.get(f"norm{word}Bias"),
                        0 if plain else self.modes["normType"])]  # fmt: skip
        if f"encoder{word}" in g:
            parts.append(normed(g[f"encoder{word}"], g.get(f"normAdded{word}Weight"), g.get(f"normAdded{word}Bias"),
                                0 if plain else self.modes["normAddedType"]))  # fmt: skip
        if self.modes["concatOrder"]:
            parts.reverse()
        x = t.cat(parts, 1).transpose(1, 2)
        return x if plain else turned(x, g.get("ropeSin"), g.get("ropeCos"), self.modes["ropeType"])

    def statistics(self) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for word in WORDS[:2]:
            for name, prefix, kind in ((word.lower(), f"norm{word}", "normType"),
                                       (f"encoder{word}", f"normAdded{word}", "normAddedType")):  # fmt: skip
                if name not in self.given or self.modes[kind] == 0:
                    continue
                x = self.given[name].double()
                mean = x.mean(-1, keepdim=True) if self.modes[kind] in (1, 2) else t.zeros(())
                if self.modes[kind] in (1, 2):
                    found[f"{prefix}Mean"] = mean.float().numpy()
                found[f"{prefix}Rstd"] = ((x - mean) ** 2).mean(-1, keepdim=True).add(EPS).rsqrt().float().numpy()
        return found


CASES = [(0, 0, 0, 0, False), (1, 1, 1, 0, True), (2, 2, 2, 1, True), (3, 4, 1, 1, True), (4, 0, 2, 0, True),
         (2, 0, 2, 0, False)]  # fmt: skip


@pytest.mark.parametrize("modes", CASES)
def test_forward(modes: tuple[int, int, int, int, bool]) -> None:
    case = Case(*modes)
    statistics = case.statistics()
    outs = {f"{word.lower()}Output": Out(tuple(case.results[word].shape)) for word in WORDS}
    got = call("aclnnNormRopeConcat", **case.given, **case.modes, eps=EPS, isTraining=True, **outs,
               **{name: Out(value.shape) for name, value in statistics.items()})  # fmt: skip
    want = [case.results[word].detach() for word in WORDS]
    order = ["normQueryMean", "normQueryRstd", "normKeyMean", "normKeyRstd", "normAddedQueryMean", "normAddedQueryRstd",
             "normAddedKeyMean", "normAddedKeyRstd"]  # fmt: skip
    want += [statistics[name] for name in order if name in statistics]
    assert len(got) == len(want)
    for one, expected in zip(got, want):
        assert_same(one, expected, 8)
    alone = call("aclnnNormRopeConcat", **case.given, **case.modes, eps=EPS, isTraining=False, **outs)
    for one, expected in zip(alone, want):
        assert_same(one, expected, 8)


@pytest.mark.parametrize("modes", CASES)
def test_backward(modes: tuple[int, int, int, int, bool]) -> None:
    case = Case(*modes)
    grads = {word: data(*case.results[word].shape) for word in WORDS}
    t.autograd.backward([case.results[word] for word in WORDS], [grads[word] for word in WORDS])
    known = {k: v for k, v in case.given.items() if not k.endswith("Bias") and "alue" not in k}
    known.update({f"grad{word}Output": grads[word] for word in WORDS})
    names = ["query", "key", "value", "encoderQuery", "encoderKey", "encoderValue"]
    names += [f"norm{a}{word}{k}" for a in ("", "Added") for word in WORDS[:2] for k in ("Weight", "Bias")]
    names = [name for name in names if name in case.given]
    outs = {f"grad{name[0].upper()}{name[1:]}": Out(tuple(case.given[name].shape)) for name in names}
    got = call("aclnnNormRopeConcatBackward", **known, **case.statistics(), **case.modes, **outs)
    assert len(got) == len(names)
    for one, name in zip(got, names):
        assert_same(one, case.leaves[name].grad, 60)


def test_refusals() -> None:
    case = Case(2, 2, 2, 0, True)
    outs = {f"{word.lower()}Output": Out(tuple(case.results[word].shape)) for word in WORDS}
    values = {**case.given, **case.modes, "eps": EPS, "isTraining": False, **outs}
    for wrong in ({"normType": 5}, {"ropeType": 3}, {"concatOrder": 2}, {"ropeSin": None}, {"normQueryWeight": None},
                  {"ropeSin": data(8, D), "ropeCos": data(8, D)}, {"queryOutput": Out((B, N, 4, D))},
                  {"isTraining": True}, {"encoderKey": data(B, ENCODED, N + 1, D)}):  # fmt: skip
        assert refused("aclnnNormRopeConcat", **{**values, **wrong}) == 161002, wrong


# -- convolutions ----------------------------------------------------------------------------------------------------
X, W, GRAD = data(6, 2, 4), data(3, 4), data(6, 2, 4).flip(0)
MASK = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 1, 1]], bool)


def half(x: Any) -> np.ndarray:
    array: np.ndarray = x.detach().numpy().astype(ml_dtypes.bfloat16)
    return array


@pytest.mark.parametrize("masked", [False, True])
def test_masked_causal_conv(masked: bool) -> None:
    x, w, g = (t.tensor(half(v).astype(np.float64)).requires_grad_() for v in (X, W, GRAD))
    padded = t.nn.functional.pad(x.permute(1, 2, 0), (2, 0))
    y = t.nn.functional.conv1d(padded, w.t().unsqueeze(1), groups=4).permute(2, 0, 1)
    if masked:
        y = y * t.tensor(MASK.T.copy()).unsqueeze(-1)
    y.backward(g.detach())
    mask = MASK if masked else None
    got = call("aclnnMaskedCausalConv1d", x=half(x), weight=half(w), maskOptional=mask, out=Out((6, 2, 4), "bfloat16"))
    assert_same(got, half(y), 2)
    back = call("aclnnMaskedCausalConv1dBackward", gradY=half(g), x=half(x), weight=half(w), maskOptional=mask,
                gradXOut=Out((6, 2, 4), "bfloat16"), gradWeightOut=Out((3, 4), "bfloat16"))  # fmt: skip
    assert_same(back[0], half(x.grad), 2)
    assert_same(back[1], half(w.grad), 2)
    assert refused("aclnnMaskedCausalConv1d", x=half(x), weight=half(w), maskOptional=MASK.T.copy(),
                   out=Out((6, 2, 4), "bfloat16")) == 161002  # fmt: skip
