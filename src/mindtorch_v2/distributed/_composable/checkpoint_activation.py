"""`checkpoint`: a module that computes its activations again in backward; neither its class nor names change."""

from __future__ import annotations

from typing import Any

from ...utils import checkpoint as _checkpoint
from .._composable_state import _State
from .contract import contract


class _CheckpointState(_State):
    enable_hook = False


@contract(_CheckpointState)
def checkpoint(module: Any, **kwargs: Any) -> Any:
    """Have a module compute its activations again when backward wants them."""
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use "
            "torch.utils.checkpoint.checkpoint instead."
        )
    known = ("preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
    settings = {name: kwargs.pop(name) for name in known if name in kwargs}
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    forward, state = module.forward, checkpoint.state(module)

    def again(*args: Any, **named: Any) -> Any:
        if not state.enable_hook:
            return forward(*args, **named)
        return _checkpoint.checkpoint(forward, *args, use_reentrant=False, **settings, **named)

    state.enable_hook = True
    module.forward = again
    return module
