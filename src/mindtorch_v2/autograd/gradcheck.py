"""Comparing derivatives with finite differences.

Invariant: complex tensors are pairs of reals here. For each real component of each output, the gradient that autograd
gives, dL/dRe + i dL/dIm, is compared with differences in the real and imaginary direction of every input element.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch.keys import TORCH_DISPATCH
from .._tensor_base import TensorBase
from ._jacobians import _get_numerical_jacobian as _get_numerical_jacobian
from ._jacobians import _iter_tensors as _iter_tensors
from ._jacobians import get_analytical_jacobian as get_analytical_jacobian
from ._jacobians import get_numerical_jacobian as get_numerical_jacobian
from ._jacobians import get_numerical_jacobian_wrt_specific_input as get_numerical_jacobian_wrt_specific_input
from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck`."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` at `inputs` agree with finite differences; with `fast_mode` only along a random
    direction of each input and output."""
    func, inputs = _by_values(func, inputs, bool(masked))
    for wanted, needed, what in (
        (True, check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad"),
        (check_batched_grad, check_backward_ad, "Setting check_batched_grad=True requires check_backward_ad"),
        (
            check_batched_forward_grad,
            check_forward_ad,
            "Setting check_batched_forward_grad=True requires check_forward_ad",
        ),
    ):
        if wanted and not needed:
            raise AssertionError(f"{what} to be True")
    try:
        args = _as_tuple(inputs)
        if check_backward_ad:
            _check(func, args, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
        if check_forward_ad:
            from ._gradcheck_forward import check_forward

            check_forward(func, args, eps, atol, rtol, check_grad_dtypes, fast_mode, check_batched_forward_grad)
        if check_batched_grad:
            _check_batched(func, args)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the function that maps inputs and output gradients to input gradients."""
    _refuse(masked=masked)
    for asked, needed, what in (
        (
            True,
            check_fwd_over_rev or check_rev_over_rev,
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev",
        ),
        (check_undefined_grad, check_rev_over_rev, "Setting check_undefined_grad=True requires check_rev_over_rev"),
        (check_batched_grad, check_rev_over_rev, "Setting check_batched_grad=True requires check_rev_over_rev"),
    ):
        if asked and not needed:
            raise AssertionError(f"{what} to be True")
    args = _as_tuple(inputs)
    if grad_outputs is None:
        grads = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in _differentiable(func(*args)))
    else:
        grads = _as_tuple(grad_outputs)
    n = len(grads)
    wanted = [i for i, x in enumerate(args) if isinstance(x, TensorBase) and x.requires_grad]

    def first_gradients(*both: Any) -> Any:
        from . import grad

        given = both[: len(both) - n]
        # Forward mode hands over tensors that are not recorded.
        given = tuple(x.requires_grad_() if i in wanted and not x.requires_grad else x for i, x in enumerate(given))
        found = grad(
            _differentiable(func(*given)),
            [given[i] for i in wanted],
            both[len(both) - n :],
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first_gradients,
        args + grads,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _check_batched(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Gradients of two directions asked for at once (`is_grads_batched`) are those of one after the other."""
    import mindtorch_v2 as torch

    from . import grad

    wanted = [x for x in args if isinstance(x, TensorBase) and x.requires_grad]
    for at, output in enumerate(_differentiable(func(*args))):
        rows = [_random_like(output, False).detach() for _ in range(2)]
        options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
        single = [grad(output, wanted, row, **options) for row in rows]
        together = torch.stack(rows)
        try:
            batched = grad(output, wanted, together, is_grads_batched=True, **options)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for i, (found, *expected) in enumerate(zip(batched, *single)):
            if found is not None and not torch.allclose(found, torch.stack(expected)):
                raise GradcheckError(
                    f"For output {at} and input {i}:\n\ngot:\n{found}\n\nExpected:\n{torch.stack(expected)}\n"
                )


def _by_values(func: Any, inputs: Any, masked: bool) -> tuple[Any, Any]:
    """Sparse inputs are differentiated by their values; `masked`: only where they have entries."""
    import mindtorch_v2 as torch

    args = _as_tuple(inputs)
    if not any(isinstance(x, torch.Tensor) and x.layout is not torch.strided for x in args):
        return func, inputs
    from .._sparse.gradchecks import by_values

    return by_values(func, args, masked)


def _refuse(**options: bool) -> None:
    for name, value in options.items():
        if value:
            raise NotImplementedError(
                f"gradcheck: {name}=True is not implemented; without it the Jacobian of backward is checked"
            )


def _as_tuple(x: Any) -> tuple[Any, ...]:
    if isinstance(x, tuple):
        return x
    return tuple(x) if isinstance(x, list) else (x,)


def _differentiable(outputs: Any) -> tuple[Any, ...]:
    return tuple(o for o in _as_tuple(outputs) if isinstance(o, TensorBase) and o.requires_grad)


def _random_like(o: Any, noncontiguous: bool) -> Any:
    import mindtorch_v2 as torch

    generator = np.random.default_rng()
    dt = o.dtype if o.is_floating_point() or o.is_complex() else torch.float64
    values = generator.uniform(-1, 1, tuple(o.shape))
    if dt.is_complex:
        values = values + 1j * generator.uniform(-1, 1, tuple(o.shape))
    made = torch.tensor(values.tolist(), dtype=dt, device=o.device).view(tuple(o.shape))
    if noncontiguous and made.numel() > 1:
        made = made.unsqueeze(-1).repeat_interleave(2, -1)[..., 0]
    return made.detach().requires_grad_()


def _check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined: bool,
    check_dtypes: bool,
    fast: bool,
) -> None:
    _check_inputs(args)
    given = _as_tuple(func(*args))
    every = tuple(o for o in given if isinstance(o, TensorBase))
    outputs = tuple(o for o in given if o.requires_grad)
    if fast and outputs:
        _compare_directions(func, args, every, eps, atol, rtol, nondet_tol, check_dtypes)
    else:
        numerical = _numerical(func, args, every, eps)
        if not outputs:
            if any(np.any(j != 0) for per_output in numerical for j in per_output):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            return
        _compare_jacobians(args, every, numerical, atol, rtol, nondet_tol, check_dtypes)
    _check_multiplied(outputs, args)
    if check_undefined:
        _check_undefined(func, args)


def _compare_jacobians(
    args: tuple[Any, ...],
    every: tuple[Any, ...],
    numerical: list[list[Any]],
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    outputs = tuple(o for o in every if o.requires_grad)
    numerical = [j for o, j in zip(every, numerical) if o.requires_grad]
    for i, o in enumerate(outputs):
        analytical = _analytical(args, o, check_dtypes)
        again = _analytical(args, o, check_dtypes)
        for j, (a, n) in enumerate(zip(analytical, numerical[i])):
            _compare(a, n, i, j, o.dtype.is_complex, rtol, atol)
        _compare_runs(analytical, again, nondet_tol)


def _compare_runs(first: list[Any], second: list[Any], nondet_tol: float) -> None:
    if any(a.size and np.max(np.abs(a - b)) > nondet_tol for a, b in zip(first, second)):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            "different values, although analytical gradient matches numerical gradient."
            f"The tolerance for nondeterminism was {nondet_tol}."
        )


_FAST = (
    "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
    "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
    "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
)
_FAST_ONLY = (
    "Fast gradcheck failed but element-wise differences are small. This means that the\n"
    "test might've passed in slow_mode!"
)


def _compare_directions(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    every: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    """Compare v J u for a random unit vector u for each input and v for each output."""
    generator = np.random.default_rng()
    inputs = [x for x in args if isinstance(x, TensorBase) and x.requires_grad]
    us = [_unit(generator, x) for x in inputs]
    moves = [_moved(func, args, every, x, u, eps) for x, u in zip(inputs, us)]
    at = -1
    for k, o in enumerate(every):
        if not o.requires_grad:
            continue
        at += 1
        v = _unit(generator, o)
        analytical = _products(inputs, o, v, check_dtypes)
        for j, (u, g) in enumerate(zip(us, analytical)):
            a, n = float(np.dot(g, u)), float(np.dot(v, moves[j][k]))
            if not abs(a - n) <= atol * float(u.sum() * v.sum()) + rtol * abs(n):
                raise GradcheckError(
                    f"Jacobian mismatch for output {at} with respect to input {j},\nnumerical:{_shown(n)}\n"
                    f"analytical:{_shown(a)}\n" + _in_full(func, args, every, k, j, eps, atol, rtol)
                )
        _compare_runs(analytical, _products(inputs, o, v, check_dtypes), nondet_tol)


def _unit(generator: Any, t: Any) -> Any:
    """A random vector of length one over the real components of a tensor."""
    v = generator.uniform(0, 1, t.numel() * (2 if t.dtype.is_complex else 1))
    length = float(np.linalg.norm(v))
    return v / length if length else v


def _moved(
    func: Callable[..., Any], args: tuple[Any, ...], outputs: tuple[Any, ...], x: Any, u: Any, eps: float
) -> list[Any]:
    """How every output changes as an input moves along `u`."""
    memory = _memory(x)
    old = memory.copy()
    step = (u.view(np.complex128) if x.dtype.is_complex else u).reshape(old.shape) * eps
    memory[...] = old - step
    low = _values(func, args, outputs, eps)
    memory[...] = old + step
    high = _values(func, args, outputs, eps)
    memory[...] = old
    return [(h - w) / (2 * eps) for h, w in zip(high, low)]


def _products(inputs: list[Any], output: Any, v: Any, check_dtypes: bool) -> list[Any]:
    """The products of `v` with the Jacobians of an output, from one pass."""
    import mindtorch_v2 as torch

    from . import grad

    values = v.view(np.complex128) if output.dtype.is_complex else v
    seed = torch.tensor(values.tolist(), dtype=output.dtype, device=output.device).reshape(output.shape)
    found = []
    for x, g in zip(inputs, grad(output, inputs, seed, retain_graph=True, allow_unused=True)):
        found.append(_gradient(x, g, check_dtypes))
    return found


def _shown(value: Any) -> Any:
    import mindtorch_v2 as torch

    return torch.tensor(value.tolist() if hasattr(value, "tolist") else value, dtype=torch.float64)


def _in_full(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    every: tuple[Any, ...],
    k: int,
    j: int,
    eps: float,
    atol: float,
    rtol: float,
) -> str:
    """The Jacobians behind a difference found in fast mode."""
    n = _numerical(func, args, every, eps)[k][j]
    a = _analytical(args, every[k], False)[j]
    text = (
        f"{_FAST}Numerical:\n {_shown(n)}\nAnalytical:\n{_shown(a)}\n\nThe max per-element difference (slow mode) is: "
        f"{float(np.max(np.abs(n - a))) if n.size else 0.0}.\n"
    )
    return text + _FAST_ONLY if np.allclose(a, n, rtol=rtol, atol=atol) else text


def _check_inputs(args: tuple[Any, ...]) -> None:
    found = False
    for i, x in enumerate(args):
        if isinstance(x, TensorBase) and x.requires_grad:
            if x.dtype.name not in ("float64", "complex128"):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                    "will likely fail if all the inputs are not of double precision floating point or complex. ",
                    stacklevel=4,
                )
            if any(st == 0 and sz > 1 for st, sz in zip(x._stride, x._shape)):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                    "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                    ".contiguous on the input before passing it to gradcheck."
                )
            found = True
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _reals(t: Any) -> Any:
    """A tensor's elements as a flat array of reals, those of a complex tensor as pairs."""
    values = np.ascontiguousarray(_memory(t.detach().resolve_conj().resolve_neg())[...])
    return values.reshape(-1).view(values.real.dtype).astype(np.float64)


class _Elements:
    """The elements of a tensor whose class computes (`__torch_dispatch__`), read and written one by one."""

    def __init__(self, t: Any) -> None:
        self._t = t
        self.shape = tuple(t.shape)

    def __getitem__(self, key: Any) -> Any:
        if key is not ...:
            return self._t[key].item()
        values = [self._t[index].item() for index in np.ndindex(*self.shape)]
        return np.array(values, complex if self._t.dtype.is_complex else float).reshape(self.shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        for index in np.ndindex(*self.shape) if key is ... else (key,):
            number = value[index] if key is ... else value
            self._t[index] = number.item() if isinstance(number, np.generic) else number

    def copy(self) -> Any:
        return self[...]


def _memory(x: Any) -> Any:
    """The tensor's own memory as an array: writing to it is not seen by autograd."""
    return _Elements(x.data) if x._keys & TORCH_DISPATCH else x.detach().numpy()


def _values(func: Callable[..., Any], args: tuple[Any, ...], outputs: tuple[Any, ...], eps: float) -> list[Any]:
    """What the function returns now, as arrays of reals."""
    got = [o for o in _as_tuple(func(*args)) if isinstance(o, TensorBase)]
    for before, after in zip(outputs, got):
        for what in ("shape", "dtype"):
            was, now = getattr(before, what), getattr(after, what)
            if was != now:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but "
                    f"got: {what}s {now} and {was}."
                )
    return [_reals(o) for o in got]


def _numerical(
    func: Callable[..., Any], args: tuple[Any, ...], outputs: tuple[Any, ...], eps: float
) -> list[list[Any]]:
    """Jacobians by output, then input: rows are real components of the input, columns of the output."""
    tables: list[list[Any]] = [[] for _ in outputs]
    for x in args:
        if not isinstance(x, TensorBase) or not x.requires_grad:
            continue
        memory = _memory(x)
        directions = (eps, 1j * eps) if x.dtype.is_complex else (eps,)
        rows: list[list[Any]] = [[] for _ in outputs]
        for index in np.ndindex(*memory.shape):
            for d in directions:
                old = memory[index]
                memory[index] = old - d
                low = _values(func, args, outputs, eps)
                memory[index] = old + d
                high = _values(func, args, outputs, eps)
                memory[index] = old
                for k in range(len(outputs)):
                    rows[k].append((high[k] - low[k]) / (2 * eps))
        for k, o in enumerate(outputs):
            width = o.numel() * (2 if o.dtype.is_complex else 1)
            tables[k].append(np.array(rows[k], dtype=np.float64).reshape(len(rows[k]), width))
    return tables


def _analytical(args: tuple[Any, ...], output: Any, check_dtypes: bool) -> list[Any]:
    """The same Jacobians from backward, one pass for each real component of the output."""
    import mindtorch_v2 as torch

    from . import grad

    wanted = [x for x in args if isinstance(x, TensorBase) and x.requires_grad]
    units = (1, 1j) if output.dtype.is_complex else (1,)
    columns: list[list[Any]] = [[] for _ in wanted]
    for index in np.ndindex(*tuple(output.shape)):
        for unit in units:
            seed = torch.zeros(tuple(output.shape), dtype=output.dtype, device=output.device)
            seed[index] = unit
            for k, g in enumerate(grad(output, wanted, seed, retain_graph=True, allow_unused=True)):
                columns[k].append(_gradient(wanted[k], g, check_dtypes))
    out = []
    for k, x in enumerate(wanted):
        height = x.numel() * (2 if x.dtype.is_complex else 1)
        out.append(np.array(columns[k], dtype=np.float64).reshape(len(columns[k]), height).T)
    return out


def _gradient(x: Any, g: Any, check_dtypes: bool) -> Any:
    """A gradient as an array of reals, zeros where an input was not used."""
    if g is None:
        return np.zeros(x.numel() * (2 if x.dtype.is_complex else 1))
    if check_dtypes and g.dtype != x.dtype:
        raise GradcheckError("Gradient has dtype mismatch")
    if g.shape != x.shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    return _reals(g)


def _compare(a: Any, n: Any, output: int, given: int, is_complex: bool, rtol: float, atol: float) -> None:
    # Columns of a complex output alternate between its real and its imaginary part.
    parts = (("imaginary", 1), ("real", 0)) if is_complex else (("", 0),)
    for name, start in parts:
        step = len(parts)
        mine, theirs = a[:, start::step], n[:, start::step]
        if not np.allclose(mine, theirs, rtol=rtol, atol=atol):
            prefix = f"While considering the {name} part of complex outputs only, " if name else ""
            raise GradcheckError(
                f"{prefix}Jacobian mismatch for output {output} with respect to input {given},\n"
                f"numerical:{_shown(theirs)}\nanalytical:{_shown(mine)}\n"
            )


def _check_multiplied(outputs: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    """Zero output gradients give zero input gradients."""
    import mindtorch_v2 as torch

    from . import grad

    wanted = [x for x in args if isinstance(x, TensorBase) and x.requires_grad]
    for g, x in zip(
        grad(outputs, wanted, [torch.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True), wanted
    ):
        if g is None:
            continue
        if np.any(_reals(g) != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class _Undefined(Function):
    """Passes values on and gives no gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None


def _check_undefined(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Undefined output gradients, all of them or one at a time, count as zero."""
    outputs = _differentiable(func(*args))
    _undefined_at(outputs, args, set(range(len(outputs))))
    if len(outputs) > 1:
        for i in range(len(outputs)):
            _undefined_at(_differentiable(func(*args)), args, {i})


def _undefined_at(outputs: tuple[Any, ...], args: tuple[Any, ...], at: set[int]) -> None:
    import mindtorch_v2 as torch

    from . import grad

    wanted = [x for x in args if isinstance(x, TensorBase) and x.requires_grad]
    ends = [_Undefined.apply(o) if i in at else o for i, o in enumerate(outputs)]
    note = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
    try:
        found = grad(ends, wanted, [torch.zeros_like(o) for o in ends], allow_unused=True)
    except RuntimeError as error:
        _warn_of_undefined()
        raise GradcheckError(f"Expected backward function to handle undefined output grads. {note}") from error
    for g in found:
        if g is not None and np.any(_reals(g) != 0):
            _warn_of_undefined()
            raise GradcheckError(
                f"Expected all input grads to be undefined or zero when all output grads are undefined or zero. {note}"
            )


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=6,
    )
