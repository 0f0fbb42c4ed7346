"""The public namespace: every name it offers is there, a name it lacks is an AttributeError, and importing is lean."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import mindtorch_v2 as torch

from .. import _oracle


@pytest.mark.parametrize("name", [n for n in dir(torch) if not n.startswith("__")])
def test_every_offered_name_exists(name: str) -> None:
    assert getattr(torch, name, types) is not types


# Names that PyTorch's top level does not have.
OWN_NAMES = {
    "functionalize": "the mode that rewrites in-place operators, entered with `with`; PyTorch has the transform only",
    "get_printoptions": "stands beside set_printoptions; PyTorch keeps it in torch._tensor_str",
    "npu": "the device's module, where PyTorch has `cuda`, `mps`, ...",
    "printoptions": "stands beside set_printoptions; PyTorch keeps it in torch._tensor_str",
}


@pytest.mark.oracle
def test_public_names_are_pytorchs() -> None:
    """Helpers and imports of the package's own modules do not show."""
    oracle = _oracle.load()
    public = {n for n in dir(torch) if not n.startswith("_")}
    assert sorted(n for n in public if not hasattr(oracle, n)) == sorted(OWN_NAMES)
    for module in ("fft", "linalg", "nn", "nn.functional", "special"):
        mine, theirs = torch, oracle
        for part in module.split("."):
            mine, theirs = getattr(mine, part), getattr(theirs, part)
        assert [n for n in dir(mine) if not n.startswith("_") and not hasattr(theirs, n)] == [], module
    assert [n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(oracle.Tensor, n)] == [
        "is_npu",
        "npu",
    ]


@pytest.mark.oracle
def test_every_in_place_form_is_there() -> None:
    """Where PyTorch has `name_` and we have `name`."""
    oracle = _oracle.load()
    for mine, theirs in (
        (torch, oracle),
        (torch.Tensor, oracle.Tensor),
        (torch.nn.functional, oracle.nn.functional),
        (torch.nn.init, oracle.nn.init),
    ):
        missing = [
            n
            for n in dir(theirs)
            if n.endswith("_") and not n.startswith("_") and hasattr(mine, n[:-1]) and not hasattr(mine, n)
        ]
        assert missing == [], mine


def test_a_missing_name_is_an_attribute_error() -> None:
    assert not hasattr(torch, "no_such_name")
    with pytest.raises(AttributeError, match="module 'mindtorch_v2' has no attribute 'no_such_name'"):
        _ = torch.no_such_name


def test_import_loads_no_numpy_and_no_scipy() -> None:
    code = "import sys, mindtorch_v2; print([m for m in ('numpy', 'scipy', 'ml_dtypes') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
