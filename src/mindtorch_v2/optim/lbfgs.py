"""LBFGS: steps along the direction that the last gradients say the inverse Hessian gives.

Invariant: between evaluations the parameters are where the last step put them; a line search puts them back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._algorithm import check_lr
from ._lists import to_scalar
from .optimizer import Optimizer, _use_grad_for_differentiable

__all__ = ["LBFGS"]

# A point of a line search: step, loss, gradient, and its product with the direction.
Point = tuple[Any, Any, Any, Any]


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    """The minimum, within bounds, of the cubic with these values and slopes at two points."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


class _Search:
    """A line search for the strong Wolfe conditions: first a bracket, then inside it."""

    def __init__(self, evaluate: Callable[[Any], Any], d: Tensor, start: Point, most: int) -> None:
        self.evaluate, self.d, self.start, self.most = evaluate, d, start, most
        self.c1, self.c2, self.tolerance_change = 1e-4, 0.9, 1e-9
        self.evaluations = 0
        self.rounds = 0

    def at(self, t: Any) -> Point:
        loss, grad = self.evaluate(t)
        self.evaluations += 1
        return t, loss, grad, grad.dot(self.d)

    def too_high(self, point: Point) -> Any:
        """Whether the loss has not decreased as much as the slope at the start promises."""
        return point[1] > self.start[1] + self.c1 * point[0] * self.start[3]

    def flat(self, point: Point) -> Any:
        return abs(point[3]) <= -self.c2 * self.start[3]

    def run(self, t: Any) -> Point:
        bracket, done = self.bracket(t)
        return self.zoom(bracket, done)

    def bracket(self, t: Any) -> tuple[list[Point], bool]:
        """Two points with one that satisfies the conditions between them, or one that does."""
        last = (0, *self.start[1:])
        point = self.at(t)
        while self.rounds < self.most:
            if self.too_high(point) or (self.rounds > 1 and point[1] >= last[1]):
                return [last, point], False
            if self.flat(point):
                return [point], True
            if point[3] >= 0:
                return [last, point], False
            bounds = (point[0] + 0.01 * (point[0] - last[0]), point[0] * 10)
            t = _cubic_interpolate(last[0], last[1], last[3], point[0], point[1], point[3], bounds)
            last, point = point, self.at(t)
            self.rounds += 1
        return [(0, *self.start[1:]), point], False

    def zoom(self, bracket: list[Point], done: bool) -> Point:
        low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
        size = self.d.abs().max()
        stalled = False
        while not done and self.rounds < self.most:
            (a, fa, _, sa), (b, fb, _, sb) = bracket
            if abs(b - a) * size < self.tolerance_change:
                break
            t = _cubic_interpolate(a, fa, sa, b, fb, sb)
            t, stalled = self.inside(t, min(a, b), max(a, b), stalled)
            point = self.at(t)
            self.rounds += 1
            if self.too_high(point) or point[1] >= bracket[low][1]:
                bracket[high] = point
                low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
                continue
            if self.flat(point):
                done = True
            elif point[3] * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
        return bracket[low]

    def inside(self, t: Any, least: Any, most: Any, stalled: bool) -> tuple[Any, bool]:
        """A step that is not again too near an end of the bracket, and whether it was this time."""
        margin = 0.1 * (most - least)
        if not min(most - t, t - least) < margin:
            return t, False
        if not (stalled or t >= most or t <= least):
            return t, True
        return (most - margin if abs(t - most) < abs(t - least) else least + margin), False


class LBFGS(Optimizer):
    """The limited-memory BFGS method; `step` needs a closure, which it calls several times."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Any] = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)
        return self._numel_cache

    def _gather_flat_grad(self) -> Tensor:
        """All gradients in one vector; zeros where there is none."""
        views = []
        for param in self._params:
            grad = torch.zeros_like(param) if param.grad is None else param.grad
            view = (grad.to_dense() if grad.is_sparse else grad).view(-1)
            views.append(torch.view_as_real(view).view(-1) if view.is_complex() else view)
        return torch.cat(views, 0)

    def _add_grad(self, step_size: Any, update: Tensor) -> None:
        offset = 0
        for param in self._params:
            real = torch.view_as_real(param) if param.is_complex() else param
            count = real.numel()
            # As it lies in memory, since a parameter may be strided in any way.
            real.add_(update[offset : offset + count].view_as(real), alpha=step_size)
            offset += count
        if offset != self._numel():
            raise AssertionError(f"Expected offset {offset} to equal {self._numel()}")

    def _clone_param(self) -> list[Tensor]:
        return [param.clone(memory_format=torch.contiguous_format) for param in self._params]

    def _set_param(self, params_data: list[Tensor]) -> None:
        for param, data in zip(self._params, params_data):
            param.copy_(data)

    def _directional_evaluate(self, closure: Callable[[], Any], x: list[Tensor], t: Any, d: Tensor) -> Any:
        """Loss and gradient at x + t * d; the parameters are x again afterwards."""
        self._add_grad(t, d)
        loss = float(closure())
        grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, grad

    def _direction(self, state: dict[str, Any], grad: Tensor, history_size: int) -> None:
        """The next direction in `state`, by the two-loop recursion over the remembered steps."""
        if state["n_iter"] == 1:
            state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return
        y = grad.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if ys > 1e-10:
            if len(dirs) == history_size:
                for each in (dirs, steps, ro):
                    each.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in reversed(range(len(dirs))):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-al[i])
        d = torch.mul(q, state["H_diag"])
        for i in range(len(dirs)):
            d.add_(steps[i], alpha=al[i] - dirs[i].dot(d) * ro[i])
        state["d"] = d

    def _move(
        self, closure: Callable[[], Any], group: dict[str, Any], point: Point, d: Tensor, left: int, last: bool
    ) -> tuple[Any, Any, Any, int]:
        """One step along `d`: the new loss, gradient and step length, and how often the closure was called."""
        t, loss, grad, slope = point
        if group["line_search_fn"] is not None:
            if group["line_search_fn"] != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            x = self._clone_param()
            start = (t, loss, grad.clone(memory_format=torch.contiguous_format), slope)
            search = _Search(lambda t: self._directional_evaluate(closure, x, t, d), d, start, left)
            t, loss, grad, _ = search.run(t)
            self._add_grad(t, d)
            return loss, grad, t, search.evaluations
        self._add_grad(t, d)
        if last:
            # Nobody would look at the new loss.
            return loss, grad, t, 0
        return float(closure()), self._gather_flat_grad(), t, 1

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` iterations; the loss before them is returned."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        closure = torch.enable_grad()(closure)
        group = self.param_groups[0]
        lr, most, change = to_scalar(group["lr"]), group["max_iter"], group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, most + 1):
            state["n_iter"] += 1
            self._direction(state, grad, group["history_size"])
            d = state["d"]
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = grad.clone(memory_format=torch.contiguous_format)
            else:
                state["prev_flat_grad"].copy_(grad)
            state["prev_loss"] = old = loss
            state["t"] = t = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(d)
            if slope > -change:
                break
            left = group["max_eval"] - evaluations
            loss, grad, t, more = self._move(closure, group, (t, loss, grad, slope), d, left, iteration == most)
            state["t"] = t
            evaluations += more
            state["func_evals"] += more
            if iteration == most or evaluations >= group["max_eval"]:
                break
            if grad.abs().max() <= group["tolerance_grad"] or d.mul(t).abs().max() <= change:
                break
            if abs(loss - old) < change:
                break
        _in_order(state)
        return first_loss


# Saved states list what they hold in this order.
_ORDER = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


def _in_order(state: dict[str, Any]) -> None:
    for name in _ORDER:
        state[name] = state.pop(name)
