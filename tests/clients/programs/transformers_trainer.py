"""transformers: `Trainer` with resuming, gradient checkpointing and evaluation; `pipeline`."""

import os
import tempfile
from typing import Any

from _stages import run, seeded

WORDS = "the a cat dog sat ran on mat red blue sky is how are you what fine good bad day".split()
SIZES = dict(n_embd=32, n_layer=2, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def importing(kept: dict[str, Any]) -> Any:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    known = {word: i for i, word in enumerate(["[PAD]", "[BOS]", "[EOS]", "[UNK]", "[MASK]", *WORDS])}
    plain = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "[PAD]", "bos_token": "[BOS]", "eos_token": "[EOS]", "unk_token": "[UNK]"}
    kept["tokenizer"] = PreTrainedTokenizerFast(tokenizer_object=plain, mask_token="[MASK]", **names)
    kept["make"] = lambda: GPT2LMHeadModel(GPT2Config(vocab_size=len(known), **SIZES))

    class Texts(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.rows = torch.randint(5, len(known), (24, 8))

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, i: int) -> Any:
            return {"input_ids": self.rows[i], "labels": self.rows[i]}

    kept["data"] = Texts()
    return kept["data"].rows


def trainer(kept: dict[str, Any], folder: str, **options: Any) -> Any:
    seeded()
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        max_steps=6,
        save_steps=3,
        logging_steps=1,
        learning_rate=1e-2,
        lr_scheduler_type="cosine",
        warmup_steps=1,
        weight_decay=0.01,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=3,
        **options,
    )
    return Trainer(kept["make"](), arguments, train_dataset=kept["data"], eval_dataset=kept["data"])


def losses(given: Any) -> list[float]:
    return [line["loss"] for line in given.state.log_history if "loss" in line]


def training(kept: dict[str, Any]) -> Any:
    kept["folder"] = tempfile.mkdtemp()
    kept["trainer"] = trainer(kept, kept["folder"])
    kept["trainer"].train()
    kept["losses"] = losses(kept["trainer"])
    evaluated = kept["trainer"].evaluate()
    predicted = kept["trainer"].predict(kept["data"])
    return {"losses": kept["losses"], "eval": evaluated["eval_loss"], "logits": predicted.predictions.sum(-1)}


def resuming(kept: dict[str, Any]) -> Any:
    again = trainer(kept, kept["folder"])
    again.train(resume_from_checkpoint=os.path.join(kept["folder"], "checkpoint-3"))
    assert again.state.global_step == 6
    found = losses(again)
    assert all(abs(a - b) < 1e-4 for a, b in zip(found[-3:], kept["losses"][-3:])), (found, kept["losses"])
    return found


def checkpointing(kept: dict[str, Any]) -> Any:
    """Values computed again in the backward pass give the same losses; accumulated gradients, a fused optimizer."""
    options = dict(gradient_checkpointing=True, save_strategy="no")
    again = trainer(kept, tempfile.mkdtemp(), **options)
    again.train()
    assert all(abs(a - b) < 1e-4 for a, b in zip(losses(again), kept["losses"]))
    half = trainer(kept, tempfile.mkdtemp(), gradient_accumulation_steps=2, bf16=True, **options)
    half.train()
    return {"whole": losses(again), "accumulated": [round(x, 1) for x in losses(half)]}


def pipelines(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, pipeline

    config = BertConfig(
        vocab_size=25, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3
    )
    common = {"tokenizer": kept["tokenizer"], "device": "cpu"}
    model = kept["trainer"].model
    texts = ["the cat sat on", "how are you"]
    generated = pipeline("text-generation", model=model, **common)(texts, max_new_tokens=6, do_sample=False)
    sorts = pipeline("text-classification", model=BertForSequenceClassification(config).eval(), top_k=None, **common)
    masked = pipeline("fill-mask", model=BertForMaskedLM(config).eval(), **common)
    features = pipeline("feature-extraction", model=BertForMaskedLM(config).eval(), **common)
    return {
        "generated": [row[0]["generated_text"] for row in generated],
        "classes": [[[r["label"], r["score"]] for r in row] for row in sorts(texts)],
        "masked": [[r["token_str"], r["score"]] for r in masked("the [MASK] is blue", top_k=2)],
        "features": torch.tensor(features("the dog ran")).sum(-1),
    }


run(importing, build, training, resuming, checkpointing, pipelines)
