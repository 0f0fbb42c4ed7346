"""The stubs that the build writes: a program that uses operators is type-checked with them."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="stubs of our own")

PROGRAM = """
import mindtorch_v2 as torch
from mindtorch_v2 import Tensor, nn


def forward(x: Tensor, model: nn.Module) -> Tensor:
    y = torch.add(x, 2, alpha=3).add_(1).view(2, -1)
    values, indices = torch.max(y, 0)
    largest: Tensor = y.sort(descending=True).values
    parts: tuple[Tensor, ...] = y.chunk(2)
    mask: Tensor = (y > 0) & ~(y == 1)
    with torch.no_grad():
        y = torch.zeros(2, 3, dtype=torch.float64, device="meta").to(torch.float32)
    count: int = y.shape[0] + y.dim() + len(y)
    gradient: Tensor | None = x.grad
    singular: Tensor = torch.linalg.svd(y, full_matrices=False).S + torch.special.erf(y)
    image: Tensor = nn.functional.pixel_shuffle(nn.functional.relu(x), 2)
    return (values + indices + largest[0] + parts[0] + mask + count).sum(dim=(0, 1), keepdim=True)


WRONG
"""
# One line each, and a piece of what mypy must say about it.
WRONG = {
    'torch.add("a", 2)': 'Argument 1 to "add"',
    "torch.addd(1)": 'has no attribute "addd"',
    "torch.ones(2).sumo()": '"Tensor" has no attribute "sumo"',
    "torch.ones(2).add(1, 2)": "Too many positional arguments",
    "number: int = torch.ones(2).sum()": "Incompatible types in assignment",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's sources with stubs among them."""
    folder = tmp_path_factory.mktemp("stubs") / "mindtorch_v2"
    left_out = shutil.ignore_patterns("*.so", "_emulator", "__pycache__")
    shutil.copytree(Path(torch.__file__).parent, folder, ignore=left_out)
    # In a process of its own: other tests register operators.
    subprocess.run([sys.executable, "-m", "mindtorch_v2._api.stubs", str(folder)], check=True)
    return folder


def test_the_stubs_name_what_exists(package: Path) -> None:
    tree = ast.parse((package / "__init__.pyi").read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    names |= {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert {"add", "abs_", "zeros", "einsum", "conv2d", "unique", "no_grad", "nn", "Size"} <= names
    assert [name for name in sorted(names) if not hasattr(torch, name)] == []
    tensor = next(
        node
        for node in ast.parse((package / "_tensor.pyi").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Tensor"
    )
    methods = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    assert {"add_", "view", "to", "__add__", "grad", "uniform_"} <= methods
    assert [name for name in sorted(methods) if not hasattr(torch.Tensor, name)] == []


def test_every_public_row_is_in_the_stubs(package: Path) -> None:
    submodule("_api.lazy_tables").load_all()
    functions, methods = ((package / name).read_text() for name in ("__init__.pyi", "_tensor.pyi"))
    missing = []
    for name, ops in submodule("_api.public").by_name().items():
        if name.startswith("_") or not ops[0].row.family:
            continue
        if any(op.row.function for op in ops) and hasattr(torch, name) and f"def {name}(" not in functions:
            missing.append(f"torch.{name}")
        if any(op.row.method for op in ops) and hasattr(torch.Tensor, name) and f"def {name}(" not in methods:
            missing.append(f"Tensor.{name}")
    assert missing == []


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_program_is_type_checked(package: Path) -> None:
    client = package.parent / "client.py"
    client.write_text(PROGRAM.replace("WRONG", "\n".join(WRONG)))
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(package.parent / "cache"), client.name],
        capture_output=True,
        text=True,
        cwd=package.parent,
    )
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    said = [line for line in errors if line.startswith("client.py") or ".pyi:" in line]
    first = len(client.read_text().splitlines()) - len(WRONG) + 1
    expected = [f"client.py:{first + number}: error: " for number in range(len(WRONG))]
    assert [line[: len(start)] for line, start in zip(said, expected)] == expected, run.stdout + run.stderr
    assert len(said) == len(WRONG), "\n".join(said)
    assert all(text in line for text, line in zip(WRONG.values(), said)), "\n".join(said)
