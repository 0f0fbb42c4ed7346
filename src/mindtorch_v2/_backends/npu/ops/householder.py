"""NPU lines of factorizations; Householder reflections are made of products of matrices and need none."""
from __future__ import annotations

from ..lines import missing

for _name in ("linalg_ldl_factor_ex", "linalg_ldl_solve"):
    missing(_name, "the vendor has no function for it")
