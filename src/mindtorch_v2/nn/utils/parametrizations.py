"""Ready-made parametrizations: orthogonal matrices, spectral norm, weight norm.

Invariant: each has a right inverse, so that a tensor assigned to the parametrized name is stored where it can be.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..functional import normalize
from ..modules.module import Module
from . import parametrize
from .spectral_norm import default_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _is_orthogonal(q: Any) -> bool:
    rows, columns = q.size(-2), q.size(-1)
    identity = torch.eye(columns, dtype=q.dtype, device=q.device)
    slack = 10.0 * rows * torch.finfo(q.dtype).eps
    return bool(torch.allclose(q.mH @ q, identity, atol=slack))


def _make_orthogonal(a: Any) -> Any:
    """The Q of a QR decomposition whose R has a positive diagonal, so that an orthogonal matrix is its own."""
    x, tau = torch.geqrf(a)
    q = torch.linalg.householder_product(x, tau)
    q *= x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return q


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.size(-2) < X.size(-1)
        q = self._orthogonal(X.mT if wide else X)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _orthogonal(self, x: Any) -> Any:
        """An orthogonal matrix of the shape of `x`, which has at least as many rows as columns."""
        n, k = x.size(-2), x.size(-1)
        if self.orthogonal_map == _OrthMaps.householder:
            vectors = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
            # The diagonal holds signs, see right_inverse.
            signs = x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
            return torch.linalg.householder_product(vectors, tau) * signs
        x = x.tril()
        if n != k:
            x = torch.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            q = torch.matrix_exp(skew)
        else:
            identity = torch.eye(n, dtype=skew.dtype, device=skew.device)
            q = torch.linalg.solve(torch.add(identity, skew, alpha=-0.5), torch.add(identity, skew, alpha=0.5))
        return q if n == k else q[..., :k]

    def right_inverse(self, Q: Any) -> Any:
        with torch.no_grad():
            if Q.shape != self.shape:
                raise ValueError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
                )
            wide = Q.size(-2) < Q.size(-1)
            tall = Q.mT if wide else Q
            if hasattr(self, "base"):
                self._rebase(tall)
                # The identity of every map, up to a sign that keeps householder's diagonal off zero.
                result = torch.zeros_like(Q)
                result.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return result
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            vectors, tau = torch.geqrf(tall)
            diagonal = vectors.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            # A reflection that is left out (tau of zero) has the other sign.
            diagonal[tau == 0.0] *= -1
            return vectors.mT if wide else vectors

    def _rebase(self, q: Any) -> None:
        """Make the given matrix, or the orthogonal one next to it, the base that the map multiplies."""
        n, k = q.size(-2), q.size(-1)
        if n == k:
            self.base = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
            return
        # Any orthogonal complement will do.
        rest = torch.randn(*(q.size()[:-2] + (n, n - k)), dtype=q.dtype, device=q.device)
        self.base = _make_orthogonal(torch.cat([q, rest], dim=-1))


def _tensor_of(module: Module, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Make a matrix, or a batch of them, orthogonal (unitary where complex).

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square and complex matrices, the
    last for others. use_trivialization: multiply by a base, which lets every map be assigned to.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return torch._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return torch.norm_except_dim(weight, 2, self.dim), weight


class _OldKeys:
    """Renames the keys of a state that the older `weight_norm` saved."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{self.name}_{letter}" for letter in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make a weight the product of a length (`original0`) and a direction (`original1`)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_OldKeys(name))
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            # A vector is divided by its own norm and needs no estimates.
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, weight_mat: Any, n_power_iterations: int) -> None:
        with torch.no_grad():
            for _ in range(n_power_iterations):
                # In place, so that modules that share the buffers see the better estimates.
                self._u = normalize(torch.mv(weight_mat, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = normalize(torch.mv(weight_mat.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # A second forward pass before backward writes the buffers; what is saved must be its own.
        u: Any = self._u.clone(memory_format=torch.contiguous_format)
        v: Any = self._v.clone(memory_format=torch.contiguous_format)
        return weight / torch.vdot(u, torch.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        # Dividing by the spectral norm twice is dividing once.
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iterations."""
    weight = _tensor_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
