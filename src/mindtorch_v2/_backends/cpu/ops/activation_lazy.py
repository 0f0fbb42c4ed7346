"""CPU lines of the shrinking activation functions, and of those with slopes."""
from __future__ import annotations

from ..lines import binary, cpu
from .activation import activation, backward

cpu("_prelu_kernel", binary("PRELU"))
for _name in ("hardshrink", "softshrink"):
    cpu(_name, activation(_name.upper(), 1))
    cpu(f"{_name}_backward", backward("SHRINK_BACKWARD", 2))
