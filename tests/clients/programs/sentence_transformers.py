"""sentence-transformers: a small BERT from its config with pooling: encoding, training, search, saving and loading."""

import os
import tempfile
from typing import Any

from _stages import run, seeded, train

WORDS = "the a cat dog sat ran on mat red blue sky is how are you what fine good bad day".split()
LEFT = ["the cat sat on the mat", "how are you", "the sky is blue", "a good day"]
RIGHT = ["a cat is on a mat", "what are you", "blue is the sky", "the day is fine"]


def importing(kept: dict[str, Any]) -> Any:
    import sentence_transformers
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return sentence_transformers.__version__


def build(kept: dict[str, Any]) -> Any:
    seeded()
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    tokenizer = BertTokenizerFast(os.path.join(folder, "vocab.txt"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    encoder = models.Transformer(folder)
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), "mean")
    kept["model"] = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device="cpu")
    return [len(tokenizer), sum(p.abs().sum() for p in kept["model"].parameters())]


def encode(kept: dict[str, Any]) -> Any:
    return kept["model"].encode(LEFT, show_progress_bar=False, batch_size=2).sum(-1)


def training(kept: dict[str, Any]) -> Any:
    from sentence_transformers import losses

    model = kept["model"].train()
    loss = losses.MultipleNegativesRankingLoss(model)
    features = [dict(model.tokenize(texts)) for texts in (LEFT, RIGHT)]
    return train(model, lambda: loss([dict(f) for f in features], None), rate=1e-3)


def evaluate(kept: dict[str, Any]) -> Any:
    from sentence_transformers import util

    model = kept["model"].eval()
    left, right = (model.encode(t, convert_to_tensor=True, show_progress_bar=False) for t in (LEFT, RIGHT))
    hits = util.semantic_search(left, right, top_k=2)
    return {"similarity": model.similarity(left, right), "hits": [[h["corpus_id"] for h in row] for row in hits]}


def save(kept: dict[str, Any]) -> Any:
    from sentence_transformers import SentenceTransformer

    folder = tempfile.mkdtemp()
    kept["model"].save_pretrained(folder)
    again = SentenceTransformer(folder, device="cpu")
    return again.encode(RIGHT, show_progress_bar=False).sum(-1)


run(importing, build, encode, training, evaluate, save)
