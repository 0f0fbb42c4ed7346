"""What every pointwise function of the emulator refuses: null arguments, outputs of another shape, unlisted dtypes.

Invariant: phase 1 refuses; nothing reaches the stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, facts, refused
from ._pointwise import NAMES, arguments
from .test_kernels_activation import BACKWARD
from .test_kernels_arithmetic import ARITHMETIC, COMPARISONS
from .test_kernels_elementary import ACTIVATIONS, ELEMENTARY

NULL = (161001, 561103)  # the second where documents do not list the argument among the checked ones
FUNCTIONS = {
    name: (case, dtype)
    for case in (*ELEMENTARY, *ACTIVATIONS, *ARITHMETIC, *COMPARISONS, *BACKWARD)
    for name, dtype in case.variants()
}
MAY_BE_NULL = {
    ("aclnnSwish", "betaOptional"),
    ("aclnnSwishBackward", "betaOptional"),
    *((name, bound) for name in ("aclnnClamp", "aclnnClampTensor") for bound in ("clipValueMin", "clipValueMax")),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_refusals(name: str) -> None:
    case, dtype = FUNCTIONS[name]
    values, _ = arguments(case, name, dtype)
    parameters = {p["name"]: p for p in facts()[name]["params"]}
    for parameter, value in values.items():
        kind = parameters[parameter]["type"]
        if kind.endswith("*") and (name, parameter) not in MAY_BE_NULL:
            assert refused(name, **{**values, parameter: None}) in NULL, parameter
        if isinstance(value, Out):
            assert refused(name, **{**values, parameter: Out((*value.shape, 2), value.dtype)}) == 161002
        if kind == "aclTensor*" and parameters[parameter].get("dtypes", "=")[0] != "=":
            for unlisted in set(NAMES) - set(parameters[parameter]["dtypes"].split()):
                other = with_dtype(value, NAMES[unlisted])
                if other is not None:
                    assert refused(name, **{**values, parameter: other}) == 161002, (parameter, unlisted)


def with_dtype(value: Any, dtype: str) -> Any:
    if isinstance(value, Out):
        return Out(value.shape, dtype)
    return None if dtype == "bfloat16" else np.ones(tuple(value.shape), dtype)
