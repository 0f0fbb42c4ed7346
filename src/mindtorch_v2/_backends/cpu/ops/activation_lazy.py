"""CPU lines of the shrinking activation functions."""
from __future__ import annotations

from ..lines import cpu
from .activation import activation, backward

for _name in ("hardshrink", "softshrink"):
    cpu(_name, activation(_name.upper(), 1))
    cpu(f"{_name}_backward", backward("SHRINK_BACKWARD", 2))
