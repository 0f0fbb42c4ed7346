"""peft: LoRA on a small GPT-2: training, with gradient checkpointing as well, merging, saving and loading."""

import tempfile
from typing import Any

from _stages import run, seeded, train


def importing(kept: dict[str, Any]) -> Any:
    import peft

    return peft.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = dict(vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0)
    base = GPT2LMHeadModel(GPT2Config(**sizes, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2))
    kept["x"] = torch.randint(3, 50, (2, 8))
    kept["base"] = {k: v.clone() for k, v in base.state_dict().items()}
    kept["model"] = get_peft_model(
        base, LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    )
    return [kept["model"].get_nb_trainable_parameters()]


def training(kept: dict[str, Any]) -> Any:
    x = kept["x"]
    return train(kept["model"], lambda: kept["model"](input_ids=x, labels=x).loss)


def checkpointing(kept: dict[str, Any]) -> Any:
    x = kept["x"]
    kept["model"].enable_input_require_grads()
    kept["model"].gradient_checkpointing_enable()
    losses = train(kept["model"].train(), lambda: kept["model"](input_ids=x, labels=x, use_cache=False).loss)
    kept["model"].gradient_checkpointing_disable()
    return losses


def save(kept: dict[str, Any]) -> Any:
    import torch

    folder = tempfile.mkdtemp()
    model = kept["model"].eval()
    model.save_pretrained(folder)
    from peft import PeftModel
    from transformers import GPT2LMHeadModel

    base = GPT2LMHeadModel(model.config)
    base.load_state_dict(kept["base"])
    loaded = PeftModel.from_pretrained(base, folder).eval()
    with torch.no_grad():
        before = model(input_ids=kept["x"]).logits
        merged = model.merge_and_unload()
        again = loaded(input_ids=kept["x"]).logits
        after = merged(input_ids=kept["x"]).logits
    assert (before - after).abs().max() < 1e-4 and (before - again).abs().max() < 1e-5
    return before.sum(-1)


run(importing, build, training, checkpointing, save)
