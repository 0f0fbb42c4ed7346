"""The distribution `torch` of mindtorch_v2, made by `make torch-wheel`: the modules `torch`, `torch_npu`, `functorch`.

Invariant: its files are those of `src/mindtorch_v2/_torch_path`, so that both ways to the name lead to the same lines.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
FILES = Path(os.path.relpath(HERE.parents[1] / "src" / "mindtorch_v2" / "_torch_path", HERE))

os.chdir(HERE)
metadata = next(FILES.glob("torch-*.dist-info")).name
setup(
    name="torch",
    version=metadata.removeprefix("torch-").removesuffix(".dist-info"),
    description="The name torch for mindtorch_v2: PyTorch's API and semantics on cpu, meta and npu",
    license="Apache-2.0",
    python_requires=">=3.10",
    install_requires=["mindtorch_v2"],
    packages=["torch", "torch_npu", "functorch", "functorch.compile", "functorch.einops", "functorch.experimental"],
    package_dir={name: str(FILES / name) for name in ("torch", "torch_npu", "functorch")},
)
