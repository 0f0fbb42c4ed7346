"""`torch.lobpcg`: a few eigenpairs of large symmetric matrices by locally optimal conjugate gradients over blocks.

Invariant: the matrices are only multiplied with thin blocks; what is factorized has at most three blocks of columns.
The methods are Knyazev's ("basic") and the one of Duersch et al. (SIAM J. Sci. Comput. 40(5)), whose search space stays
orthonormal ("ortho"); a step is done in PyTorch's order, so the same start leads through the same iterates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._overrides import overridable
from .autograd.function import Function

__all__ = ["lobpcg"]


def _times(A: Any, X: Any) -> Any:
    """A X, where no A stands for the identity."""
    return X if A is None else torch.sparse.mm(A, X) if A.is_sparse else torch.matmul(A, X)


def _form(A: Any, S: Any) -> Any:
    return torch.matmul(S.mT, _times(A, S))


def _eigenpairs(A: Any, largest: bool = False) -> tuple[Any, Any]:
    E, Z = torch.linalg.eigh(A, UPLO="U")
    return (E.flip(-1), Z.flip(-1)) if largest else (E, Z)


def _size(t: Any) -> float:
    return float(torch.norm(t))


class LOBPCG:
    """The state of one iteration, which a tracker sees after every step."""

    def __init__(
        self,
        A: Any,
        B: Any,
        X: Any,
        iK: Any,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[Any], Any] | None,
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        m, n = iparams["m"], iparams["n"]
        self.E = X.new_zeros((n,))
        self.R = X.new_zeros((m, n))
        self.S = X.new_zeros((m, 3 * n))
        self.tvars: dict[str, Any] = {}
        self.ivars: dict[str, int] = {"istep": 0}
        self.fvars: dict[str, float] = {"_": 0.0}
        self.bvars: dict[str, bool] = {"_": False}

    def __str__(self) -> str:
        shown = "iparams fparams bparams ivars fvars bvars tvars A B iK X E".split()
        return "LOBPCG:\n" + "".join(f"  {name}={getattr(self, name)}\n" for name in shown)

    def update(self) -> None:
        """One step; the first one sets the state up."""
        if self.ivars["istep"] == 0:
            size = _size(self.X)
            self.fvars["X_norm"] = size
            self.fvars["A_norm"] = _size(_times(self.A, self.X)) / size
            self.fvars["B_norm"] = _size(_times(self.B, self.X)) / size
            self.ivars.update(iterations_left=self.iparams["niter"], converged_count=0, converged_end=0)
        if self.method == "ortho":
            self._update_ortho()
        else:
            self._update_basic()
        self.ivars["iterations_left"] -= 1
        self.ivars["istep"] += 1

    def update_residual(self) -> None:
        """R from A, B, X and E."""
        self.R = _times(self.A, self.X) - _times(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many pairs have converged, counted from the first to the first that has not."""
        before = self.ivars["converged_count"]
        E, X = self.E, self.X
        scale = self.fvars["A_norm"] + E[: X.shape[-1]].abs() * self.fvars["B_norm"]
        rerr = torch.norm(self.R, 2, (0,)) / (torch.norm(X, 2, (0,)) * scale)
        small = (rerr < self.fparams["tol"]).tolist()
        count = small.index(False) if False in small else len(small)
        if count < before:
            raise AssertionError(f"the number of converged eigenpairs (was {before}, got {count}) cannot decrease")
        self.ivars["converged_count"] = count
        self.tvars["rerr"] = rerr
        return count

    def stop_iteration(self) -> bool:
        """Whether enough pairs have converged, no steps are left, or a tracker asked for the end."""
        return (
            self.bvars.get("force_stop", False)
            or self.ivars["iterations_left"] == 0
            or self.ivars["converged_count"] >= self.iparams["k"]
        )

    def run(self) -> None:
        """Iterate until `stop_iteration`."""
        while True:
            self.update()
            self.call_tracker()
            if self.stop_iteration():
                return

    def call_tracker(self) -> None:
        """Show this state to the tracker."""
        if self.tracker is not None:
            self.tracker(self)

    # -- steps ----------------------------------------------------------------------------------------------------
    def _search(self, P: Any, W: Any) -> None:
        """The next search space: approximations, conjugate directions, residuals."""
        n = self.iparams["n"]
        np = 0 if P is None else P.shape[-1]
        end = n + np + W.shape[-1]
        if P is not None:
            self.S[:, n : n + np] = P
        self.S[:, n + np : end] = W
        self.ivars["converged_end"] = end

    def _update_basic(self) -> None:
        n, largest = self.iparams["n"], self.bparams["largest"]
        nc = self.ivars["converged_count"]
        P = None
        if self.ivars["istep"] == 0:
            Ri = self._rayleigh_ritz(self.X)
            E, Z = _eigenpairs(_form(_form(self.A, self.X), Ri), largest)
            self.X[:] = self.X @ (Ri @ Z)
            self.E[:] = E
        else:
            S = self.S[:, nc : self.ivars["converged_end"]]
            Ri = self._rayleigh_ritz(S)
            E, Z = _eigenpairs(_form(_form(self.A, S), Ri), largest)
            self.X[:, nc:] = S @ (Ri @ Z[:, : n - nc])
            self.E[nc:] = E[: n - nc]
            P = S @ (Ri @ Z[:, n : 2 * n - nc])
        self.update_residual()
        first = P is None
        nc = self.update_converged_count()
        self.S[:, :n] = self.X
        self._search(P, _times(self.iK, self.R if first else self.R[:, nc:]))

    def _update_ortho(self) -> None:
        n, largest = self.iparams["n"], self.bparams["largest"]
        nc = self.ivars["converged_count"]
        if self.ivars["istep"] == 0:
            Ri = self._rayleigh_ritz(self.X)
            _, Z = _eigenpairs(_form(_form(self.A, self.X), Ri), largest)
            self.X = self.X @ (Ri @ Z)
            self.update_residual()
            self.update_converged_count()
            self.S[:, :n] = self.X
            self._search(None, self._orthogonal(self.R, self.X))
            return
        S = self.S[:, nc : self.ivars["converged_end"]]
        E, Z = _eigenpairs(_form(self.A, S), largest)
        self.X[:, nc:] = S @ Z[:, : n - nc]
        self.E[nc:] = E[: n - nc]
        P = S @ (Z[:, n - nc :] @ torch.linalg.qr(Z[: n - nc, n - nc :].mT).Q)
        self.update_residual()
        nc = self.update_converged_count()
        self.S[:, :n] = self.X
        self.S[:, n : n + P.shape[-1]] = P
        self._search(P, self._orthogonal(self.R[:, nc:], self.S[:, : n + P.shape[-1]]))

    def _rayleigh_ritz(self, S: Any) -> Any:
        """A triangular matrix T that makes S T orthonormal with respect to B."""
        SBS = _form(self.B, S)
        d = SBS.diagonal(0, -2, -1) ** -0.5
        R = torch.linalg.cholesky((SBS * d) * d.reshape(-1, 1), upper=True)
        return torch.linalg.solve_triangular(R, d.diag_embed(), upper=True, left=False)

    def _orthonormal(self, U: Any, drop: bool, tau: float) -> Any:
        """U with columns that are orthonormal with respect to B; `drop` leaves out those that add little."""
        if U.numel() == 0:
            return U
        UBU = _form(self.B, U)
        d = UBU.diagonal(0, -2, -1)
        nonzero = torch.where(d != 0)[0]
        if len(nonzero) < len(d):
            U = U[:, nonzero]
            if U.numel() == 0:
                return U
            UBU = _form(self.B, U)
            d = UBU.diagonal(0, -2, -1)
        scale = (d**-0.5).reshape(-1, 1)
        E, Z = _eigenpairs((UBU * scale) * scale.mT)
        least = tau * E.abs().max()
        if drop:
            keep = torch.where(E > least)[0]
            E, Z, scale = E[keep], Z[:, keep], scale[keep]
        else:
            E = torch.where(E < least, least, E)
        return (U * scale.mT) @ (Z * E**-0.5)

    def _orthogonal(self, U: Any, V: Any) -> Any:
        """U with orthonormal columns that are orthogonal to V, both with respect to B; empty if V spans it."""
        tol, tol_replace = self.fparams["ortho_tol"], self.fparams["ortho_tol_replace"]
        use_drop = self.bparams["ortho_use_drop"]
        for name in [n for n in self.fvars if n.startswith("ortho_") and n.endswith("_rerr")]:
            del self.fvars[name]
        BV = _size(_times(self.B, V))
        VBU = V.mT @ _times(self.B, U)
        i = j = 0
        for i in range(self.iparams["ortho_i_max"]):
            U = U - V @ VBU
            tau = self.fparams["ortho_tol_drop"] if use_drop else tol_replace
            for j in range(self.iparams["ortho_j_max"]):
                U = self._orthonormal(U, use_drop and j > 0, tau)
                tau = tol_replace
                if U.numel() == 0:
                    self.ivars.update(ortho_i=i, ortho_j=j)
                    return U
                BU = _times(self.B, U)
                UBU = U.mT @ BU
                off = UBU - torch.eye(UBU.shape[-1], device=UBU.device, dtype=UBU.dtype)
                rerr = _size(off) / float(torch.norm(BU) * torch.norm(U))
                self.fvars[f"ortho_UBUmI_rerr[{i}, {j}]"] = rerr
                if rerr < tol:
                    break
            VBU = V.mT @ BU
            rerr = _size(VBU) / (BV * _size(U))
            self.fvars[f"ortho_VBU_rerr[{i}]"] = rerr
            if rerr < tol:
                break
            if self.iparams["m"] < U.shape[-1] + V.shape[-1]:
                raise ValueError(
                    f"Overdetermined shape of U: #B-cols(={self.iparams['m']}) >= #U-cols(={U.shape[-1]}) + "
                    f"#V-cols(={V.shape[-1]}) must hold"
                )
        self.ivars.update(ortho_i=i, ortho_j=j)
        return U


def _parameters(
    m: int,
    n: int,
    k: int,
    niter: int | None,
    tol: float,
    largest: bool | None,
    method: str,
    ortho: tuple[Any, Any, Any],
) -> tuple[dict[str, int], dict[str, float], dict[str, bool]]:
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    fparams = {"tol": tol}
    bparams = {"largest": True if largest is None else largest}
    if method == "ortho":
        iparams.update({"ortho_i_max": 3, "ortho_j_max": 3, **(ortho[0] or {})})
        fparams.update({"ortho_tol": tol, "ortho_tol_drop": tol, "ortho_tol_replace": tol, **(ortho[1] or {})})
        bparams.update({"ortho_use_drop": False, **(ortho[2] or {})})
    return iparams, fparams, bparams


def _lobpcg(
    A: Any, k: Any, B: Any, X: Any, n: Any, iK: Any, niter: Any, tol: Any, largest: Any, method: Any, tracker: Any,
    *ortho: Any,
) -> tuple[Any, Any]:  # fmt: skip
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    dtype = A.dtype if A.dtype in (torch.float16, torch.float32, torch.float64) else torch.float32
    if tol is None:
        tol = {torch.float32: 1.2e-07, torch.float64: 2.23e-16}[dtype] ** 0.5
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m})"
            f" is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    method = "ortho" if method is None else method
    parameters = _parameters(m, n, k, niter, tol, largest, method, (ortho[0], ortho[1], ortho[2]))

    def solve(A: Any, B: Any, X: Any) -> tuple[Any, Any]:
        X = torch.randn((m, n), dtype=dtype, device=A.device) if X is None else X
        if tuple(X.shape) != (m, n):
            raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(m, n)}")
        worker = LOBPCG(A, B, X, iK, *parameters, method, tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    batch = A.shape[:-2]
    if not batch:
        return solve(A, B, X)
    rows: list[Any] = [None if t is None else t.reshape((-1, *t.shape[-2:])) for t in (A, B, X)]
    pairs = []
    for i in range(rows[0].shape[0]):
        parameters[0]["batch_index"] = i
        pairs.append(solve(*(None if t is None else t[i] for t in rows)))
    if not pairs:
        return A.new_empty((*batch, k), dtype=dtype), A.new_empty((*batch, m, k), dtype=dtype)
    return (
        torch.stack([e for e, _ in pairs]).reshape((*batch, k)),
        torch.stack([x for _, x in pairs]).reshape((*batch, m, k)),
    )


class LOBPCGAutogradFunction(Function):
    """Eigenpairs with a derivative: that of simple eigenvalues, whatever the iteration did."""

    @staticmethod
    def forward(ctx: Any, A: Any, k: Any, B: Any, *rest: Any) -> Any:
        """The eigenpairs."""
        A, B = (t if t is None or t.is_sparse else t.contiguous() for t in (A, B))
        D, U = _lobpcg(A, k, B, *rest)
        ctx.save_for_backward(A, B, D, U)
        return D, U

    @staticmethod
    def backward(ctx: Any, D_grad: Any, U_grad: Any) -> Any:
        """dA = U (diag(dD) + (U' dU) * F) U' within the eigenvectors, and what moves them out of their space."""
        A, B, D, U = ctx.saved_tensors
        if A.is_sparse or (B is not None and B.is_sparse and ctx.needs_input_grad[2]):
            raise ValueError("lobpcg.backward does not support sparse input yet. Note that lobpcg.forward does though.")
        if A.is_complex() or (B is not None and B.is_complex()):
            raise ValueError(
                "lobpcg.backward does not support complex input yet. Note that lobpcg.forward does though."
            )
        if B is not None:
            raise ValueError("lobpcg.backward does not support backward with B != I yet.")
        gaps = D.unsqueeze(-2) - D.unsqueeze(-1)
        same = torch.eye(D.shape[-1], dtype=torch.bool, device=D.device)
        F = gaps.masked_fill(same, float("inf")).reciprocal()
        grad = U @ (torch.diag_embed(D_grad) + (U.mT @ U_grad) * F) @ U.mT
        m, k = U.shape[-2:]
        if k < m:
            inside = U @ U.mT
            outside = torch.eye(m, dtype=U.dtype, device=U.device) - inside
            # On the eigenvectors the identity, elsewhere A less the eigenvalue: regular where that one is simple.
            system = D[..., None, None] * outside.unsqueeze(-3) - (outside @ A @ outside - inside).unsqueeze(-3)
            moved = torch.linalg.solve(system, (outside @ U_grad).mT.unsqueeze(-1)).squeeze(-1).mT
            grad = grad + moved @ U.mT
        return (grad, *(None,) * 13)


@overridable
def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Any, Any]:
    """The `k` largest (or smallest) eigenvalues of A x = e B x and their vectors, A and B symmetric, B positive.

    `X` is a first approximation (by default random), `iK` a preconditioner, `tracker` is called after each step with
    the state of the iteration. A has a gradient where there is no B and the eigenvalues are distinct.
    """
    ortho = (ortho_iparams, ortho_fparams, ortho_bparams)
    if A.requires_grad or (B is not None and B.requires_grad):
        # Symmetric matrices stay so under their gradient.
        A = (A + A.mT) / 2
        B = None if B is None else (B + B.mT) / 2
        pair: tuple[Any, Any] = LOBPCGAutogradFunction.apply(
            A, k, B, X, n, iK, niter, tol, largest, method, tracker, *ortho
        )
        return pair
    return _lobpcg(A, k, B, X, n, iK, niter, tol, largest, method, tracker, *ortho)
