"""What NPUs refuse of what PyTorch computes on the CPU, by operator: dtypes, "gradient", or "all".

Invariant: each entry is a limit of the vendor's functions, not a hole of ours; the error says which.
"""

from __future__ import annotations

EVERY = ("float32", "float16", "bfloat16", "int64", "bool")
REFUSED: dict[str, tuple[str, ...] | str] = {
    # aclnnConvolution multiplies in the matrix unit, which has no integers of this width.
    **{f"nn.functional.conv{across}{rank}d": ("int64",) for across in ("", "_transpose") for rank in (1, 2, 3)},
    # Functions that the vendor does not have.
    "special.airy_ai": EVERY,
    "igamma": EVERY,
    "igammac": EVERY,
    # The vendor has neither LDL factorizations nor eigenvalues of matrices that are not Hermitian.
    **dict.fromkeys("linalg.eig linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.eigvals".split(), EVERY),
}
