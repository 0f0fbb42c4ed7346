"""Mixed precision: `autocast` chooses dtypes per operator, `GradScaler` keeps small gradients from vanishing."""

from .autocast_mode import _enter_autocast as _enter_autocast
from .autocast_mode import _exit_autocast as _exit_autocast
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
