"""`torch.compiler.config`: settings of PyTorch's compiler, kept for programs that set them."""

from __future__ import annotations

from typing import Any

from .._dynamo._settings import become, spelled


def _table() -> dict[str, Any]:
    return spelled(
        none="cache_key_tag job_id pipeline_batch_id unbacked_sources dynamic_sources", false="force_disable_caches"
    )


become(__name__, _table)
