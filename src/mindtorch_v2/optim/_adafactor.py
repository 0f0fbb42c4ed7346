"""Adafactor: Adam whose second moments of matrices are kept as one row and one column.

Invariant: a step changes parameters in place and records nothing for autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import Algorithm, States, check_lr, column, scaled_by
from ._lists import Tensors, count_up, no_scaling, parts_of, scalar_dtype, to_scalar, value_of
from ._options import Options

__all__ = ["Adafactor", "adafactor"]

_SCALED = "Grad scaling should occur outside of optimizer.step()"


@dataclass(kw_only=True)
class AdafactorOptions(Options):
    """Options of a step of Adafactor."""

    PAIRS = {"eps": ("eps1", "eps2")}
    eps1: float | None
    eps2: float
    d: float
    beta2_decay: float


class Adafactor(Algorithm):
    """Adafactor, as in "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost"."""

    _OPTIONS = AdafactorOptions
    _LATER = {"foreach": None}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: ")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _number(self, group: dict[str, Any], param: Tensor, value: float) -> Tensor:
        return torch.tensor(value, dtype=scalar_dtype())

    def _gather(self, group: dict[str, Any]) -> tuple[Tensors, Tensors, States]:
        if any(param.grad is not None and param.is_complex() for param in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        return super()._gather(group)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        state = {"step": self._number(group, param, 0.0)}
        grad: Any = param.grad
        if grad.dim() > 1:
            *outer, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros([*outer, rows, 1])
            state["col_var"] = grad.new_zeros([*outer, 1, columns])
        else:
            state["variance"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
        return state

    def _update(self, o: AdafactorOptions, params: Tensors, grads: Tensors, states: States) -> None:
        factors = ([state.get(name) for state in states] for name in ("row_var", "col_var", "variance"))
        o.grad_scale, o.found_inf = scaled_by(self)
        _step((params, grads, *factors, column(states, "step")), o)


def _root_mean_square(tensor: Tensor) -> Any:
    return tensor.norm(2).item() / tensor.numel() ** 0.5


def _mean_squares(grad: Tensor, dim: int) -> Tensor:
    return torch.norm(grad, dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _single_tensor_adafactor(
    o: AdafactorOptions,
    params: Tensors,
    grads: Tensors,
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    state_steps: Tensors,
) -> None:
    no_scaling(o.grad_scale, o.found_inf, _SCALED)
    eps1 = o.eps1
    lr = to_scalar(o.lr)
    for each in zip(params, grads, row_vars, col_vars, variances, state_steps):
        param, grad, row_var, col_var, variance, step_t = each
        grad = -grad if o.maximize else grad
        if eps1 is None:
            eps1 = torch.finfo(param.dtype).eps
        step_t += 1
        step = step_t.item()
        weight = step**o.beta2_decay
        alpha = max(o.eps2, _root_mean_square(param)) * min(lr, 1 / (step**0.5))
        if o.weight_decay != 0:
            param.mul_(1 - lr * o.weight_decay)
        if grad.dim() > 1:
            if row_var is None or col_var is None:
                raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
            row_var.lerp_(_mean_squares(grad, -1), weight)
            col_var.lerp_(_mean_squares(grad, -2), weight)
            estimate = row_var @ col_var
            estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            if variance is None:
                raise AssertionError("variance should be defined when grad is a vector")
            variance.lerp_(grad * grad, weight)
            estimate = variance.clone()
        update = estimate.clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        param.add_(update, alpha=-alpha / max(1.0, _root_mean_square(update) / o.d))


def _multi_tensor_adafactor(
    o: AdafactorOptions,
    params: Tensors,
    grads: Tensors,
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    state_steps: Tensors,
) -> None:
    no_scaling(o.grad_scale, o.found_inf, _SCALED)
    eps1 = o.eps1
    rate = value_of(o.lr)
    lists = (params, grads, row_vars, col_vars, variances, state_steps)
    for part in parts_of(*lists):
        # Matrices first, then vectors.
        for many in (True, False):
            rows = [row for row in zip(*part) if (row[1].dim() > 1) is many]
            if not rows:
                continue
            some, grads, row_means, col_means, means, steps = (list(each) for each in zip(*rows))
            if eps1 is None:
                eps1 = torch.finfo(some[0].dtype).eps
            if o.maximize:
                grads = torch._foreach_neg(grads)
            count_up(steps)
            counts = [step.item() for step in steps]
            weights = [count**o.beta2_decay for count in counts]
            sizes = [max(o.eps2, _root_mean_square(p)) * min(rate, 1 / (n**0.5)) for p, n in zip(some, counts)]
            if o.weight_decay != 0:
                torch._foreach_mul_(some, 1 - rate * o.weight_decay)
            if many:
                if row_means[0] is None or col_means[0] is None:
                    raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
                torch._foreach_lerp_(row_means, [_mean_squares(grad, -1) for grad in grads], weights)
                torch._foreach_lerp_(col_means, [_mean_squares(grad, -2) for grad in grads], weights)
                updates = [row @ col for row, col in zip(row_means, col_means)]
                torch._foreach_div_(updates, [row.mean(dim=-2, keepdim=True).clamp_(min=eps1) for row in row_means])
            else:
                if means[0] is None:
                    raise AssertionError("variance should be defined when grad is a vector")
                torch._foreach_lerp_(means, torch._foreach_mul(grads, grads), weights)
                updates = [mean.clone() for mean in means]
            torch._foreach_clamp_min_(updates, eps1 * eps1)
            torch._foreach_rsqrt_(updates)
            torch._foreach_mul_(updates, grads)
            factors = [-size / max(1.0, _root_mean_square(move) / o.d) for size, move in zip(sizes, updates)]
            torch._foreach_mul_(updates, factors)
            torch._foreach_add_(some, updates)


def adafactor(
    params: Tensors,
    grads: Tensors,
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    state_steps: Tensors,
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of Adafactor on lists of tensors."""
    options = AdafactorOptions(
        foreach=foreach,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_complex=has_complex,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps1=eps1,
        eps2=eps2,
        maximize=maximize,
    )
    _step((params, grads, row_vars, col_vars, variances, state_steps), options)


def _step(lists: tuple[list[Any], ...], o: AdafactorOptions) -> None:
    if not all(isinstance(t, Tensor) for t in lists[5]):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    form = _multi_tensor_adafactor if o.foreach else _single_tensor_adafactor
    form(o, *lists)
