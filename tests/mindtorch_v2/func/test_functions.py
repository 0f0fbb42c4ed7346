"""Functions of users under transforms against PyTorch: what they save, return and declare."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [pytest.mark.oracle, mindtorch_only]


def world(library: Any) -> dict[str, Any]:
    base = importlib.import_module(library.__name__ + ".autograd").Function

    class Kept(base):
        """Saves its result."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * ctx.saved_tensors[0]

    class Same(base):
        """Returns its argument as it is."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    class Old(base):
        """Has no setup_context."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2

    def ruled(rule: Any) -> Any:
        return type("Ruled", (Same,), {"generate_vmap_rule": False, "vmap": staticmethod(rule)}).apply  # type: ignore[attr-defined]

    x = library.arange(6.0, dtype=library.float64).reshape(2, 3) * 0.3
    kept, same, old = Kept.apply, Same.apply, Old.apply
    return {"F": importlib.import_module(library.__name__ + ".func"), "x": x, **locals()}


CALLS = """
F.jvp(F.grad(lambda a:kept(a).sum()),(x,),(x,)) | F.jvp(F.grad(lambda a:(kept(a)*a).sum()),(x,),(x,))
F.grad(lambda a:F.jvp(kept,(a,),(a,))[1].sum())(x)
F.vmap(F.hessian(lambda a:kept(a).sum()))(x) | F.jvp(F.vmap(F.grad(lambda a:kept(a).sum())),(x,),(x,))
F.jvp(same,(x,),(x,)) | F.grad(lambda a:same(a).sum())(x) | F.vmap(same)(x) | F.jvp(old,(x,),(x,)) | F.vmap(old)(x)
F.grad(lambda a:old(a).sum())(x) | F.vmap(ruled(lambda i,d,a:(a,(0,0))))(x) | F.vmap(ruled(lambda i,d,a:a))(x)
F.vmap(ruled(lambda i,d,a:(a,)))(x) | F.vmap(ruled(lambda i,d,a:((a,a*2),0)))(x)
F.vmap(ruled(lambda i,d,a:((a,a),(0,))))(x)
F.vmap(ruled(lambda i,d,a:[a,0]))(x) | F.vmap(ruled(lambda i,d,a:(a*i.batch_size,d[0])))(x)
F.vmap(ruled(lambda i,d,a:(a,[0])))(x)
"""


def told(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    return [round(v, 6) for v in value.flatten().tolist()]


def outcome(call: str, library: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(eval(call, world(library)))
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}".replace("mindtorch_v2", "torch")


@pytest.mark.parametrize("call", [call.strip() for line in CALLS.strip().split("\n") for call in line.split(" | ")])
def test_call(call: str) -> None:
    assert outcome(call, torch) == outcome(call, _oracle.load())
