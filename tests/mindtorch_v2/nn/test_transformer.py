"""Attention and transformers beyond PyTorch's table of modules: every option, the fast way, masks, warnings.

Invariant: a case takes a library and returns tensors and plain values; it runs on PyTorch unchanged.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

INF = float("inf")
NESTED = "The PyTorch API of nested tensors"


def values(library: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return ((library.arange(count, dtype=library.float64) * 0.7371) % 2 - 1).reshape(shape)


def said(call: Any) -> tuple[Any, list[str]]:
    """What a call gives, or the error it raises, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = type(error).__name__, str(error).replace("mindtorch_v2", "torch")
    return result, sorted(str(w.message) for w in caught if not str(w.message).startswith(NESTED))


def same(case: Any, where: Any = "", stride: bool = True) -> None:
    actual, mine = said(lambda: case(torch))
    expected, theirs = said(lambda: case(_oracle.load()))
    assert mine == theirs, where
    _oracle.assert_same(actual, expected, where=str(where), stride=stride)


def mode(library: Any, name: str) -> Any:
    """Recorded, or not: then PyTorch may take its fast way."""
    return library.no_grad() if name == "plain" else contextlib.nullcontext()


def padding(library: Any, kind: str, batched: bool, source: int) -> Any:
    if kind == "none":
        return None
    mask = library.zeros(2, source, dtype=library.bool)
    mask[0, source - 1] = True
    mask[1, source - 2 :] = True
    mask = mask if batched else mask[0]
    return mask if kind == "bool" else library.zeros(mask.shape, dtype=library.float64).masked_fill_(mask, -INF)


def attention_mask(library: Any, kind: str, heads: int, length: int, source: int) -> Any:
    if kind == "none":
        return None
    mask = library.ones(length, source, dtype=library.bool).triu(1)
    if kind == "float":
        return values(library, length, source)
    return mask if kind == "bool" else mask.expand(heads, length, source).clone()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
    {"kdim": 3, "vdim": 5},
    {"dropout": 0.5},
]


@pytest.mark.oracle
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", ["recorded", "plain", "training"])
def test_attention(how: str, options: dict[str, Any]) -> None:
    own = "kdim" not in options

    def case(library: Any, batch_first: bool, batched: bool, pads: str, masks: str, weights: Any) -> Any:
        library.manual_seed(3)
        module = library.nn.MultiheadAttention(4, 2, batch_first=batch_first, dtype=library.float64, **options)
        module.train(how == "training")
        source = 4 if own else 5

        def sequence(length: int, width: int) -> Any:
            shape = (2, length, width) if batch_first else (length, 2, width)
            return values(library, *shape) if batched else values(library, length, width)

        query = sequence(4, 4)
        key, value = (query, query) if own else (sequence(source, 3), sequence(source, 5))
        library.manual_seed(5)
        with mode(library, how):
            found = module(
                query,
                key,
                value,
                padding(library, pads, batched, source),
                weights is not None,
                attention_mask(library, masks, (2 if batched else 1) * 2, 4, source),
                weights is True,
            )
        if how != "plain":
            sum((t * t).sum() for t in found if t is not None).backward()
            grads = [p.grad for p in module.parameters()]
            return [*found, *grads, library.rand(1)]
        return list(found)

    kinds = itertools.product(
        (False, True), (False, True), ("none", "bool", "float"), ("none", "bool", "float", "heads"), (True, False, None)
    )
    for number, kind in enumerate(kinds):
        if number % 3 == len(str(options)) % 3:
            same(lambda library, kind=kind: case(library, *kind), kind)


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}, {"bias": False}], ids=str)
def test_encoder_layers(options: dict[str, Any]) -> None:
    def case(library: Any, batch_first: bool, pads: str, masks: str, how: str) -> Any:
        library.manual_seed(3)
        layer = library.nn.TransformerEncoderLayer(
            4, 2, 6, 0.3, batch_first=batch_first, dtype=library.float64, **options
        ).train(how == "training")
        library.manual_seed(5)
        x = values(library, 2, 4, 4) if batch_first else values(library, 4, 2, 4)
        with mode(library, how):
            out = layer(x, attention_mask(library, masks, 4, 4, 4), padding(library, pads, True, 4))
        return [out, library.rand(1)]

    for kind in itertools.product(
        (False, True), ("none", "bool", "float"), ("none", "bool", "float", "heads"), ("training", "recorded", "plain")
    ):
        same(lambda library, kind=kind: case(library, *kind), kind)


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}], ids=str)
def test_autocast(options: dict[str, Any]) -> None:
    """On the fast way a sum has the dtype of the product that it is added to; else it is promoted."""

    def case(library: Any, dtype: str, masks: str, how: str) -> Any:
        library.manual_seed(3)
        layers = library.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = library.nn.TransformerEncoder(layers, 2).eval()
        x = values(library, 2, 4, 4).to(getattr(library, dtype))
        with mode(library, how), library.autocast("cpu", dtype=library.bfloat16):
            out = model(x, attention_mask(library, masks, 4, 4, 4))
        return out

    for kind in itertools.product(("float32", "bfloat16"), ("none", "bool"), ("recorded", "plain")):
        mine, theirs = case(torch, *kind), case(_oracle.load(), *kind)
        assert _oracle.dtype_name(mine.dtype) == _oracle.dtype_name(theirs.dtype), kind
        _oracle.assert_same(mine.detach().float(), theirs.detach().float(), 0.05, 0.05, str(kind))


def test_a_mask_of_numbers_hides_where_nothing_is_recorded() -> None:
    """As PyTorch's fast way: what is not zero is hidden, and not added."""
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True).eval()
    x = torch.randn(2, 3, 4)
    mask = torch.tensor([[0.0, 0.5, 0.0]] * 3)
    with torch.no_grad():
        assert torch.equal(layer(x, mask), layer(x, mask != 0))
    assert not torch.allclose(layer(x, mask), layer(x, mask != 0))


@pytest.mark.oracle
def test_padding_in_a_stack_of_layers() -> None:
    """Zeros where PyTorch would leave tokens out of a nested tensor, and only there."""
    masks = {
        "left": [[0, 0, 0, 1], [0, 0, 1, 1]],
        "one whole sequence": [[1, 1, 1, 1], [0, 0, 1, 1]],
        "everything": [[1, 1, 1, 1]] * 2,
        "nothing": [[0, 0, 0, 0]] * 2,
        "right": [[1, 0, 0, 0], [0, 0, 1, 1]],
    }
    stacks: list[dict[str, Any]] = [{}, {"enable_nested_tensor": False}, {"mask_check": False}]
    layers: list[dict[str, Any]] = [{}, {"norm_first": True}, {"batch_first": False}, {"nhead": 1}, {"bias": False}]
    layers += [{"activation": "gelu"}, {"layer_norm_eps": 0.1}]

    def case(library: Any, mask: Any, stack: Any, options: Any, how: str, norm: bool, numbers: bool) -> Any:
        library.manual_seed(3)
        given = {"nhead": 2, "batch_first": True, "dim_feedforward": 6, "dtype": library.float64} | options
        layer = library.nn.TransformerEncoderLayer(4, **given)
        last = library.nn.LayerNorm(4, dtype=library.float64) if norm else None
        encoder = library.nn.TransformerEncoder(layer, 2, last, **stack).eval()
        hidden = library.tensor(mask, dtype=library.bool)
        if numbers:
            hidden = library.zeros(2, 4, dtype=library.float64).masked_fill_(hidden, -0.5)
        x = values(library, 2, 4, 4) if given["batch_first"] else values(library, 4, 2, 4)
        with mode(library, how):
            return encoder(x, src_key_padding_mask=hidden)

    cases: list[Any] = [
        (m, s, {}, "plain", n, k) for m in masks for s in stacks for n in (False, True) for k in (False, True)
    ]
    cases += [("left", {}, o, h, True, False) for o in layers for h in ("plain", "recorded")]
    for mask, stack, options, how, norm, numbers in cases:
        where = mask, stack, options, how, norm, numbers
        same(lambda library, w=where: case(library, masks[w[0]], *w[1:]), where, stride=False)


@pytest.mark.oracle
def test_the_fast_way_can_be_forbidden() -> None:
    def case(library: Any) -> Any:
        library.manual_seed(3)
        layer = library.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dtype=library.float64)
        encoder = library.nn.TransformerEncoder(layer, 1).eval()
        mask = library.tensor([[False, True], [False, False]])
        switch = library.backends.mha
        before = switch.get_fastpath_enabled()
        switch.set_fastpath_enabled(False)
        try:
            with library.no_grad():
                return [before, encoder(values(library, 2, 2, 4), src_key_padding_mask=mask)]
        finally:
            switch.set_fastpath_enabled(True)

    same(case)


@pytest.mark.oracle
def test_hooks_are_called_where_nothing_is_recorded() -> None:
    def case(library: Any) -> Any:
        library.manual_seed(3)
        layer = library.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dtype=library.float64).eval()
        seen: list[Any] = []
        layer.linear2.register_forward_hook(lambda module, args, output: seen.append(output))
        with library.no_grad():
            return [layer(values(library, 2, 3, 4)), *seen]

    same(case)


@pytest.mark.oracle
@pytest.mark.parametrize("how", ["training", "plain"])
def test_whole_transformers(how: str) -> None:
    def case(library: Any, batch_first: bool, norm_first: bool, causal: Any, masked: bool) -> Any:
        library.manual_seed(3)
        model = library.nn.Transformer(
            4, 2, 1, 2, 6, 0.2, batch_first=batch_first, norm_first=norm_first, dtype=library.float64
        ).train(how == "training")
        shapes = ((2, 4, 4), (2, 3, 4)) if batch_first else ((4, 2, 4), (3, 2, 4))
        src, tgt = (values(library, *shape) for shape in shapes)
        options: dict[str, Any] = {}
        if masked:
            options["tgt_mask"] = model.generate_square_subsequent_mask(3, dtype=library.float64)
            options["src_mask"] = library.ones(4, 4, dtype=library.bool).triu(1)
            options["memory_key_padding_mask"] = padding(library, "bool", True, 4)
        library.manual_seed(5)
        with mode(library, how):
            return [model(src, tgt, **options, tgt_is_causal=causal), library.rand(1)]

    for kind in itertools.product((False, True), (False, True), (None, True, False), (False, True)):
        same(lambda library, kind=kind: case(library, *kind), kind, stride=False)


@pytest.mark.oracle
def test_masks_of_what_comes_later() -> None:
    def case(library: Any) -> Any:
        make = library.nn.Transformer.generate_square_subsequent_mask
        detect = library.nn.modules.transformer._detect_is_causal_mask
        mask = make(3)
        answers = [detect(None), detect(None, True), detect(mask), detect(mask, False), detect(mask, None, 4)]
        return [make(3), make(2, dtype=library.float64), *answers, detect(mask.clone().fill_(0.0))]

    same(case)


@pytest.mark.oracle
def test_warnings_and_errors_of_options() -> None:
    def case(library: Any) -> Any:
        nn = library.nn
        odd = nn.TransformerEncoderLayer(3, 3, batch_first=True)
        layers = [
            nn.TransformerEncoderLayer(4, 2),
            nn.TransformerEncoderLayer(4, 2, batch_first=True, norm_first=True),
            nn.TransformerEncoderLayer(4, 2, batch_first=True, bias=False),
            nn.TransformerEncoderLayer(4, 2, batch_first=True, activation=library.tanh),
            odd,
            nn.TransformerDecoderLayer(4, 2),
        ]
        return [nn.TransformerEncoder(layer, 1).use_nested_tensor for layer in layers]

    same(case)


def test_copies_and_old_states() -> None:
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, activation="gelu")
    assert pickle.loads(pickle.dumps(layer)).activation is torch.nn.functional.gelu
    for made in (layer, torch.nn.TransformerDecoderLayer(4, 2, 6)):
        state = dict(made.__dict__)
        del state["activation"]
        again = object.__new__(type(made))
        again.__setstate__(state)
        assert again.activation is torch.nn.functional.relu
    attention = torch.nn.MultiheadAttention(4, 2)
    state = dict(attention.__dict__)
    del state["_qkv_same_embed_dim"]
    again = torch.nn.MultiheadAttention.__new__(torch.nn.MultiheadAttention)
    again.__setstate__(state)
    assert again._qkv_same_embed_dim
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not elu"):
        torch.nn.TransformerEncoderLayer(4, 2, activation="elu")


@pytest.mark.oracle
def test_initial_weights_of_whole_models() -> None:
    oracle = _oracle.load()
    oracle.manual_seed(1)
    theirs = oracle.nn.Transformer(8, 2, 2, 2, 16)
    torch.manual_seed(1)
    ours = torch.nn.Transformer(8, 2, 2, 2, 16)
    assert repr(ours) == repr(theirs)
    for (name, mine), (key, other) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
        assert name == key and oracle.equal(_oracle.to_oracle(mine), other), name
