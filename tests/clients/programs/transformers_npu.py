"""transformers and accelerate on an Ascend device: ten families, `Trainer`, `pipeline`. On PyTorch, its CPU."""

import os
import sys
from typing import Any

os.environ.setdefault("MINDTORCH_NPU", "emulator")

from _families import FAMILIES
from _family import stages
from _stages import run_parts, seeded, train

NAMES = "gpt2 llama qwen2 bert t5 mixtral mamba vit whisper clip".split()
OURS = sys.modules.get("torch_npu", "") is not None
DEVICE = "npu" if OURS else "cpu"


def sees(kept: dict[str, Any]) -> Any:
    """What the libraries say of the machine."""
    import accelerate
    import torch
    import transformers.utils as utils

    if OURS:
        import torch_npu

        assert utils.is_torch_npu_available() and accelerate.utils.is_npu_available()
        assert torch_npu.npu.device_count() == torch.npu.device_count() > 0 and torch_npu.npu.is_available()
        assert accelerate.Accelerator().device.type == "npu"
    return []


def loop(kept: dict[str, Any]) -> Any:
    """accelerate's loop on the device that it chose."""
    torch = seeded()
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not OURS)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    data = torch.utils.data.TensorDataset(torch.rand(24, 4), torch.randint(2, (24,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=6))
    losses = []
    for x, y in loader:
        assert x.device.type == DEVICE
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss))
    return [float(x) for x in losses]


def trained(kept: dict[str, Any]) -> Any:
    """A small model by hand, with autocast."""
    torch = seeded()
    model = torch.nn.Linear(4, 2).to(DEVICE)
    x = torch.rand(6, 4).to(DEVICE)

    def loss() -> Any:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return model(x).float().pow(2).mean()

    return [round(value, 2) for value in train(model, loss)]


table = {name: family for group in FAMILIES.values() for name, family in group.items() if name in NAMES}
run_parts({"device": [sees, loop, trained], **{name: stages(family, DEVICE, False) for name, family in table.items()}})
