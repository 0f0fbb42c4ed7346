"""Whole recurrent layers against PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ._emulator import Runtime, isolated  # noqa: E402
from ._kernels import Out, assert_same, call, refused  # noqa: E402

STEPS, BATCH, INNER, SIZE = 4, 3, 5, 2
pytestmark = pytest.mark.oracle
OPTIONS = list(itertools.product((1, 2), (False, True), (False, True), (False, True)))


def weights(module: Any) -> list[np.ndarray]:
    return [w.detach().numpy() for group in module.all_weights for w in group]


def setting(module: Any, direction: str) -> dict[str, Any]:
    return {"hasBias": module.bias, "numLayers": module.num_layers, "dropout": 0.0, direction: module.bidirectional,
            "batchFirst": module.batch_first}  # fmt: skip


@pytest.mark.parametrize(("layers", "bias", "both", "batch_first"), OPTIONS)
@pytest.mark.parametrize("train", [False, True])
def test_lstm(layers: int, bias: bool, both: bool, batch_first: bool, train: bool) -> None:
    torch.manual_seed(layers)
    module = torch.nn.LSTM(INNER, SIZE, layers, bias, batch_first, bidirectional=both)
    directions = 2 if both else 1
    x = torch.randn(BATCH, STEPS, INNER) if batch_first else torch.randn(STEPS, BATCH, INNER)
    h, c = (torch.randn(layers * directions, BATCH, SIZE) for _ in range(2))
    y, (hy, cy) = module(x, (h, c))
    count = layers * directions if train else 0
    traces = {n: [Out((STEPS, BATCH, SIZE)) for _ in range(count)] for n in
              ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")}  # fmt: skip
    got = call("aclnnLSTM", input=x, params=weights(module), hx=[h, c], train=train, **setting(module, "bidirectional"),
               output=Out(tuple(y.shape)), hy=Out(tuple(hy.shape)), cy=Out(tuple(cy.shape)), **traces)  # fmt: skip
    for g, want in zip(got, (y, hy, cy)):
        assert_same(g, want.detach(), 4)
    if not train:
        return
    i, g_, f, o, hs, cs, squashed = (got[3 + k * count : 3 + (k + 1) * count] for k in range(7))
    last = y.transpose(0, 1) if batch_first else y
    for d in range(directions):  # of the last layer
        k = count - directions + d
        assert_same(hs[k], last[..., d * SIZE : (d + 1) * SIZE].detach().contiguous(), 4)
        np.testing.assert_allclose(squashed[k], np.tanh(cs[k]), atol=1e-6)
        np.testing.assert_allclose(hs[k], o[k] * squashed[k], atol=1e-6)
        end = 0 if d else -1
        np.testing.assert_allclose(cs[k][end], cy[k].detach(), atol=1e-5)
        if d == 0:
            np.testing.assert_allclose(cs[k][1:], f[k][1:] * cs[k][:-1] + i[k][1:] * g_[k][1:], atol=1e-6)


@pytest.mark.parametrize(("layers", "bias", "both", "batch_first"), OPTIONS)
def test_gru(layers: int, bias: bool, both: bool, batch_first: bool) -> None:
    torch.manual_seed(layers)
    module = torch.nn.GRU(INNER, SIZE, layers, bias, batch_first, bidirectional=both)
    directions = 2 if both else 1
    x = torch.randn(BATCH, STEPS, INNER) if batch_first else torch.randn(STEPS, BATCH, INNER)
    h = torch.randn(layers * directions, BATCH, SIZE)
    y, hy = module(x, h)
    count = layers * directions
    traces = {n: [Out((STEPS, BATCH, SIZE)) for _ in range(count)] for n in ("rOut", "zOut", "nOut", "hnOut", "hOut")}
    got = call("aclnnGRU", input=x, params=weights(module), hx=h, train=True, **setting(module, "bidirection"),
               output=Out(tuple(y.shape)), hy=Out(tuple(hy.shape)), **traces)  # fmt: skip
    for g, want in zip(got, (y, hy)):
        assert_same(g, want.detach(), 4)
    z, n, hs = (got[2 + k * count] for k in (1, 2, 4))
    np.testing.assert_allclose(hs[1:], (1 - z[1:]) * n[1:] + z[1:] * hs[:-1], atol=1e-6)
    last = call("aclnnGRU", input=x, params=weights(module), hx=h, train=False, **setting(module, "bidirection"),
                output=Out(tuple(y.shape)), hy=Out(tuple(hy.shape)))  # fmt: skip
    assert_same(last[0], y.detach(), 4)


@pytest.mark.parametrize("wrong", [{"numLayers": 2}, {"hasBias": False}, {"dropout": 0.5, "train": True},
                                   {"batchSizes": np.ones(3, np.int64)}])  # fmt: skip
def test_refusals(wrong: dict[str, Any]) -> None:
    module = torch.nn.GRU(INNER, SIZE)
    values: dict[str, Any] = {"input": torch.randn(STEPS, BATCH, INNER), "params": weights(module), "train": False,
                              **setting(module, "bidirection"), "output": Out((STEPS, BATCH, SIZE)),
                              "hy": Out((1, BATCH, SIZE))}  # fmt: skip
    call("aclnnGRU", **values)
    assert refused("aclnnGRU", **{**values, **wrong}) == 161002
    assert refused("aclnnGRU", **{**values, "hy": Out((2, BATCH, SIZE))}) == 161002


@isolated(ASCEND_EMULATOR_CHIP="310P")
def test_named_weights(rt: Runtime) -> None:
    for both, version in itertools.product((False, True), ("", "V2")):
        torch.manual_seed(1)
        module = torch.nn.LSTM(INNER, SIZE, bidirectional=both).half().float()
        directions = 2 if both else 1
        x, h, c = (torch.randn(n, BATCH, k).half() for n, k in ((STEPS, INNER), (directions, SIZE), (directions, SIZE)))
        y, (hy, cy) = module(x.float(), (h.float(), c.float()))
        names = ["wIh", "wHh", "bIhOptional", "bHhOptional"]
        names += ["wIhReverseOptional", "wHhReverseOptional", "bIhReverseOptional", "bHhReverseOptional"]
        given = dict(zip(names, (w.astype(np.float16) for w in weights(module))))
        settings = {"numLayers": 1, "isbias": True, "batchFirst": False, "bidirection": both}
        if version:
            settings["packed"] = False
        outs = {"yOut": y, "outputHOut": hy, "outputCOut": cy}
        got = call(f"aclnnBidirectionLSTM{version}", x=x, initH=h, initC=c, **given, **settings,
                   **{n: Out(tuple(t.shape), "float16") for n, t in outs.items()})  # fmt: skip
        for g, want in zip(got, outs.values()):
            assert_same(g, want.detach().half(), 2)
        wrong = {n: Out((*t.shape[:-1], 9), "float16") for n, t in outs.items()}
        name = f"aclnnBidirectionLSTM{version}"
        assert refused(name, x=x, initH=h, initC=c, **given, **settings, **wrong) == 161002


def gradients(module: Any, x: Any, states: tuple[Any, ...]) -> tuple[list[np.ndarray], list[Any], list[Any]]:
    """Slopes of the results, and what they give: of the input, of the states, of the weights."""
    x, states = x.requires_grad_(), tuple(s.requires_grad_() for s in states)
    y, last = module(x, states if len(states) == 2 else states[0])
    results = [y, *(last if isinstance(last, tuple) else (last,))]
    slopes = [torch.randn_like(r) for r in results]
    weights_of = [w for group in module.all_weights for w in group]
    found = torch.autograd.grad(results, [x, *states, *weights_of], slopes)
    return [s.numpy() for s in slopes], list(found[: 1 + len(states)]), list(found[1 + len(states) :])


@pytest.mark.parametrize(("layers", "bias", "both", "batch_first"), OPTIONS)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_backward(kind: str, layers: int, bias: bool, both: bool, batch_first: bool) -> None:
    torch.manual_seed(layers)
    module = getattr(torch.nn, kind)(INNER, SIZE, layers, bias, batch_first, bidirectional=both)
    count = layers * (2 if both else 1)
    x = torch.randn(BATCH, STEPS, INNER) if batch_first else torch.randn(STEPS, BATCH, INNER)
    states = tuple(torch.randn(count, BATCH, SIZE) for _ in range(2 if kind == "LSTM" else 1))
    slopes, of_inputs, of_weights = gradients(module, x.clone(), tuple(s.clone() for s in states))
    lstm = kind == "LSTM"
    outs = (
        ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")
        if lstm
        else ("rOut", "zOut", "nOut", "hnOut", "hOut")
    )
    direction = "bidirectional" if lstm else "bidirection"
    traces = {n: [Out((STEPS, BATCH, SIZE)) for _ in range(count)] for n in outs}
    shape = tuple(slopes[0].shape)
    left = call(f"aclnn{kind}", input=x, params=weights(module), hx=list(states) if lstm else states[0], train=True,
                **setting(module, direction), output=Out(shape), hy=Out((count, BATCH, SIZE)),
                **({"cy": Out((count, BATCH, SIZE))} if lstm else {}), **traces)[3 if lstm else 2 :]  # fmt: skip
    if not lstm:  # in the facts' order: output, then the traces, then the last state, wherever it stands
        left = [a for a in left if a.shape == (STEPS, BATCH, SIZE)][-5 * count :]
    parts = [left[k * count : (k + 1) * count] for k in range(len(outs))]
    names = ("i", "g", "f", "o", "h", "c", "tanhc") if lstm else ("r", "z", "n", "hn", "h")
    given: dict[str, Any] = {
        "input": x, "params": weights(module), "hx": list(states) if lstm else states[0], "dy": slopes[0],
        "dh": slopes[1],
        **dict(zip(names, parts)), "hasBias": bias, "numLayers": layers, direction: both, "batchFirst": batch_first,
    }  # fmt: skip
    if lstm:
        given |= {"dc": slopes[2], "dropout": 0.0, "train": True, "outputMask": [True] * 4}
    targets: dict[str, Any] = {"dxOut": Out(tuple(x.shape)), "dhPrevOut": Out((count, BATCH, SIZE)),
                               "dparamsOut": [Out(tuple(w.shape)) for w in of_weights]}  # fmt: skip
    if lstm:
        targets["dcPrevOut"] = Out((count, BATCH, SIZE))
    name = "aclnnLstmBackward" if lstm else "aclnnGRUBackward"
    got = call(name, **given, **targets)
    for g, want in zip(got, [*of_inputs, *of_weights]):
        assert_same(g, want, 20)
    assert refused(name, **{**given, "numLayers": 3}, **targets) == 161002
    assert refused(name, **given, **{**targets, "dxOut": Out((1, 2, 3))}) == 161002
    assert refused(name, **{**given, "dy": None}, **targets) in (161001, 561103)


COUNTS = (3, 2, 2, 1)  # sequences of 4, 3 and 1 steps


def laid_out(packed: bool, data: Any) -> np.ndarray:
    """Rows of a packed sequence as they are, or with a place for every sequence at every step."""
    if packed:
        return data.detach().numpy()
    out = np.zeros((STEPS, BATCH, data.shape[1]), np.float32)
    rows = iter(data.detach().numpy())
    for step, count in enumerate(COUNTS):
        for b in range(count):
            out[step, b] = next(rows)
    return out


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_sequences_of_several_lengths(kind: str, both: bool, packed: bool) -> None:
    torch.manual_seed(3)
    lstm, layers = kind == "LSTM", 2
    module = getattr(torch.nn, kind)(INNER, SIZE, layers, bidirectional=both)
    count = layers * (2 if both else 1)
    x = torch.randn(sum(COUNTS), INNER, requires_grad=True)
    states = tuple(torch.randn(count, BATCH, SIZE, requires_grad=True) for _ in range(2 if lstm else 1))
    sizes = torch.tensor(COUNTS)
    y, last = module(torch.nn.utils.rnn.PackedSequence(x, sizes), states if lstm else states[0])
    results = [y.data, *(last if lstm else (last,))]
    slopes = [torch.randn_like(r) for r in results]
    parameters = [w for group in module.all_weights for w in group]
    found = torch.autograd.grad(results, [x, *states, *parameters], slopes)
    shape = (sum(COUNTS), SIZE) if packed else (STEPS, BATCH, SIZE)
    outs = (
        ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")
        if lstm
        else ("rOut", "zOut", "nOut", "hnOut", "hOut")
    )
    direction = "bidirectional" if lstm else "bidirection"
    given: dict[str, Any] = {"input": laid_out(packed, x), "params": weights(module),
                             "hx": list(states) if lstm else states[0]}  # fmt: skip
    got = call(f"aclnn{kind}", **given, batchSizes=sizes, train=True, **setting(module, direction),
               output=Out((*shape[:-1], results[0].shape[1])), hy=Out((count, BATCH, SIZE)),
               **({"cy": Out((count, BATCH, SIZE))} if lstm else {}),
               **{n: [Out(shape) for _ in range(count)] for n in outs})  # fmt: skip
    assert_same(got[0], laid_out(packed, results[0]), 4)
    for g, want in zip(got[1:], results[1:]):
        assert_same(g, want.detach(), 4)
    parts = [got[len(results) + k * count : len(results) + (k + 1) * count] for k in range(len(outs))]
    names = tuple(name.removesuffix("Out") for name in outs) if not lstm else ("i", "g", "f", "o", "h", "c", "tanhc")
    given |= dict(zip(names, parts)) | {"dy": laid_out(packed, slopes[0]), "dh": slopes[1]}
    options: dict[str, Any] = {"hasBias": True, "numLayers": layers, direction: both, "batchFirst": False}
    given["batchSizesOptional" if lstm else "batchSizes"] = sizes
    targets: dict[str, Any] = {"dxOut": Out(given["input"].shape), "dhPrevOut": Out((count, BATCH, SIZE)),
                               "dparamsOut": [Out(tuple(w.shape)) for w in parameters]}  # fmt: skip
    if lstm:
        given |= {"dc": slopes[2], "dropout": 0.0, "train": True, "outputMask": [True] * 4}
        targets["dcPrevOut"] = Out((count, BATCH, SIZE))
    back = call("aclnnLstmBackward" if lstm else "aclnnGRUBackward", **given, **options, **targets)
    assert_same(back[0], laid_out(packed, found[0]), 20)
    for g, want in zip(back[1:], found[1:]):
        assert_same(g, want, 20)


@pytest.mark.parametrize("sizes", [(3, 3, 2, 1), (2, 3, 2, 1), (4, 2, 1, 1), (3, 3, 2, 0)])
def test_counts_that_are_none(sizes: tuple[int, ...]) -> None:
    module = torch.nn.GRU(INNER, SIZE)
    rows = torch.randn(8, INNER)
    answer = refused("aclnnGRU", input=rows, params=weights(module), batchSizes=np.array(sizes), train=False,
                     **setting(module, "bidirection"), output=Out((8, SIZE)), hy=Out((1, BATCH, SIZE)))  # fmt: skip
    assert answer == 507015


@isolated(ASCEND_EMULATOR_CHIP="310P")
def test_named_weights_and_several_lengths(rt: Runtime) -> None:
    torch.manual_seed(1)
    module = torch.nn.LSTM(INNER, SIZE).half().float()
    x, h, c = (torch.randn(n, BATCH, k).half() for n, k in ((STEPS, INNER), (1, SIZE), (1, SIZE)))
    rows = torch.cat([x[step, :count] for step, count in enumerate(COUNTS)]).float()
    y, (hy, cy) = module(torch.nn.utils.rnn.PackedSequence(rows, torch.tensor(COUNTS)), (h.float(), c.float()))
    given = dict(zip(("wIh", "wHh", "bIhOptional", "bHhOptional"), (w.astype(np.float16) for w in weights(module))))
    got = call("aclnnBidirectionLSTMV2", x=x, initH=h, initC=c, **given, numLayers=1, isbias=True, batchFirst=False,
               bidirection=False, packed=True, batchSizeOptional=np.array(COUNTS),
               yOut=Out((STEPS, BATCH, SIZE), "float16"), outputHOut=Out((1, BATCH, SIZE), "float16"),
               outputCOut=Out((1, BATCH, SIZE), "float16"))  # fmt: skip
    for g, want in zip(got, (laid_out(False, y.data), hy.detach().numpy(), cy.detach().numpy())):
        assert_same(g, want.astype(np.float16), 2)
