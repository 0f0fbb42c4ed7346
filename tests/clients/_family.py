"""One family of transformers, built small: forward, backward, steps, generation, saving and loading, bfloat16."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

from _families import FAMILIES, Family
from _stages import Stage, run_parts, seeded, train


def make_inputs(torch: Any, family: Family) -> dict[str, Any]:
    """What the model is given in training."""
    x = torch.randint(3, 60, (2, 9))
    mask = torch.ones_like(x)
    pixels = torch.rand(2, 3, 16, 16)
    if family.inputs == "image":
        return {"pixel_values": pixels, "labels": torch.tensor([0, 2])}
    if family.inputs == "spectrum":
        return {"input_features": torch.rand(2, 8, 20), "labels": x}
    if family.inputs == "wave":
        return {"input_values": torch.randn(2, 400), "labels": torch.randint(1, 12, (2, 4))}
    if family.inputs == "places":
        x[:, 1:5] = 63
    mask[1, :2] = 0
    given = {"input_ids": x, "attention_mask": mask}
    if family.inputs == "classes":
        return {**given, "labels": torch.tensor([0, 2])}
    if family.inputs == "pair":
        return {**given, "labels": torch.randint(3, 60, (2, 6))}
    if family.inputs == "tokens":
        return {**given, "labels": x}
    if family.name == "CLIP":
        return {**given, "pixel_values": pixels, "return_loss": True}
    if family.name == "Vilt":
        return {**given, "pixel_values": pixels, "labels": torch.rand(2, 3)}
    return {**given, "pixel_values": pixels, "labels": x}


def prompt(torch: Any, family: Family, inputs: dict[str, Any]) -> dict[str, Any]:
    """What generation begins with."""
    given = {k: v for k, v in inputs.items() if k not in ("labels", "return_loss")}
    if family.inputs in ("tokens", "both"):
        given.update(input_ids=inputs["input_ids"][:, :5], attention_mask=inputs["attention_mask"][:, :5])
    return given


def stages(family: Family, device: str, chance: bool = True) -> list[Stage]:
    """The stages of one family; every one gives numbers. `chance`: the device draws the numbers that PyTorch's CPU
    draws; else nothing is dropped in training, and only the shape of what was sampled is compared."""

    def build(kept: dict[str, Any]) -> Any:
        torch = seeded()
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        kept["class"] = getattr(transformers, family.name + family.head)
        config = getattr(transformers, family.name + "Config")(**family.config)
        model = kept["class"](config)
        # Heads that begin with zeros would say nothing of what is below them.
        for p in model.parameters():
            if p.ndim > 1 and not bool(p.any()):
                torch.nn.init.normal_(p, std=0.02)
        kept["model"] = model.to(device)
        kept["inputs"] = {k: v.to(device) if hasattr(v, "to") else v for k, v in make_inputs(torch, family).items()}
        return [
            sum(p.numel() for p in model.parameters()),
            sum(p.double().abs().sum() for p in model.cpu().parameters()),
        ]

    def forward(kept: dict[str, Any]) -> Any:
        import torch

        kept["model"].to(device).eval()
        with torch.no_grad():
            return numbers(kept["model"](**kept["inputs"]))

    def training(kept: dict[str, Any]) -> Any:
        seeded(1)
        return train(kept["model"].train(chance), lambda: kept["model"](**kept["inputs"]).loss, rate=family.rate)

    def generate(kept: dict[str, Any]) -> Any:
        torch = seeded(3)
        given = prompt(torch, family, kept["inputs"])
        common = {**given, "max_new_tokens": 8}
        if family.name != "Blip":  # it names its own
            common["pad_token_id"] = 0
        model = kept["model"].eval()
        found = {
            "greedy": model.generate(do_sample=False, **common),
            "sampled": model.generate(do_sample=True, top_k=10, top_p=0.9, temperature=0.8, **common),
        }
        if family.name != "Llava":  # without a cache it takes the images for every token's, in transformers itself
            found["uncached"] = model.generate(do_sample=False, use_cache=False, **common)
        if family.name != "Rwkv":  # its state cannot be reordered, in transformers itself
            found["beam"] = model.generate(num_beams=3, do_sample=False, **common)
        if not chance:
            found["sampled"] = list(found["sampled"].shape)
        return found

    def save(kept: dict[str, Any]) -> Any:
        import torch

        folder = tempfile.mkdtemp()
        kept["model"].save_pretrained(folder)
        eager = {} if family.name in ("Mamba", "Mamba2", "Rwkv") else {"attn_implementation": "eager"}
        loaded = kept["class"].from_pretrained(folder, **eager).to(device).eval()
        with torch.no_grad():
            same = loaded(**kept["inputs"]).loss
            if family.name == "XLNet":  # it mixes its positions in float32 with weights, and fails in PyTorch as well
                return same
            half = kept["class"].from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
            cast = {k: v.bfloat16() if floating(v) and k != "labels" else v for k, v in kept["inputs"].items()}
            coarse = half(**cast).loss
        assert abs(float(same) - float(coarse)) < 0.05 * max(1.0, abs(float(same))), (float(same), float(coarse))
        return same

    return [build, forward, training, *([generate] if family.generates else []), save]


def floating(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and bool(value.is_floating_point())


def numbers(out: Any) -> dict[str, Any]:
    """The loss, and what the model computed, summed over its last dimension."""
    logits = out.logits if hasattr(out, "logits") else out.logits_per_image
    return {"loss": out.loss, "logits": logits.sum(-1)}


def families(group: str, names: Iterable[str] | None = None, device: str = "cpu") -> None:
    """Run the families of a group."""
    table = FAMILIES[group] if names is None else {n: f for g in FAMILIES.values() for n, f in g.items() if n in names}
    run_parts({name: stages(family, device) for name, family in table.items()})
