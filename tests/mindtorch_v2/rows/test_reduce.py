"""Reductions, products, softmax, norms, losses, sorts: named results, rows that only `torch.ops.aten` names, dtypes,
NaN, large sizes, gradients and their gradients.

Invariant: rows are called by PyTorch's names with PyTorch's order of arguments, so one table serves both libraries.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch

NONE, MEAN, SUM = 0, 1, 2
nan = float("nan")


def row(name: str, *args: Any) -> Any:
    """An operator by its name in `aten`."""
    if IS_ORACLE:
        return getattr(torch.ops.aten, name)(*args)
    from mindtorch_v2._dispatch import registry

    op = registry.get(name)
    full = args + tuple(a.default for a in op.schema.args[len(args) :])
    return op.call(full)


def chain(t: Any, length: int = 4) -> list[str]:
    """Names of the nodes behind a tensor, following the first edge."""
    names: list[str] = []
    node = t.grad_fn
    while node is not None and len(names) < length:
        name = node.name()
        if "AccumulateGrad" not in name:
            names.append(name)
        node = node.next_functions[0][0] if node.next_functions else None
    return names


# -- named results ------------------------------------------------------------------------------------------------
def test_results_have_names_and_pytorchs_text() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
    got: Any = x.max(0)
    assert got.values.tolist() == [7.0, 5.0] and got.indices.tolist() == [1, 0]
    assert got[0] is got.values and tuple(got)[1] is got.indices
    values, indices = torch.min(x, dim=1)
    assert values.tolist() == [1.0, 3.0] and indices.tolist() == [0, 1]
    assert repr(got) == "torch.return_types.max(\nvalues=tensor([7., 5.]),\nindices=tensor([1, 0]))"
    assert isinstance(x.max(0), torch.return_types.max) and isinstance(x.max(0), tuple)
    assert type(x.sort()).__name__ == "sort" and type(x.topk(1)).__name__ == "topk"
    assert type(x.aminmax()).__name__ == "aminmax" and x.aminmax().min.item() == 1.0
    assert got.n_fields == 2


def test_named_results_are_made_from_sequences() -> None:
    assert torch.return_types.sort((1, 2)).indices == 2
    with pytest.raises(TypeError, match="2-sequence"):
        torch.return_types.max((1, 2, 3))
    with pytest.raises(TypeError):
        torch.return_types.max(5)


@mindtorch_only
def test_named_results_can_be_pickled() -> None:
    got = pickle.loads(pickle.dumps(torch.return_types.max((1, 2))))
    assert type(got) is torch.return_types.max and got == (1, 2)


def test_out_of_several_results() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    got = torch.max(x, 0, out=(values, indices))
    assert values.tolist() == [7.0, 5.0] and indices.tolist() == [1, 0]
    assert got[0] is values
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        torch.max(x, 0, out=(torch.empty(2, dtype=torch.float64), indices))


def test_out_of_several_results_once_they_were_given() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    for out in ((values, indices), [values, indices], (values, indices)):
        got = torch.max(x, 0, out=out)
        assert got.values is values and got.indices is indices and values.tolist() == [7.0, 5.0]
    for wrong in ((values,), (values, indices, values), values, (values, 1), (values, None)):
        with pytest.raises(TypeError):
            torch.max(x, 0, out=wrong)
    with pytest.raises(RuntimeError, match="dtype"):
        torch.max(x, 0, out=(values, values))
    q, r = torch.linalg.qr(x, out=(torch.empty(0), torch.empty(0)))
    assert torch.allclose(q @ r, x)


# -- which node ---------------------------------------------------------------------------------------------------
def test_nodes_of_reductions() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]], requires_grad=True)
    for call, name in (
        (lambda: x.sum(), "SumBackward0"),
        (lambda: x.sum(0), "SumBackward1"),
        (lambda: x.mean(), "MeanBackward0"),
        (lambda: x.mean(1), "MeanBackward1"),
        (lambda: x.prod(), "ProdBackward0"),
        (lambda: x.prod(1), "ProdBackward1"),
        (lambda: x.max(), "MaxBackward1"),
        (lambda: x.max(0)[0], "MaxBackward0"),
        (lambda: x.max(x), "MaximumBackward0"),
        (lambda: x.var(), "VarBackward0"),
        (lambda: x.std(0), "StdBackward0"),
        (lambda: x.norm(), "LinalgVectorNormBackward0"),
        (lambda: x.sort(stable=True)[0], "SortBackward1"),
        (lambda: x.median(), "MedianBackward0"),
        (lambda: x.median(0)[0], "MedianBackward1"),
        (lambda: torch.softmax(x, 0), "SoftmaxBackward0"),
        (lambda: torch.log_softmax(x, 0), "LogSoftmaxBackward0"),
        (lambda: torch.layer_norm(x, (2,)), "NativeLayerNormBackward0"),
        (lambda: row("mse_loss", x, x * 2), "MseLossBackward0"),
        (lambda: torch.embedding(x, torch.tensor([0])), "EmbeddingBackward0"),
    ):
        assert chain(call(), 1) == [name]
    assert not x.argmax().requires_grad and not x.any().requires_grad
    assert not x.max(0).indices.requires_grad


def test_nodes_of_products() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]], requires_grad=True)
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.ones(3, 2, 2, requires_grad=True)
    for call, names in (
        (lambda: x @ x, ["MmBackward0"]),
        (lambda: x @ v, ["MvBackward0"]),
        (lambda: v @ v, ["DotBackward0"]),
        (lambda: v @ x, ["SqueezeBackward4", "MmBackward0", "UnsqueezeBackward0"]),
        (lambda: b @ b, ["UnsafeViewBackward0", "BmmBackward0", "ViewBackward0", "ExpandBackward0"]),
        (lambda: b @ x, ["UnsafeViewBackward0", "MmBackward0", "ViewBackward0"]),
        (lambda: row("linear", x, x, v), ["AddmmBackward0"]),
        (lambda: row("linear", x, x), ["MmBackward0"]),
        (lambda: row("linear", b, x, v), ["ViewBackward0", "AddmmBackward0"]),
        (lambda: row("cross_entropy_loss", x, torch.tensor([0, 1])), ["NllLossBackward0", "LogSoftmaxBackward0"]),
    ):
        assert chain(call()) == names
    node = row("linear", x, x, v).grad_fn
    assert node.next_functions[2][0].name() == "TBackward0"


def test_weight_gradient_has_the_weights_layout() -> None:
    w = torch.ones(3, 2, requires_grad=True)
    row("linear", torch.ones(4, 2), w, torch.ones(3)).sum().backward()
    assert w.grad.stride() == w.stride() and w.grad.tolist() == [[4.0, 4.0]] * 3


# -- NaN, empty, dtypes -------------------------------------------------------------------------------------------
def test_nan_wins() -> None:
    x = torch.tensor([[1.0, nan, 3.0], [nan, 2.0, nan]])
    assert math.isnan(x.max().item()) and math.isnan(x.amin().item())
    assert x.argmax(1).tolist() == [1, 0] and x.argmin(1).tolist() == [1, 0]
    assert x.max(1).indices.tolist() == [1, 0]
    assert x.sort(1).indices.tolist() == [[0, 2, 1], [1, 0, 2]]
    assert x.nansum().item() == 6.0 and torch.nanmean(x).item() == 2.0
    assert x[0].nanmedian().item() == 1.0 and math.isnan(x[0].median().item())
    assert x.topk(1, 1).indices.tolist()[0] == [1]


def test_empty_reductions() -> None:
    x = torch.empty(0, 3)
    assert x.sum().item() == 0.0 and x.prod().item() == 1.0 and math.isnan(x.mean().item())
    assert x.sum(0).tolist() == [0.0] * 3 and x.any().item() is False and x.all().item() is True
    for name, kind in (("max", RuntimeError), ("amax", RuntimeError), ("argmax", IndexError)):
        with pytest.raises(kind, match=rf"{name}\(\): Expected reduction dim to be specified for input.numel\(\) == 0"):
            getattr(x, name)()
        with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim 0 to have non-zero size"):
            getattr(x, name)(0)
    assert x.amax(1).shape == (0,)
    assert torch.mm(torch.ones(2, 0), torch.ones(0, 3)).tolist() == [[0.0] * 3] * 2


def test_no_dimensions_means_all_or_none() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    assert x.sum(()).item() == 6.0 and x.amax(()).item() == 3.0
    assert x.any(dim=()).tolist() == [[False, True], [True, True]]
    assert x.sum((), keepdim=True).shape == (1, 1)


def test_dtypes_of_results() -> None:
    i = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
    assert i.sum().dtype == torch.int64 and i.prod(0).dtype == torch.int64 and i.cumsum(0).dtype == torch.int64
    assert i.sum(dtype=torch.float32).dtype == torch.float32 and i.amax().dtype == torch.int32
    assert i.bool().sum().dtype == torch.int64 and i.to(torch.uint8).any().dtype == torch.uint8
    assert i.mean(dtype=torch.float64).item() == 2.5
    with pytest.raises(RuntimeError, match="could not infer output dtype. Input dtype must be either a floating point"):
        i.mean()
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex dtypes"):
        i.var()


def test_beta_zero_ignores_the_addend() -> None:
    bad = torch.full((2, 2), nan)
    one = torch.ones(2, 2)
    assert torch.addmm(bad, one, one, beta=0).tolist() == [[2.0, 2.0]] * 2
    assert torch.addmv(bad[0], one, one[0], beta=0).tolist() == [2.0, 2.0]
    assert torch.baddbmm(bad[None], one[None], one[None], beta=0).tolist() == [[[2.0, 2.0]] * 2]


def test_integer_products_wrap_and_drop_fractions() -> None:
    x = torch.full((2, 2), 100, dtype=torch.uint8)
    assert torch.mm(x, x).tolist() == [[20000 % 256] * 2] * 2
    i = torch.ones(2, 2, dtype=torch.int64)
    assert torch.addmm(i, i, i, beta=1.5, alpha=2.9).tolist() == [[5, 5]] * 2


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmax", "any", "prod", "logsumexp"])
def test_dimensions_are_checked(name: str) -> None:
    x = torch.ones(2, 3)
    text = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"
    with pytest.raises(IndexError, match=text):
        getattr(x, name)(2)
    if name not in ("argmax", "prod"):
        with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
            getattr(x, name)((0, -2))


def test_embedding_refuses() -> None:
    w = torch.ones(2, 3)
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.embedding(w, torch.tensor([2]))
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        torch.embedding(w[0], torch.tensor([0]))
    with pytest.raises(RuntimeError, match="to have one of the following scalar types: Long, Int"):
        torch.embedding(w, torch.tensor([0.0]))


def test_sparse_gradients_of_embedding_have_a_row_for_each_index() -> None:
    w = torch.ones(2, 3, requires_grad=True)
    torch.embedding(w, torch.tensor([0, 0]), -1, False, True).sum().backward()
    assert w.grad.is_sparse and w.grad._nnz() == 2 and w.grad.to_dense().tolist() == [[2.0] * 3, [0.0] * 3]


def test_embedding_renorm_scales_the_named_rows() -> None:
    w = torch.tensor([[3.0, 4.0], [0.5, 0.5], [6.0, 8.0]])
    torch.embedding_renorm_(w, torch.tensor([0, 1, 0]), 1.0, 2.0)
    assert w.tolist() == [pytest.approx([0.6, 0.8]), [0.5, 0.5], [6.0, 8.0]] and w._version == 1


def test_nll_refuses() -> None:
    x = torch.ones(2, 3)
    for target, kind, text in (
        (torch.tensor([0, 3]), IndexError, "Target 3 is out of bounds."),
        (torch.tensor([0]), ValueError, r"Expected input batch_size \(2\) to match target batch_size \(1\)."),
        (torch.tensor([0.0, 1.0]), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ):
        with pytest.raises(kind, match=text):
            row("nll_loss_nd", x, target)
        with pytest.raises(kind, match=text):
            row("cross_entropy_loss", x, target)


def test_dropout() -> None:
    x = torch.ones(40, 50, requires_grad=True)
    assert torch.dropout(x, 0.0, True) is x and torch.dropout(x, 0.5, False) is x
    y = torch.dropout(x, 0.25, True)
    assert sorted({v for line in y.tolist() for v in line}) == pytest.approx([0.0, 4 / 3])
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()) and 0.6 < (y != 0).float().mean().item() < 0.9
    z = torch.ones(4, 4)
    assert torch.dropout_(z, 1.0, True) is z and not z.any().item()
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1, but got 2"):
        torch.dropout(x, 2.0, True)


def test_dropout_draws_as_the_oracle(oracle: Any) -> None:
    oracle.manual_seed(5)
    expected = oracle.dropout(oracle.ones(30, 7), 0.3, True)
    torch.manual_seed(5)
    _oracle.assert_same(torch.dropout(torch.ones(30, 7), 0.3, True), expected)


# -- against the oracle: rows without a public function -----------------------------------------------------------
Arguments = Callable[[Any], "list[Any]"]


def _made(o: Any, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    return o.rand(shape, dtype=o.float64) * (high - low) + low


CASES: list[tuple[str, str, Arguments]] = []
for _reduction in (NONE, MEAN, SUM):
    _label = ("none", "mean", "sum")[_reduction]
    for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        CASES.append((_name, _label, lambda o, r=_reduction: [_made(o, 3, 4), _made(o, 3, 4), r]))
    CASES += [
        ("smooth_l1_loss", f"beta-{_label}", lambda o, r=_reduction: [_made(o, 3, 4), _made(o, 3, 4), r, 0.3]),
        ("smooth_l1_loss", f"zero-{_label}", lambda o, r=_reduction: [_made(o, 3), _made(o, 3), r, 0.0]),
        ("huber_loss", f"delta-{_label}", lambda o, r=_reduction: [_made(o, 3, 4), _made(o, 3, 4), r, 0.7]),
        (
            "binary_cross_entropy",
            _label,
            lambda o, r=_reduction: [_made(o, 3, 4, low=0.1, high=0.9), _made(o, 3, 4, low=0.1, high=0.9), None, r],
        ),
        (
            "binary_cross_entropy",
            f"weight-{_label}",
            lambda o, r=_reduction: [
                _made(o, 3, 4, low=0.1, high=0.9),
                _made(o, 3, 4, low=0.1, high=0.9),
                o.rand(4, dtype=o.float64),
                r,
            ],
        ),
        (
            "binary_cross_entropy_with_logits",
            _label,
            lambda o, r=_reduction: [_made(o, 3, 4), o.rand(3, 4, dtype=o.float64), None, None, r],
        ),
        (
            "binary_cross_entropy_with_logits",
            f"weights-{_label}",
            lambda o, r=_reduction: [
                _made(o, 3, 4),
                o.rand(3, 4, dtype=o.float64),
                o.rand(3, 4, dtype=o.float64),
                o.rand(4, dtype=o.float64),
                r,
            ],
        ),
        ("kl_div", _label, lambda o, r=_reduction: [_made(o, 3, 4), _made(o, 3, 4, low=0.1, high=1.0), r]),
        ("nll_loss_nd", _label, lambda o, r=_reduction: [_made(o, 4, 3), o.tensor([0, 2, -100, 1]), None, r]),
        (
            "nll_loss_nd",
            f"weight-{_label}",
            lambda o, r=_reduction: [
                _made(o, 4, 3),
                o.tensor([0, 2, 2, 1]),
                o.tensor([1.0, 2.0, 0.5], dtype=o.float64),
                r,
                1,
            ],
        ),
        (
            "nll_loss_nd",
            f"places-{_label}",
            lambda o, r=_reduction: [_made(o, 2, 3, 4, 5), o.randint(0, 3, (2, 4, 5)), None, r],
        ),
        (
            "nll_loss_nd",
            f"3d-{_label}",
            lambda o, r=_reduction: [_made(o, 2, 3, 4), o.randint(0, 3, (2, 4)), o.rand(3, dtype=o.float64), r],
        ),
        ("nll_loss_nd", f"one-{_label}", lambda o, r=_reduction: [_made(o, 3), o.tensor(2), None, r]),
        ("cross_entropy_loss", _label, lambda o, r=_reduction: [_made(o, 4, 3), o.tensor([0, 2, -100, 1]), None, r]),
        (
            "cross_entropy_loss",
            f"smooth-{_label}",
            lambda o, r=_reduction: [_made(o, 4, 3), o.tensor([0, 2, -100, 1]), None, r, -100, 0.2],
        ),
        (
            "cross_entropy_loss",
            f"smooth-weight-{_label}",
            lambda o, r=_reduction: [
                _made(o, 4, 3),
                o.tensor([0, 2, -100, 1]),
                o.rand(3, dtype=o.float64) + 0.1,
                r,
                -100,
                0.2,
            ],
        ),
        (
            "cross_entropy_loss",
            f"probabilities-{_label}",
            lambda o, r=_reduction: [
                _made(o, 4, 3),
                o.rand(4, 3, dtype=o.float64),
                o.rand(3, dtype=o.float64),
                r,
                -100,
                0.1,
            ],
        ),
        (
            "cross_entropy_loss",
            f"places-{_label}",
            lambda o, r=_reduction: [_made(o, 2, 3, 4), o.randint(0, 3, (2, 4)), None, r],
        ),
    ]
CASES += [
    ("linear", "plain", lambda o: [_made(o, 4, 3), _made(o, 2, 3), _made(o, 2)]),
    ("linear", "batch", lambda o: [_made(o, 2, 4, 3), _made(o, 2, 3), _made(o, 2)]),
    ("linear", "strided", lambda o: [_made(o, 4, 2, 3).transpose(0, 1), _made(o, 2, 3), _made(o, 2)]),
    ("linear", "vector", lambda o: [_made(o, 3), _made(o, 2, 3), _made(o, 2)]),
    ("linear", "no bias", lambda o: [_made(o, 2, 4, 3), _made(o, 2, 3)]),
    ("native_layer_norm", "all", lambda o: [_made(o, 3, 4), [4], _made(o, 4), _made(o, 4), 1e-5]),
    ("native_layer_norm", "two", lambda o: [_made(o, 2, 3, 4), [3, 4], None, None, 1e-5]),
    ("native_layer_norm", "weight", lambda o: [_made(o, 4, 3).t(), [4], _made(o, 4), None, 1e-3]),
    ("embedding", "padding", lambda o: [_made(o, 4, 3), o.tensor([[0, 1], [1, 3]]), 1]),
    ("embedding", "frequency", lambda o: [_made(o, 4, 3), o.tensor([0, 1, 1, 3]), -1, True]),
    ("linalg_vector_norm", "two", lambda o: [_made(o, 3, 4), 2, [1]]),
    ("linalg_vector_norm", "three", lambda o: [_made(o, 3, 4), 3, None]),
    ("linalg_vector_norm", "half", lambda o: [_made(o, 3, 4, low=0.5), 0.5, [0], True]),
    ("linalg_vector_norm", "most", lambda o: [_made(o, 3, 4), math.inf, [1]]),
    ("native_dropout_backward", "plain", lambda o: [_made(o, 3), o.tensor([True, False, True]), 2.0]),
]


def _differentiable(oracle: Any, args: list[Any]) -> list[int]:
    return [i for i, a in enumerate(args) if isinstance(a, oracle.Tensor) and a.is_floating_point() and i not in (5,)]


@pytest.mark.parametrize(("name", "label", "make"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_rows_agree_with_the_oracle(oracle: Any, name: str, label: str, make: Arguments) -> None:
    """Values, gradients with respect to every float argument, and gradients of those."""
    oracle.manual_seed(3)
    args = make(oracle)
    theirs_op = getattr(oracle.ops.aten, name)
    wanted = [
        i
        for i in _differentiable(oracle, args)
        if not (name.startswith("nll") or "entropy" in name)
        or i < 1
        or ("binary" in name and i < 2)
        or (name == "cross_entropy_loss" and i == 1)
    ]
    leaves = [args[i].detach().clone() for i in wanted]
    full = list(args)
    for i, leaf in zip(wanted, leaves):
        full[i] = leaf.requires_grad_()
    mine = [_oracle.convert_argument(a) for a in full]
    mine = [tuple(a) if isinstance(a, list) else a for a in mine]
    expected, actual = theirs_op(*full), row(name, *mine)
    _oracle.assert_same(actual, expected, where=name)
    if isinstance(expected, tuple):
        expected, actual = expected[0], actual[0]
    seed = oracle.rand(expected.shape, dtype=expected.dtype)
    first = oracle.autograd.grad(expected, leaves, seed, create_graph=True, allow_unused=True)
    inputs = [mine[i] for i in wanted]
    got = torch.autograd.grad(actual, inputs, _oracle.from_oracle(seed), create_graph=True, allow_unused=True)
    for g, e in zip(got, first):
        assert (g is None) == (e is None)
        if e is not None:
            _oracle.assert_same(g, e, where=f"{name} gradient", stride=False)
    pairs = [(g, e) for g, e in zip(got, first) if e is not None and e.requires_grad]
    if not pairs:
        return
    assert all(g.requires_grad for g, _ in pairs)
    weights = [oracle.rand(e.shape, dtype=e.dtype) for _, e in pairs]
    second = oracle.autograd.grad([e for _, e in pairs], leaves, weights, allow_unused=True)
    again = torch.autograd.grad(
        [g for g, _ in pairs], inputs, [_oracle.from_oracle(w) for w in weights], allow_unused=True
    )
    for g, e in zip(again, second):
        if e is None:
            assert g is None or not g.any().item()
        else:
            assert g is not None or not e.any().item()
            if g is not None:
                # clone() gives memory to PyTorch's zeros that have none.
                _oracle.assert_same(g.clone(), e.clone(), where=f"{name} second gradient", stride=False)


# -- against the oracle: sizes that take other paths --------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int64"])
@pytest.mark.parametrize("layout", ["plain", "turned", "strided", "expanded"])
def test_large_products(oracle: Any, dtype: str, layout: str) -> None:
    oracle.manual_seed(1)
    n = 80

    def made(*shape: int) -> Any:
        t = oracle.randint(-3, 4, shape).to(getattr(oracle, dtype))
        if layout == "turned":
            return t.transpose(-1, -2).contiguous().transpose(-1, -2)
        if layout == "strided":
            return oracle.stack([t, t], -1)[..., 0]
        if layout == "expanded":
            return t[..., :1].expand(t.shape)
        return t

    a, b, v, c = made(n, n), made(n, n), made(2, n)[0], made(n, n)
    ours = [_oracle.convert_argument(t) for t in (a, b, v, c)]
    for call in (
        lambda lib, x, y, w, z: lib.mm(x, y),
        lambda lib, x, y, w, z: lib.addmm(z, x, y, beta=2, alpha=3),
        lambda lib, x, y, w, z: lib.bmm(x[None].expand(2, n, n), y[None].expand(2, n, n)),
        lambda lib, x, y, w, z: lib.mv(x, w),
        lambda lib, x, y, w, z: lib.addmv(w, x, w, beta=2),
        lambda lib, x, y, w, z: lib.dot(w, w),
        lambda lib, x, y, w, z: lib.baddbmm(z[None], x[None], y[None], beta=2),
    ):
        _oracle.assert_same(call(torch, *ours), call(oracle, a, b, v, c), where=f"{dtype} {layout}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8", "uint8", "bool"])
def test_large_reductions(oracle: Any, dtype: str) -> None:
    oracle.manual_seed(2)
    x = (oracle.rand(70, 33, 41) * 3).to(getattr(oracle, dtype))
    mine = _oracle.from_oracle(x)
    for view in (
        lambda t: t,
        lambda t: t.transpose(0, 2),
        lambda t: t[::2, :, ::3],
        lambda t: t[:, :1].expand(70, 33, 41),
    ):
        for call in (
            lambda t: t.sum(),
            lambda t: t.sum(1),
            lambda t: t.sum((0, 2), keepdim=True),
            lambda t: t.amax(0),
            lambda t: t.max(2),
            lambda t: t.min(0),
            lambda t: t.any(1),
            lambda t: t.all(),
            lambda t: t.cumsum(1),
            lambda t: t.count_nonzero(0),
        ):
            _oracle.assert_same(
                call(view(mine)), call(view(x)), where=dtype, rtol=1e-3 if dtype == "float16" else 1e-5, atol=1e-4
            )


def test_argmax_takes_the_first(oracle: Any) -> None:
    x = oracle.randint(0, 3, (50, 60)).float()
    mine = _oracle.from_oracle(x)
    for call in (lambda t: t.argmax(), lambda t: t.argmax(0), lambda t: t.t().argmin(1, keepdim=True)):
        _oracle.assert_same(call(mine), call(x))


@pytest.mark.parametrize("n", [3, 300, 5000])
def test_sorting(oracle: Any, n: int) -> None:
    oracle.manual_seed(n)
    x = oracle.randn(4, n)
    x[0, 1] = nan
    mine = _oracle.from_oracle(x)
    for call in (
        lambda t: t.sort(stable=True, descending=True),
        lambda t: t.t().sort(dim=0, stable=True)[0],
        lambda t: t.topk(2),
        lambda t: t.topk(3, largest=False),
        lambda t: t.kthvalue(2),
        lambda t: t.median(1).values,
        lambda t: t.msort(),
        lambda t: t.cummax(1),
        lambda t: t.logcumsumexp(1)[1:],
    ):
        _oracle.assert_same(call(mine), call(x), where=str(n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_in_every_float_type(oracle: Any, dtype: str, dim: int) -> None:
    x = (oracle.randn(7, 300, 5) * 5).to(getattr(oracle, dtype)).transpose(0, 1)
    mine = _oracle.from_oracle(x)
    for name in ("softmax", "log_softmax"):
        _oracle.assert_same(getattr(torch, name)(mine, dim), getattr(oracle, name)(x, dim), where=name)
    assert torch.softmax(mine.double(), dim, dtype=torch.float32).dtype == torch.float32
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.softmax(mine.long(), dim)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.sum(1),
        lambda t: t.max(0),
        lambda t: t.var(0),
        lambda t: t @ t.transpose(0, 1),
        lambda t: t.sort(1),
        lambda t: t.cumsum(0),
        lambda t: t.topk(2),
        lambda t: t.norm(3, 0),
        lambda t: t.logsumexp(1),
        lambda t: t.median(1),
    ],
)
def test_meta_has_the_layout(call: Any) -> None:
    x = torch.ones(3, 4)
    meta = torch.empty(3, 4, device="meta")
    real, shape = call(x), call(meta)
    for r, m in zip(real if isinstance(real, tuple) else [real], shape if isinstance(shape, tuple) else [shape]):
        assert (r.shape, r.stride(), r.dtype) == (m.shape, m.stride(), m.dtype)
        assert m.device.type == "meta"
    assert type(real) is type(shape)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("...ij,jk->...ik", [(5, 2, 3), (3, 4)]),
        ("ij,kl", [(2, 3), (3, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("b...i,b...j->...ij", [(2, 3, 4), (2, 3, 5)]),
        ("aab,bc->ac", [(2, 2, 3), (3, 4)]),
        ("ij,ij", [(2, 1), (2, 3)]),
        ("Ab,bC->CA", [(2, 3), (3, 4)]),
    ],
)
def test_einsum(oracle: Any, equation: str, shapes: list[tuple[int, ...]]) -> None:
    args = [oracle.randn(s, requires_grad=True) for s in shapes]
    mine = [_oracle.from_oracle(a) for a in args]
    expected, actual = oracle.einsum(equation, *args), torch.einsum(equation, *mine)
    _oracle.assert_same(actual, expected, where=equation)
    for g, e in zip(torch.autograd.grad(actual.sum(), mine), oracle.autograd.grad(expected.sum(), args)):
        _oracle.assert_same(g, e, where=equation, stride=False)


def test_einsum_and_tensordot_refuse() -> None:
    x, y = torch.ones(2, 3), torch.ones(3, 4)
    for call, text in (
        (lambda: torch.einsum("ij,j->k", x, x[0]), "output subscript k does not appear in the equation"),
        (lambda: torch.einsum("ij,ijk", x, x), r"subscripts in the equation \(3\) does not match"),
        (lambda: torch.einsum("ij,kj->ik", x, y), "subscript j has size 4 for operand 1 which does not broadcast"),
        (lambda: torch.einsum("ij,jk->ii", x, y), "output subscript i appears more than once"),
        (lambda: torch.tensordot(x, y, 5), "tensordot expects dims < ndim_a or ndim_b, but got dims=5"),
        (lambda: torch.tensordot(x, y, ([1, 0], [0])), "both dimension lists should have same length"),
        (lambda: torch.tensordot(x, y, ([0], [0])), "contracted dimensions need to match, but first has size 2"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert torch.tensordot(x, y, 1).tolist() == [[3.0] * 4] * 2


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_compute_in_the_dtype_of_out(name: str) -> None:
    scan, x = getattr(torch, name), torch.tensor([1.5, 2.5, 3.5])
    out = torch.zeros(3, dtype=torch.int32)
    assert scan(x, 0, out=out).tolist() == ([1, 3, 6] if name == "cumsum" else [1, 2, 6])
    with pytest.raises(RuntimeError, match="^Expected out tensor to have dtype double, but got int instead$"):
        scan(x, 0, dtype=torch.float64, out=out)
    with pytest.raises(NotImplementedError, match=f"^\"{name}_out_cpu\" not implemented for 'Bool'$"):
        scan(x, 0, out=torch.zeros(3, dtype=torch.bool))


def test_logcumsumexp_looks_at_out_first() -> None:
    with pytest.raises(RuntimeError, match="^expected scalar_type Long but found Float$"):
        torch.logcumsumexp(torch.arange(3), 0, out=torch.zeros(3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_logsumexp_of_what_is_not_finite(dtype: str) -> None:
    inf = math.inf
    lines = [[1.0, 2.0, 3.0], [inf, 1.0, 2.0], [-inf, -inf, -inf], [nan, 1.0, inf], [inf, -inf, 0.0], [-inf, 1.0, 1.0]]
    expected = [3.40760596, inf, -inf, nan, inf, 1.69314718]
    x = torch.tensor(lines * 3, dtype=getattr(torch, dtype))
    # Rows, columns side by side, columns with gaps, and what is reversed in memory.
    for given, dim in ((x, 1), (x.t().contiguous(), 0), (x.t(), 0), (x.t().contiguous()[:, ::2], -2)):
        wanted = expected * 3 if given.shape[1 - dim % 2] == 18 else (expected * 3)[::2]
        for keepdim in (False, True):
            out = torch.logsumexp(given, dim, keepdim)
            assert out.dtype is x.dtype and out.dim() == 1 + keepdim
            for a, b in zip(out.flatten().tolist(), wanted):
                assert (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, rel=1e-2 if "16" in dtype else 1e-6)
    assert torch.logsumexp(torch.tensor(2.0), 0) == 2.0 and torch.logsumexp(x[:1], (0, 1)).shape == ()
    assert torch.logsumexp(torch.ones(2, 0), 1).tolist() == [-inf, -inf]


def test_trace_of_views_and_integers() -> None:
    m = torch.arange(12).reshape(3, 4)
    assert [m.trace().item(), m.t().trace().item(), m[:, 1:].trace().item(), m[1:1].trace().item()] == [15, 15, 18, 0]
    assert m.to(torch.uint8).trace().dtype is torch.int64 and m.float().trace().dtype is torch.float32


def test_both_ends_of_views() -> None:
    m = torch.tensor([[3.0, nan, 1.0], [2.0, 5.0, 4.0]])
    low, high = torch.aminmax(m.t()[::2], dim=0)
    assert low.tolist() == [1.0, 2.0] and high.tolist() == [3.0, 4.0]
    assert torch.aminmax(m[1], dim=0, keepdim=True).max.shape == (1,)
    assert all(math.isnan(end.item()) for end in torch.aminmax(m))
