"""What NPUs refuse of what PyTorch computes on the CPU, by operator: dtypes, "gradient", or "all".

Invariant: each entry is a limit of the vendor's functions, not a hole of ours; the error says which.
"""

from __future__ import annotations

EVERY = ("float32", "float16", "bfloat16", "int64", "bool")
# The vendor has neither LDL factorizations nor eigenvalues of matrices that are not Hermitian.
REFUSED: dict[str, tuple[str, ...] | str] = dict.fromkeys(
    "linalg.eig linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.eigvals".split(), EVERY
)
