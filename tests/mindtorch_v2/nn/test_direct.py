"""Functions of `torch.nn.functional` whose usual calls come to those of one row: as the function in Python does, which
is entered for all others."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as t

pytestmark = mindtorch_only

F: Any = submodule("nn.functional")
t.manual_seed(0)
X, Y, V = t.rand(4, 4), t.rand(4, 4), t.rand(4)
IMAGE, LINE, SOLID = t.rand(1, 3, 8, 8), t.rand(1, 3, 16), t.rand(1, 3, 4, 4, 4)
LABELS, SIGNS, ZEROS, ONES = t.tensor([0, 1, 2, 3]), t.sign(X - 0.5), t.zeros(3), t.ones(3)
WIDE = t.rand(2, 4)

# By name, calls that come to the row, and calls that the function in Python sees: each as arguments and keywords.
CALLS: dict[str, tuple[list[str], list[str]]] = {
    **{
        name: (
            ["X", "input=X", "X, inplace=False"],
            ["X.clone(), inplace=True", "X.clone(), 1", "X, no=1", "", "X, X, X, X, X"],
        )
        for name in ("relu", "silu", "selu", "relu6", "mish")
    },
    "elu": (["X", "X, 0.5", "X, alpha=2", "input=X, alpha=0.1"], ["X, **{'': 1}", "X, scale=2.0", "X, 'a'"]),
    "celu": (["X", "X, 0.5", "X, alpha=2"], ["X.clone(), 1.0, True"]),
    "leaky_relu": (["X", "X, 0.2", "X, negative_slope=1"], ["X.clone(), 0.2, True", "X, None"]),
    "glu": (["X", "X, 1", "X, dim=0"], ["X, 1.5"]),
    "threshold": (["X, 0.5, 0.0", "X, threshold=1, value=2"], ["X, 0.5", "X.clone(), 0.5, 0.0, True"]),
    "softmax": (["X, 1", "X, dim=0", "X, 1, 7", "X, 1, dtype=t.float64", "X, -1, _stacklevel=5"], ["X", "X, 1.0"]),
    "log_softmax": (["X, 1", "X, dim=0, dtype=t.float64"], ["X", "X, 0, 'a'"]),
    "hardtanh": (["X", "X, -2, 2", "X, -0.5, 0.5"], ["X, 0.2, 0.4", "X, 0.4, 0.2", "X.clone(), -1, 1, True"]),
    "dropout": (
        ["X, 0.0", "X, 1.0", "X, training=False", "X, 0.5, False"],
        ["X, 1.5", "X, -0.1", "X.clone(), 0.0, True, True"],
    ),
    "layer_norm": (["X, (4,)", "X, [4]", "X, (4,), V, V, 1e-3", "X, (4,), weight=V"], ["X, 4", "X, (4,), V, V, 'e'"]),
    "rms_norm": (["X, (4,)", "X, (4,), V, 1e-3", "X, [4], eps=None"], ["X, 4", "X, 'a'"]),
    "batch_norm": (
        ["IMAGE, ZEROS, ONES", "IMAGE, ZEROS, ONES, ONES, ZEROS, False, 0.2, 1e-3", "IMAGE, ZEROS, ONES, eps=0.5"],
        ["IMAGE, None, None, training=True", "IMAGE, ZEROS, ONES, eps=-1.0", "IMAGE, ZEROS"],
    ),
    "embedding": (
        ["LABELS, X", "LABELS, X, None, None, 1.5", "LABELS, weight=X, norm_type=1", "LABELS, X, sparse=True"],
        ["LABELS, X, 0", "LABELS, X, padding_idx=9", "LABELS, X, max_norm=0.5", "LABELS, X, 'a'"],
    ),
    "pad": (["X, (1, 1)", "X, [1, 0], 'constant', 2.0", "X, pad=(1, 1), value=1"], ["X, 1", "X, (1, 1), 1"]),
    "max_pool1d": (["LINE, 2", "LINE, (2,), 1, padding=1"], ["LINE, 2, return_indices=True", "LINE, 2.0"]),
    "max_pool2d": (
        ["IMAGE, 2", "IMAGE, (2, 2), 1", "IMAGE, 3, 2, 1, 1, True", "IMAGE, 3, padding=[1, 1]"],
        ["IMAGE, 2, None", "IMAGE, 2, return_indices=True", "IMAGE", "IMAGE, 'a'"],
    ),
    "max_pool3d": (["SOLID, 2", "SOLID, (2, 2, 2)"], ["SOLID, 2, stride=None"]),
    "adaptive_avg_pool2d": (["IMAGE, 2", "IMAGE, output_size=1"], ["IMAGE, (2, 2)", "IMAGE, (None, 2)", "V, (1, 1)"]),
    "adaptive_avg_pool3d": (["SOLID, 2"], ["SOLID, (2, 2, 2)"]),
    "unfold": (["IMAGE, 2", "IMAGE, (2, 3)", "IMAGE, 2, 2, 1, 2"], ["IMAGE, (2,)", "IMAGE, (2, 2, 2)", "IMAGE, 2.0"]),
    "fold": (["t.ones(1, 12, 16), 8, 2, stride=2", "t.ones(1, 12, 16), (8, 8), (2, 2), stride=2"], ["X, 8, 'a'"]),
    "nll_loss": (
        ["X, LABELS", "X, LABELS, V, None, 1, None, 'sum'"],
        ["X, LABELS, reduction=1", "X, LABELS, None, True"],
    ),
    "cross_entropy": (
        ["X, LABELS", "X, Y", "X, LABELS, V, reduction='none', label_smoothing=0.1"],
        ["X, LABELS, reduction='all'", "X, LABELS, reduce=False", "X"],
    ),
    **{
        name: (
            ["X, Y", "X, target=Y, reduction='sum'", "X, Y, reduction='none'"],
            ["X, WIDE[:1]", "X, Y, reduction='x'"],
        )
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits")
    },
    **{
        name: (["X, SIGNS", "X, SIGNS, reduction='sum'"], ["X, SIGNS, reduction='x'", "X, SIGNS, reduce=True", "X"])
        for name in ("soft_margin_loss", "hinge_embedding_loss")
    },
    "cosine_embedding_loss": (["X, Y, SIGNS[0]", "X, Y, SIGNS[0], 0.5, reduction='none'"], ["X, Y, SIGNS[0], 'a'"]),
    "multilabel_margin_loss": (["X, LABELS.expand(4, 4)"], ["X, LABELS.expand(4, 4), None, True"]),
    "triplet_margin_loss": (["X, Y, X", "X, Y, X, 2, 1, reduction='sum'"], ["X, Y, X, margin=0", "X, Y, X, -1.0"]),
}
SPACE = {name: value for name, value in globals().items() if name.isupper() or name == "t"}
CASES = [(name, call, i == 0) for name, pair in CALLS.items() for i, calls in enumerate(pair) for call in calls]


def told(fn: Any, call: str) -> Any:
    """What a call gives: the result, or the error, and what it warned of."""
    t.manual_seed(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = eval(f"fn({call})", {**SPACE, "fn": fn})
        except Exception as error:
            result = type(error), str(error)
    said = [(w.category, str(w.message)) for w in caught]
    if isinstance(result, t.Tensor):
        return result.dtype, result.shape, result.stride(), result.tolist(), said
    return [x.tolist() for x in result] if isinstance(result[0], t.Tensor) else result, said


def entered(public: Any, call: str) -> bool:
    """Whether the function in Python runs when the public one is called."""
    seen: list[Any] = []
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    try:
        eval(f"fn({call})", {**SPACE, "fn": public})
    except Exception:
        pass
    finally:
        sys.setprofile(None)
    return public.__code__ in seen


def in_python(public: Any) -> Any:
    return types.FunctionType(
        public.__code__, public.__globals__, public.__name__, public.__defaults__, public.__closure__
    )


def test_every_function_is_called() -> None:
    from mindtorch_v2.nn.functional._direct import DIRECT

    assert set(CALLS) == set(DIRECT)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, call, direct", CASES, ids=[f"{name}({call})" for name, call, _ in CASES])
def test_call(name: str, call: str, direct: bool) -> None:
    public = getattr(F, name)
    expected = told(in_python(public), call)
    assert told(public, call) == expected
    # What cannot be bound at all does not enter it either.
    refused = expected[0][0] is TypeError and f"{name}()" in expected[0][1] if isinstance(expected[0], tuple) else False
    assert entered(public, call) is not direct or refused


def test_handlers_see_the_whole() -> None:
    class Handler:
        @classmethod
        def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func, args, kwargs

    found = F.leaky_relu(Handler(), 0.2)
    assert found[0] is F.leaky_relu and found[1][1:] == (0.2,)
    with pytest.raises(TypeError):
        F.leaky_relu(X, "a")


def test_an_error_of_the_operator_is_raised_once() -> None:
    calls: list[Any] = []

    def pack(x: Any) -> Any:
        calls.append(x)
        raise ValueError("no")

    with t.autograd.graph.saved_tensors_hooks(pack, lambda x: x), pytest.raises(ValueError, match="no"):
        F.relu(X.clone().requires_grad_())
    assert len(calls) == 1
