"""Functions of `torch` under the names that SciPy has for them: operators of their own, as PyTorch has them.

Invariant: nothing is computed here. The form with `out=` is that of the row behind it, so that what is said of a wrong
`out` is the same under both names.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import FnKernel
from .made_of import call
from .table import composite

# By name in `torch.special`: the row behind it, and its arguments.
_ROWS = {
    "digamma": ("digamma", "Tensor self"),
    "erf": ("erf", "Tensor self"),
    "erfc": ("erfc", "Tensor self"),
    "erfinv": ("erfinv", "Tensor self"),
    "exp2": ("exp2", "Tensor self"),
    "expit": ("sigmoid", "Tensor self"),
    "expm1": ("expm1", "Tensor self"),
    "gammainc": ("igamma", "Tensor self, Tensor other"),
    "gammaincc": ("igammac", "Tensor self, Tensor other"),
    "gammaln": ("lgamma", "Tensor self"),
    "i0": ("i0", "Tensor self"),
    "log1p": ("log1p", "Tensor self"),
    "log_softmax": ("log_softmax", "Tensor self, int dim, *, ScalarType? dtype=None"),
    "logit": ("logit", "Tensor self, float? eps=None"),
    "logsumexp": ("logsumexp", "Tensor self, int[1] dim, bool keepdim=False"),
    "multigammaln": ("mvlgamma", "Tensor self, int p"),
    "polygamma": ("polygamma", "int n, Tensor self"),
    "psi": ("digamma", "Tensor self"),
    "round": ("round.decimals", "Tensor self, *, int decimals=0"),
    "sinc": ("sinc", "Tensor self"),
    "softmax": ("softmax", "Tensor self, int dim, ScalarType? dtype=None"),
    "xlogy": ("xlogy", "Tensor self, Tensor other"),
}
# PyTorch has these without `out=`.
_PLAIN = frozenset({"softmax", "log_softmax"})


def _declare(name: str, row: str, arguments: str) -> None:
    def run(*args: Any) -> Any:
        return call(row, *args)

    def into(*args: Any) -> Any:
        return registry.get(row).row.out_op.call(args)

    o = composite(
        f"special_{name}({arguments}) -> Tensor",
        run,
        numbers=("self", "other") if name == "xlogy" else (),
        out=name not in _PLAIN,
        function=False,
        method=False,
    )
    if o.row.out_op is not None:
        o.row.out_op.composite = FnKernel(into)


for _name, (_row, _arguments) in _ROWS.items():
    _declare(_name, _row, _arguments)
