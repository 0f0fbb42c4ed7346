"""transformers: GPT-2."""

from _family import family

SIZES = dict(
    vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
)
family("GPT2", {**SIZES, "bos_token_id": 1, "eos_token_id": 2}, "LMHeadModel", generates=True)
