"""`torch.distributed.checkpoint.quantized_hf_storage`: importable, and refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "QuantizedHuggingFaceStorageReader",
    "{name} is not served; HuggingFaceStorageReader reads files that are not quantized",
)
