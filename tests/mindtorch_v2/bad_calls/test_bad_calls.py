"""Every wrong call of the tables: PyTorch's exception type and text, and nothing changed by the failed call.

Invariant: `error` and `text` of every case are what PyTorch 2.13.0 answers (the oracle test below asks it again), after
`normalise`.
"""

from __future__ import annotations

import types
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, subject
from . import CASES, Case, normalise


def attempt(torch: Any, case: Case, device: str = "") -> tuple[str, str, dict[str, Any]]:
    """Type and text of the exception, and the tensors that were given to the call."""
    values = case.setup(torch)
    if device:
        values = {name: tensor.to(device) for name, tensor in values.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = case.call(torch, types.SimpleNamespace(**values))
        except Exception as error:
            return type(error).__name__, normalise(str(error)), values
    raise AssertionError(f"{case.name}: no exception, but {result!r}")


def state(torch: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Everything of the tensors that a failed call may not change."""
    result: dict[str, Any] = {}
    for name, tensor in values.items():
        # As text, in which a NaN equals a NaN.
        data = None if tensor.device.type == "meta" else str(tensor.detach().to(torch.complex128).tolist())
        version = None if tensor.is_inference() else tensor._version
        result[name] = (tuple(tensor.shape), tensor.stride(), str(tensor.dtype), tensor.requires_grad, version, data)
    return result


# Calls in which PyTorch itself writes before it notices; here nothing may change.
CHANGED_BY_PYTORCH = frozenset({"scatter_range", "inference_inplace", "resize_numpy"})


def test_the_table_is_large_and_has_no_double() -> None:
    names = [case.name for case in CASES]
    assert len(names) >= 700
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_call(case: Case) -> None:
    before = state(subject, case.setup(subject))
    error, text, values = attempt(subject, case)
    assert (error, text) == (case.error, case.text)
    if not (IS_ORACLE and case.name in CHANGED_BY_PYTORCH):
        assert state(subject, values) == before


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_oracle_says_so(case: Case) -> None:
    error, text, _ = attempt(_oracle.load(), case)
    assert (error, text) == (case.error, case.text)


@pytest.mark.parametrize("case", [case for case in CASES if case.meta], ids=lambda case: case.name)
def test_bad_call_without_data(case: Case) -> None:
    """Complaints about shapes and arguments come from the rule, so tensors without data get them too."""
    error, text, _ = attempt(subject, case, "meta")
    assert (error, text) == (case.error, case.text)


@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in CASES if case.meta], ids=lambda case: case.name)
def test_the_oracle_says_so_without_data(case: Case) -> None:
    error, text, _ = attempt(_oracle.load(), case, "meta")
    assert (error, text) == (case.error, case.text)
