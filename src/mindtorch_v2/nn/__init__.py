"""Neural network building blocks: `Module`, `Parameter`, layers, losses and initialisers, as in PyTorch.

Invariant: a module holds state and plumbing only; every number is computed by an operator of the dispatch table.
"""

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403 - the layers are named once, in modules.__all__
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "parameter", "utils"]
__all__ += modules.__all__
