"""`torch.special`: the rows `special_<name>`, and functions of `torch` under the names they have in SciPy.

Invariant: nothing is computed here.
"""

from __future__ import annotations as _annotations

from typing import Any as _Any

from .._api import lazy_tables as _late

_SAME = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}
_row = _late.namespace(__name__, "special_")
_rows = _late.listing(__name__, "special_")


def __getattr__(name: str) -> _Any:
    if name not in _SAME:
        return _row(name)
    import mindtorch_v2

    globals()[name] = getattr(mindtorch_v2, _SAME[name])
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*_rows(), *_SAME})
