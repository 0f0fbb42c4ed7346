"""CPU lines of linear algebra."""
from __future__ import annotations

from ..kernels import linalg as k
from ..lines import cpu, into

for _name, _fn in (("linalg_lu_factor_ex", k.lu_factor), ("lu_unpack", k.lu_unpack), ("linalg_det", k.det),
                   ("linalg_slogdet", k.slogdet), ("linalg_inv_ex", k.inv), ("_linalg_solve_ex", k.solve),
                   ("linalg_solve_triangular", k.solve_triangular), ("linalg_cholesky_ex", k.cholesky),
                   ("linalg_qr", k.qr), ("_linalg_eigh", k.eigh), ("linalg_eig", k.eig), ("_linalg_svd", k.svd),
                   ("linalg_matrix_exp", k.matrix_exp), ("linalg_lstsq", k.lstsq), ("geqrf", k.geqrf)):
    cpu(_name, into(_fn, calls_ops=_name == "linalg_cholesky_ex"))
