"""`functorch`: the transforms of `torch.func` under their old names, which say where they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import func as _func
from .._warn import warn
from . import make_functional as _functional

_NEW = {
    "vmap": "torch.vmap",
    "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "combine_state_for_ensemble": "torch.func.stack_module_state",
}


def warn_deprecated(api: str) -> None:
    warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{api}` is "
        "deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
        f"`{_NEW.get(api, f'torch.func.{api}')}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` "
        "migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
    )


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    warn_deprecated("vmap")
    return _func.vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    warn_deprecated("grad")
    return _func.grad(func, argnums, has_aux)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    warn_deprecated("grad_and_value")
    return _func.grad_and_value(func, argnums, has_aux)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    warn_deprecated("vjp")
    return _func.vjp(func, *primals, has_aux=has_aux)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    warn_deprecated("jvp")
    return _func.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    warn_deprecated("jacrev")
    return _func.jacrev(
        func, argnums, has_aux=has_aux, chunk_size=chunk_size, _preallocate_and_copy=_preallocate_and_copy
    )


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    warn_deprecated("jacfwd")
    return _func.jacfwd(func, argnums, has_aux, randomness=randomness)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    warn_deprecated("hessian")
    return _func.hessian(func, argnums)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    warn_deprecated("functionalize")
    return _func.functionalize(func, remove=remove)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> Any:
    warn_deprecated("make_functional")
    return _functional.make_functional(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Any, disable_autograd_tracking: bool = False) -> Any:
    warn_deprecated("make_functional_with_buffers")
    return _functional.make_functional_with_buffers(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Any) -> Any:
    warn_deprecated("combine_state_for_ensemble")
    return _functional.combine_state_for_ensemble(models)
