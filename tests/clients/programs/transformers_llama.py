"""transformers: Llama, with grouped keys and values."""

from _family import family

SIZES = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
family("Llama", {**SIZES, "intermediate_size": 64, "max_position_embeddings": 64}, "ForCausalLM", generates=True)
