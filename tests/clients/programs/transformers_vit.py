"""transformers: a vision transformer."""

from _family import family

SIZES = dict(image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
family("ViT", {**SIZES, "intermediate_size": 64, "hidden_dropout_prob": 0.0}, "ForImageClassification", inputs="pixels")
