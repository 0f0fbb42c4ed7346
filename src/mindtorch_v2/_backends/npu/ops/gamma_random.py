"""NPU lines of the gamma family."""
from __future__ import annotations

from ..lines import missing

for _name in ("_standard_gamma", "_standard_gamma_grad", "_sample_dirichlet", "_dirichlet_grad"):
    missing(_name, "the vendor has no such distribution")
