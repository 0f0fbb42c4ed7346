"""Control flow as functions: `torch.cond`, `torch.while_loop`, and `scan`, `associative_scan`, `map`.

Invariant: what runs is the branch or the steps that the data asks for, as ordinary calls; so gradients, modes and
devices work as they do outside, and nothing is traced.
"""

from __future__ import annotations

from .associative_scan import associative_scan
from .cond import cond
from .invoke_quant import InvokeQuant, invoke_quant_packed
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["InvokeQuant", "associative_scan", "cond", "invoke_quant_packed", "map", "scan", "while_loop"]
