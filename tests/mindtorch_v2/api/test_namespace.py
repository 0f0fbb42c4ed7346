"""The public namespace: every name it offers is there, a name it lacks is an AttributeError, and importing is lean."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import mindtorch_v2 as torch

from .. import _oracle
from ._left_out import MODULES as MODULES_LEFT_OUT
from ._left_out import NAMES, left_out
from ._public import MODULES, module, public, shown_by_pytorch


@pytest.mark.parametrize("name", [n for n in dir(torch) if not n.startswith("__")])
def test_every_offered_name_exists(name: str) -> None:
    assert getattr(torch, name, types) is not types


# Names that PyTorch's top level does not have.
OWN_NAMES = {
    "functionalize": "the mode that rewrites in-place operators, entered with `with`; PyTorch has the transform only",
    "npu": "the device's module, where PyTorch has `cuda`, `mps`, ...",
    "printoptions": "stands beside set_printoptions; PyTorch keeps it in torch._tensor_str",
}


@pytest.mark.oracle
def test_public_names_are_pytorchs() -> None:
    """Helpers and imports of the package's own modules do not show."""
    oracle = _oracle.load()
    public = {n for n in dir(torch) if not n.startswith("_")}
    assert sorted(n for n in public if not hasattr(oracle, n)) == sorted(OWN_NAMES)
    for name in ("fft", "linalg", "nn", "nn.functional", "special"):
        mine, theirs = torch, oracle
        for part in name.split("."):
            mine, theirs = getattr(mine, part), getattr(theirs, part)
        assert [n for n in dir(mine) if not n.startswith("_") and not hasattr(theirs, n)] == [], name
    assert [n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(oracle.Tensor, n)] == [
        "is_npu",
        "npu",
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [m for m in MODULES if m not in MODULES_LEFT_OUT])
def test_no_public_name_is_missing_silently(name: str) -> None:
    """What PyTorch's module has is here, or stands in the table with a reason."""
    _oracle.load()
    theirs = shown_by_pytorch().get(name)
    mine = module("mindtorch_v2", name)
    assert theirs is not None, f"PyTorch needs another package for torch.{name}"
    assert mine is not None, f"torch.{name} is missing"
    missing = {n for n in theirs if not hasattr(mine, n)}
    assert sorted(missing - left_out(name)) == []


@pytest.mark.oracle
def test_no_public_name_of_tensor_is_missing_silently() -> None:
    missing = {n for n in public(_oracle.load().Tensor) if not hasattr(torch.Tensor, n)}
    assert sorted(missing - left_out("Tensor")) == []


@pytest.mark.oracle
def test_the_table_of_names_left_out_is_of_today() -> None:
    """It names what PyTorch has and is not here."""
    oracle = _oracle.load()
    written = [m for m in MODULES_LEFT_OUT if module("mindtorch_v2", m) is not None]
    for owner, groups in NAMES.items():
        theirs = oracle.Tensor if owner == "Tensor" else module("torch", owner)
        mine = torch.Tensor if owner == "Tensor" else module("mindtorch_v2", owner)
        for name in " ".join(groups.values()).split():
            # Some submodules show only once something has imported them.
            assert hasattr(theirs, name) or module("torch", f"{owner}.{name}"), f"torch.{owner} has no {name}"
            if mine is not None and hasattr(mine, name):
                written.append(f"{owner}.{name}")
    assert not written, f"written, and still in the table of names left out: {' '.join(written)}"


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


def test_first_calls_of_a_training_program_load_no_numpy() -> None:
    code = """
import sys, mindtorch_v2 as torch
model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                            torch.nn.Flatten(), torch.nn.Linear(2, 3))
data = torch.utils.data.TensorDataset(torch.rand(4, 1, 5, 5), torch.tensor([0, 1, 2, 0]))
for x, y in torch.utils.data.DataLoader(data, batch_size=2, shuffle=True):
    torch.nn.functional.cross_entropy(model(x), y).backward()
    torch.optim.Adam(model.parameters()).step()
torch.distributions.Normal(torch.zeros(2), torch.ones(2)).sample()
matrix = torch.eye(3) + 0.1
torch.linalg.inv(matrix), torch.linalg.cholesky(matrix), torch.linalg.solve(matrix, matrix), torch.linalg.det(matrix)
torch.linalg.norm(matrix), torch.fft.fft(torch.rand(8)), torch.einsum("ij,jk", matrix, matrix)
print([m for m in ("numpy", "scipy") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
