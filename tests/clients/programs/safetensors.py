"""safetensors: saving and loading tensors of every dtype, slices, shared weights."""

import os
import tempfile
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import safetensors.torch

    return safetensors.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    kinds = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
    kept["tensors"] = {name: torch.arange(24).view(4, 6).to(getattr(torch, name)) for name in kinds}
    return [t.float().sum() for t in kept["tensors"].values()]


def save(kept: dict[str, Any]) -> Any:
    from safetensors.torch import save_file

    kept["path"] = os.path.join(tempfile.mkdtemp(), "all.safetensors")
    save_file(kept["tensors"], kept["path"], metadata={"format": "pt"})
    return os.path.getsize(kept["path"])


def load(kept: dict[str, Any]) -> Any:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load, load_file

    found = load_file(kept["path"])
    assert all(torch.equal(found[k], v) and found[k].dtype == v.dtype for k, v in kept["tensors"].items())
    with open(kept["path"], "rb") as file:
        again = load(file.read())
    assert all(torch.equal(again[k], v) for k, v in kept["tensors"].items())
    with safe_open(kept["path"], framework="pt") as opened:
        part = opened.get_slice("float32")[1:3, ::2]
    return {"keys": sorted(found), "part": part}


def models(kept: dict[str, Any]) -> Any:
    torch = seeded(1)
    from safetensors.torch import load_model, save_model

    model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 4, bias=False), "b": torch.nn.Linear(3, 4)})
    model["b"].weight = model["a"].weight  # shared: stored once
    path = kept["path"] + ".model"
    save_model(model, path)
    with torch.no_grad():
        model["a"].weight.zero_()
    load_model(model, path)
    return model["b"](torch.ones(1, 3))


run(importing, build, save, load, models)
