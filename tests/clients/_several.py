"""Training with accelerate and with transformers' `Trainer` in one process or in several, whose losses are the same.

`losses(library, way, ranks)` starts the processes, each of which runs `main` with the environment that torchrun sets.
Ways: `alone`, `replicas` (DDP) and, on devices, `split` (FSDP2) and `around` (FSDP). On PyTorch without devices, all
ways of several processes are replicas on CPUs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

from _stages import seeded

ROWS, STEPS = 4, 3  # of a step, all ranks together and the same in each; of a run


def losses(library: str, way: str, ranks: int, device: str) -> list[float]:
    """The losses of a run, as the first of its processes has them; all must have the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    known = {"torch_npu": None} if sys.modules.get("torch_npu", "") is None else {}
    code = f"import sys; sys.path[:] = {sys.path!r}; sys.modules.update({known!r}); import _several; _several.main()"
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    shared.update(ASCEND_EMULATOR_DEVICES=str(ranks), SEVERAL=json.dumps([library, way, device]))
    if device == "cpu":
        shared["ACCELERATE_USE_CPU"] = "true"
    processes = []
    for rank in range(ranks):
        own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)}
        if ranks == 1:
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
                own.pop(name)
        processes.append(subprocess.Popen([sys.executable, "-c", code], env=own, stdout=subprocess.PIPE, text=True))
    told = [process.communicate(timeout=500)[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{library}, {way}: a process ended with {[each.returncode for each in processes]}")
    found = [json.loads(text.rpartition("LOSSES ")[2].splitlines()[0]) for text in told]
    assert all(each == found[0] for each in found), found
    first: list[float] = found[0]
    return first


def main() -> None:
    library, way, device = json.loads(os.environ["SEVERAL"])
    found = (by_accelerate if library == "accelerate" else by_trainer)(way, device)
    print("LOSSES " + json.dumps(found), flush=True)
    import torch

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def plugin(way: str, layer: str) -> Any:
    """accelerate's settings for split parameters."""
    from accelerate.utils import FullyShardedDataParallelPlugin

    return FullyShardedDataParallelPlugin(
        fsdp_version=2 if way == "split" else 1,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=[layer],
        use_orig_params=True,
    )


def by_accelerate(way: str, device: str) -> list[float]:
    torch = seeded()
    from accelerate import Accelerator

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = torch.nn.Linear(6, 9), torch.nn.Linear(9, 6)

        def forward(self, x: Any) -> Any:
            return x + self.down(torch.nn.functional.gelu(self.up(x)))

    settings = {"fsdp_plugin": plugin(way, "Block")} if way in ("split", "around") else {}
    accelerator = Accelerator(cpu=device == "cpu", **settings)
    model = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(6, 3))
    inputs, targets = torch.rand(ROWS, 6), torch.randint(3, (ROWS,))
    data = torch.utils.data.TensorDataset(inputs.repeat(STEPS, 1), targets.repeat(STEPS))
    loader = torch.utils.data.DataLoader(data, batch_size=ROWS // accelerator.num_processes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    found = []
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(accelerator.gather(loss.detach().reshape(1)).mean()))
    return found


def by_trainer(way: str, device: str) -> list[float]:
    torch = seeded()
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    sizes = dict(n_embd=16, n_layer=2, n_head=2, n_positions=16, vocab_size=30, bos_token_id=1, eos_token_id=2)
    quiet = dict(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)
    model = GPT2LMHeadModel(GPT2Config(**sizes, **quiet))
    rows = torch.randint(3, 30, (ROWS, 8)).repeat(STEPS, 1)
    data = [{"input_ids": row, "labels": row} for row in rows]
    settings: dict[str, Any] = {}
    if way in ("split", "around"):
        config = {"version": 2 if way == "split" else 1, "transformer_layer_cls_to_wrap": ["GPT2Block"]}
        settings = {"fsdp": True, "fsdp_config": {**config, "auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=ROWS // ranks,
            max_steps=STEPS,
            logging_steps=1,
            learning_rate=1e-2,
            save_strategy="no",
            report_to=[],
            use_cpu=device == "cpu",
            disable_tqdm=True,
            train_sampling_strategy="sequential",
            **settings,
        )
        trainer = Trainer(model, arguments, train_dataset=data)
        trainer.train()
        return [float(line["loss"]) for line in trainer.state.log_history if "loss" in line]
