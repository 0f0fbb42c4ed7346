"""Families of transformers, each built small from its config: the table.

A family's row: its classes, the settings that make it small, which inputs it takes, and whether it generates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TOKENS = dict(vocab_size=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
# The settings of most decoders, and the same without heads of their own for keys.
DECODER = dict(
    **TOKENS,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
PLAIN = {k: v for k, v in DECODER.items() if k != "num_key_value_heads"}
GPT = dict(**TOKENS, n_embd=32, n_layer=2, n_head=4, n_positions=64)
SEQ2SEQ = dict(
    **TOKENS,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=64,
    decoder_start_token_id=1,
    forced_eos_token_id=None,
)
LAYERS = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
IMAGES = dict(**LAYERS, image_size=16, patch_size=8, num_channels=3)
STAGES = dict(num_channels=3, hidden_sizes=[8, 16], depths=[1, 1])
SPEECH = dict(
    **LAYERS,
    vocab_size=12,
    conv_dim=(16, 16),
    conv_stride=(4, 4),
    conv_kernel=(8, 4),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=4,
    mask_time_length=2,
    ctc_loss_reduction="mean",
)
TEXT_PART = dict(LAYERS, **TOKENS, max_position_embeddings=32)


@dataclass(frozen=True)
class Family:
    """How one family is built: `<name>Config`, `<name><head>`."""

    name: str
    head: str
    config: dict[str, Any]
    inputs: str = "tokens"
    generates: bool = False
    rate: float = 1e-2


def decoder(name: str, head: str = "ForCausalLM", base: dict[str, Any] = DECODER, **more: Any) -> Family:
    return Family(name, head, {**base, **more}, generates=True)


def encoder(name: str, head: str = "ForMaskedLM", **more: Any) -> Family:
    return Family(name, head, {**PLAIN, **more})


def seq2seq(name: str, **config: Any) -> Family:
    return Family(name, "ForConditionalGeneration", config or SEQ2SEQ, "pair", generates=True)


def image(name: str, **config: Any) -> Family:
    return Family(name, "ForImageClassification", {"num_labels": 3, **(config or IMAGES)}, "image")


FAMILIES: dict[str, dict[str, Family]] = {
    "decoders": {
        "gpt2": decoder("GPT2", "LMHeadModel", GPT),
        "llama": decoder("Llama"),
        "mistral": decoder("Mistral", sliding_window=6),
        "qwen2": decoder("Qwen2"),
        "qwen3": decoder("Qwen3", head_dim=8),
        "gemma": decoder("Gemma", head_dim=8),
        "gemma2": decoder("Gemma2", head_dim=8, sliding_window=6, query_pre_attn_scalar=8),
        "phi": decoder("Phi"),
        "phi3": decoder("Phi3"),
        "opt": decoder("OPT", base=PLAIN, ffn_dim=48, word_embed_proj_dim=32),
        "bloom": decoder("Bloom", base=TOKENS, hidden_size=32, n_layer=2, n_head=4),
        "falcon": decoder("Falcon", base=PLAIN, new_decoder_architecture=False),
        "gpt_neox": decoder("GPTNeoX", base=PLAIN),
        "gptj": decoder("GPTJ", base=GPT, rotary_dim=4),
        "mpt": decoder("Mpt", base=TOKENS, d_model=32, n_heads=4, n_layers=2, max_seq_len=64, expansion_ratio=2),
        "olmo": decoder("Olmo"),
        "cohere": decoder("Cohere"),
        "stablelm": decoder("StableLm"),
        "starcoder2": decoder("Starcoder2", sliding_window=6),
    },
    "encoders": {
        "bert": encoder("Bert"),
        "roberta": encoder("Roberta"),
        "electra": encoder("Electra", embedding_size=16),
        "albert": encoder("Albert", embedding_size=16),
        "deberta-v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
        "distilbert": Family("DistilBert", "ForMaskedLM", dict(TOKENS, dim=32, hidden_dim=48, n_layers=2, n_heads=4)),
        "xlnet": Family(
            "XLNet",
            "ForSequenceClassification",
            dict(TOKENS, d_model=32, n_layer=2, n_head=4, d_inner=48, num_labels=3),
            "classes",
        ),
    },
    "pairs": {
        "t5": seq2seq("T5", **TOKENS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
        "bart": seq2seq("Bart"),
        "mbart": seq2seq("MBart"),
        "pegasus": seq2seq("Pegasus"),
    },
    "experts": {
        "mixtral": decoder("Mixtral", num_local_experts=4, num_experts_per_tok=2),
        "qwen2_moe": decoder(
            "Qwen2Moe",
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            shared_expert_intermediate_size=32,
        ),
    },
    "states": {
        "mamba": decoder("Mamba", base=TOKENS, hidden_size=32, num_hidden_layers=2, state_size=8),
        "mamba2": decoder(
            "Mamba2",
            base=TOKENS,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=8,
            num_heads=8,
            head_dim=8,
            n_groups=2,
            chunk_size=4,
        ),
        "rwkv": decoder("Rwkv", base=TOKENS, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32),
    },
    "images": {
        "vit": image("ViT"),
        "deit": image("DeiT"),
        "swin": image("Swin", image_size=16, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4),
        "convnext": image("ConvNext", **STAGES, num_stages=2),
        "resnet": image("ResNet", **STAGES, embedding_size=8),
        "segformer": image(
            "Segformer",
            num_encoder_blocks=2,
            depths=[1, 1],
            sr_ratios=[2, 1],
            hidden_sizes=[8, 16],
            patch_sizes=[3, 3],
            strides=[2, 2],
            num_attention_heads=[1, 2],
            mlp_ratios=[2, 2],
        ),
        "dinov2": image("Dinov2", **{k: v for k, v in IMAGES.items() if k != "intermediate_size"}, mlp_ratio=2),
        "beit": image("Beit", **IMAGES, use_relative_position_bias=True),
    },
    "speech": {
        "whisper": Family(
            "Whisper",
            "ForConditionalGeneration",
            dict(
                SEQ2SEQ,
                num_mel_bins=8,
                max_source_positions=10,
                max_target_positions=32,
                suppress_tokens=None,
                begin_suppress_tokens=None,
            ),
            "spectrum",
            generates=True,
        ),
        "wav2vec2": Family("Wav2Vec2", "ForCTC", SPEECH, "wave"),
        "hubert": Family("Hubert", "ForCTC", SPEECH, "wave"),
    },
    "mixed": {
        "clip": Family("CLIP", "Model", dict(text_config=TEXT_PART, vision_config=IMAGES, projection_dim=16), "both"),
        "blip": Family(
            "Blip",
            "ForConditionalGeneration",
            dict(
                text_config=dict(TEXT_PART, encoder_hidden_size=32, is_decoder=True, sep_token_id=2),
                vision_config=IMAGES,
                projection_dim=16,
            ),
            "both",
            generates=True,
        ),
        "llava": Family(
            "Llava",
            "ForConditionalGeneration",
            dict(
                text_config=dict(DECODER, model_type="llama"),
                vision_config=dict(IMAGES, model_type="clip_vision_model"),
                image_token_id=63,
                image_seq_length=4,
            ),
            "places",
            generates=True,
        ),
        "vilt": Family(
            "Vilt", "ForQuestionAnswering", dict(IMAGES, **TOKENS, num_labels=3, max_position_embeddings=32), "vilt"
        ),
    },
}
