"""One family of transformers, built small: forward, backward, steps, generation, saving and loading, bfloat16."""

from __future__ import annotations

import tempfile
from typing import Any

from _stages import run, seeded, train


def family(name: str, config: dict[str, Any], head: str, inputs: str = "tokens", generates: bool = False) -> None:
    """Run all stages for `<name>Config` and `<name><head>`."""

    def importing(kept: dict[str, Any]) -> Any:
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        kept["config"] = getattr(transformers, name + "Config")(**config)
        kept["class"] = getattr(transformers, name + head)
        return transformers.__version__

    def build(kept: dict[str, Any]) -> Any:
        torch = seeded()
        model = kept["model"] = kept["class"](kept["config"])
        if inputs == "tokens":
            x = torch.randint(3, config["vocab_size"], (2, 9))
            kept["inputs"] = {"input_ids": x, "attention_mask": torch.ones_like(x), "labels": x}
        else:
            kept["inputs"] = {"pixel_values": torch.rand(2, 3, 16, 16), "labels": torch.tensor([0, 1])}
        return [sum(p.numel() for p in model.parameters()), sum(p.double().abs().sum() for p in model.parameters())]

    def forward(kept: dict[str, Any]) -> Any:
        import torch

        kept["model"].eval()
        with torch.no_grad():
            out = kept["model"](**kept["inputs"])
        return {"loss": out.loss, "logits": out.logits.sum(-1)}

    def training(kept: dict[str, Any]) -> Any:
        return train(kept["model"], lambda: kept["model"](**kept["inputs"]).loss)

    def generate(kept: dict[str, Any]) -> Any:
        torch = seeded(3)
        x = kept["inputs"]["input_ids"][:, :4]
        common = {"max_new_tokens": 8, "pad_token_id": 0, "attention_mask": torch.ones_like(x)}
        model = kept["model"].eval()
        return {
            "greedy": model.generate(x, do_sample=False, **common),
            "beam": model.generate(x, num_beams=3, do_sample=False, **common),
            "sampled": model.generate(x, do_sample=True, top_k=10, top_p=0.9, temperature=0.8, **common),
        }

    def save(kept: dict[str, Any]) -> Any:
        import torch

        folder = tempfile.mkdtemp()
        kept["model"].save_pretrained(folder)
        loaded = kept["class"].from_pretrained(folder).eval()
        half = kept["class"].from_pretrained(folder, dtype=torch.bfloat16).eval()
        with torch.no_grad():
            same = loaded(**kept["inputs"]).loss
            coarse = half(**{k: v.bfloat16() if v.is_floating_point() else v for k, v in kept["inputs"].items()}).loss
        assert abs(float(same) - float(coarse)) < 0.1
        return same

    run(importing, build, forward, training, *([generate] if generates else []), save)
