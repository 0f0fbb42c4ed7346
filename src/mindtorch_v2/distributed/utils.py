"""`torch.distributed.utils`: small helpers that programs import."""

from __future__ import annotations

from typing import Any

from ..nn.parallel.scatter_gather import _is_namedtuple as _is_namedtuple


def _verify_param_shape_across_processes(process_group: Any, tensors: list[Any], logger: Any = None) -> None:
    """Refuse parameters that do not have the same shapes on all ranks."""
    from ._reducer import _verify_params_across_processes

    _verify_params_across_processes(process_group, tensors, logger)
