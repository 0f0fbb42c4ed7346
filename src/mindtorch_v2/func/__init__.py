"""`torch.func`: transformations of functions.

Invariant: a transformed function takes and returns what the function it was made from does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from .._dispatch.functionalize import functionalize as _functionalize
from .._dispatch.op import plain_name
from .._tensor_base import TensorBase
from ._forward import jacfwd, jvp, linearize

__all__ = [
    "grad",
    "grad_and_value",
    "vmap",
    "replace_all_batch_norm_modules_",
    "functionalize",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "functional_call",
    "stack_module_state",
    "debug_unwrap",
]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given tensors in place of its parameters and buffers, which stay as they are.

    tie_weights: a tensor that has several names in the module is replaced under all of them. strict: every parameter
    and buffer has to be given, and nothing else.
    """
    from ..nn.utils.stateless import _functional_call

    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence):
            raise ValueError(
                "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                f"{type(parameter_and_buffer_dicts)}"
            )
        if not all(isinstance(part, dict) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        repeated = [name for name, times in Counter(name for part in given for name in part).items() if times > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for part in given for name, tensor in part.items()}
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of models of one class, stacked along a new first dimension."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Leaves that require grad where what they were made from does."""
    result: dict[str, Any] = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        wanted = {tensor.requires_grad for tensor in tensors}
        if len(wanted) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = torch.stack(tensors)
        result[name] = stacked.detach().requires_grad_() if True in wanted else stacked
    return result


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` with every in-place and `out=` operator replaced by its functional form and a write-back.

    remove: "mutations" or "mutations_and_views". Both compute the same: write-backs go through the memory that views
    share, so there is no program in which a view would have to be replaced by a copy.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )
    return _functionalize()(func)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments; it is called once for each place there."""
    from ._vmap import vmap as make

    return make(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by the arguments `argnums`."""
    from ._reverse import grad as make

    return make(func, argnums, has_aux)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by the arguments `argnums`, and its value."""
    from ._reverse import grad_and_value as make

    return make(func, argnums, has_aux)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and a function from gradients of its results to gradients of `primals`."""
    from ._reverse import vjp as make

    return make(func, *primals, has_aux=has_aux)


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the derivatives of `func` by the arguments `argnums`, in reverse mode."""
    from ._reverse import jacrev as make

    return make(func, argnums, has_aux=has_aux, chunk_size=chunk_size, _preallocate_and_copy=_preallocate_and_copy)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func` by the arguments `argnums`."""
    return jacfwd(jacrev(func, argnums), argnums)


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """What a tensor inside `vmap` wraps; the innermost tensor with `recurse`."""
    from .._batching.dims import unwrapped

    if not isinstance(tensor, TensorBase):
        raise TypeError(f"debug_unwrap(): argument 'tensor' (position 1) must be Tensor, not {plain_name(tensor)}")
    found = unwrapped(tensor)
    while recurse and found is not tensor:
        tensor, found = found, unwrapped(found)
    return found


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Batch norms in `root` keep no running statistics from now on, which `vmap` could not write to."""
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
