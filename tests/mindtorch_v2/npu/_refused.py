"""What NPUs refuse of what PyTorch computes on the CPU, by operator: dtypes, "gradient", or "all".

Invariant: each entry is a limit of the vendor's functions, not a hole of ours; the error says which.
"""
from __future__ import annotations

EVERY = ("float32", "float16", "bfloat16", "int64", "bool")
REFUSED: dict[str, tuple[str, ...] | str] = {
    # The vendor counts into equal bins only.
    "histogram": "all",
    # aclnnConvolution multiplies in the matrix unit, which has no integers of this width.
    **{f"nn.functional.conv{across}{rank}d": ("int64",) for across in ("", "_transpose") for rank in (1, 2, 3)},
    # Functions that the vendor does not have.
    **{f"special.{name}": EVERY for name in (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 i0e i1 i1e erfcx "
        "log_ndtr ndtri zeta hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p"
    ).split()},
    **{f"special.{shifted}chebyshev_polynomial_{kind}": EVERY for shifted in ("", "shifted_") for kind in "tuvw"},
    "i0": EVERY, "signal.windows.kaiser": EVERY, "igamma": EVERY, "igammac": EVERY, "nextafter": EVERY, "frexp": EVERY,
    # The vendor has neither LU and LDL factorizations nor eigenvalues.
    **{name: EVERY for name in (
        "geqrf linalg.eig linalg.eigh linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.eigvals "
        "linalg.eigvalsh linalg.lstsq linalg.lstsq-grad_oriented linalg.lu "
        "linalg.lu_factor linalg.lu_factor_ex matrix_exp linalg.matrix_rank-hermitian linalg.pinv-hermitian "
        "linalg.solve linalg.solve_ex lu lu_unpack linalg.tensorsolve").split()},
    "linalg.lu_solve": ("float32", "gradient"),
    "lu_solve": ("float32", "gradient"),
}
