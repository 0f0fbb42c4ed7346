"""transformers: BERT."""

from _family import family

SIZES = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
family(
    "Bert",
    {**SIZES, "max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "ForMaskedLM",
)
