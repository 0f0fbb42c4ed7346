"""The public namespace: every name it offers is there, a name it lacks is an AttributeError, and importing is lean."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize("name", [n for n in dir(torch) if not n.startswith("__")])
def test_every_offered_name_exists(name: str) -> None:
    assert getattr(torch, name, types) is not types


def test_a_missing_name_is_an_attribute_error() -> None:
    assert not hasattr(torch, "no_such_name")
    with pytest.raises(AttributeError, match="module 'mindtorch_v2' has no attribute 'no_such_name'"):
        _ = torch.no_such_name


def test_import_loads_no_numpy_and_no_scipy() -> None:
    code = "import sys, mindtorch_v2; print([m for m in ('numpy', 'scipy', 'ml_dtypes') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
