"""`grad`, `vjp` and `jacrev`: gradients of functions by the one reverse engine.

Invariant: what leaves a transform has the history that the transforms around it and the user's own graph ask for, and
no more. Inside, gradients are recorded whatever the mode outside is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

import mindtorch_v2 as torch

from .._autograd.engine import grad_one, leads_elsewhere
from .._autograd.saved_hooks import disable_hooks, disabled_message
from .._batching.dims import lift
from .._batching.kernel import QUIET
from .._batching.level import begin, end, live
from .._dispatch.keys import AUTOGRAD, BACKENDS, BATCHED, VIEW
from .._dispatch.state import (
    STATE,
    is_grad_enabled,
    is_inference_mode,
    modes,
    set_grad_enabled,
    set_modes,
    swap_inference,
)
from .._tensor_base import alias, requires_grad, set_requires_grad
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from ._arguments import (
    Argnums,
    check_real,
    chosen,
    leaves_of,
    named_after,
    need_elements,
    replaced,
    seen,
    standard_basis,
    tensors_only,
)

_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
    "case."
)


class Scope:
    """One transform at work: its inputs, and what may leave."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        # Whether somebody outside follows the inputs.
        self.followed = False

    def __enter__(self) -> Scope:
        self.hooks_refused = disabled_message()
        disable_hooks(_NO_HOOKS)
        begin("grad")
        self.outer = is_grad_enabled()
        # A transform records what it needs, whatever mode it is called in.
        self.modes = swap_inference(False) if is_inference_mode() else None
        set_grad_enabled(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        end()
        disable_hooks(self.hooks_refused)
        set_grad_enabled(self.outer)
        if self.modes is not None:
            set_modes(self.modes)

    def fresh(self, t: Any) -> Any:
        """An input of its own, over the same memory."""
        if not isinstance(t, torch.Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if self.modes is not None and t.is_inference():
            t = t.clone()  # one that can be saved
        if self.outer and requires_grad(t):
            self.followed = True
            new = seen(t)
            for level in live():
                new = lift(new, level)
        else:
            # A leaf: nobody else sees it, so that it is no view.
            new = _without_history(t)
            if live():
                with torch.no_grad():
                    for level in live():
                        new = lift(new, level)
                new = _forgotten(new)
            set_requires_grad(new, True)
        self.inputs.append(new)
        return new

    def follows(self, outputs: list[Any]) -> bool:
        """Whether the graph behind the outputs leads to anything but the inputs."""
        if not self.outer:
            return False
        if self.followed:
            return True
        return leads_elsewhere(outputs, self.inputs)

    def leaving(self, t: Any, followed: bool) -> Any:
        if not isinstance(t, torch.Tensor):
            return t
        return t if followed or not requires_grad(t) else _without_history(t)


# Tensors of which nothing but memory and history is known.
_PLAIN = int(BACKENDS | AUTOGRAD | VIEW | BATCHED)


def _without_history(t: Any) -> Any:
    """A tensor of its own over the same memory."""
    if t._keys & ~_PLAIN == 0 and type(t) is torch.Tensor and STATE.levels == 0 and not modes() & ~QUIET:
        return alias(t, t._shape, t._stride, t._offset)
    with torch.no_grad():
        new = seen(t)
    return _forgotten(new)


def _forgotten(new: Any) -> Any:
    new._base_field, new._view_op, new._view_args = None, None, None
    new._keys &= ~VIEW
    new._cmeta = 0
    return new


def gradients(
    outputs: list[Any], inputs: list[Any], given: list[Any] | None, keep: bool, create: bool
) -> tuple[Any, ...]:
    """Gradients of the inputs, zeros where an output does not depend on one."""
    at = [i for i, out in enumerate(outputs) if requires_grad(out)]
    found: tuple[Any, ...] = (None,) * len(inputs)
    if len(at) == 1:
        start = None if given is None else given[at[0]]
        if not modes() & ~QUIET and (start is None or isinstance(start, torch.Tensor)):
            found = tuple(grad_one(outputs[at[0]], start, tuple(inputs), keep, create))
        else:
            found = torch.autograd.grad(outputs[at[0]], inputs, start, keep, create, allow_unused=True)
    elif at:
        found = torch.autograd.grad(
            [outputs[i] for i in at],
            inputs,
            None if given is None else [given[i] for i in at],
            retain_graph=keep,
            create_graph=create,
            allow_unused=True,
        )
    return tuple([torch.zeros_like(t) if g is None else g for t, g in zip(inputs, found)])


# -- arguments ----------------------------------------------------------------------------------------------------
def _split_aux(output: Any, where: str) -> tuple[Any, Any]:
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _map_leaves(fn: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return fn(tree)
    flat, spec = tree_flatten(tree)
    return tree_unflatten([fn(leaf) for leaf in flat], spec)


# -- grad ---------------------------------------------------------------------------------------------------------
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by the arguments `argnums`, and its value."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return named_after(func, wrapper)


def _grad_and_value(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    with Scope() as scope:
        picked = chosen(args, argnums)
        fresh = _map_leaves(scope.fresh, picked)
        output = func(*replaced(args, argnums, fresh), **kwargs)
        aux = None
        if has_aux:
            output, aux = _split_aux(output, "grad_and_value(f)(*args)")
        if not isinstance(output, torch.Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        if has_aux:
            tensors_only(aux)
        followed = scope.follows([output])
        found = gradients([output], scope.inputs, None, True, followed)
        if has_aux:
            aux = _map_leaves(lambda t: scope.leaving(t, followed or scope.follows([t])), aux)
    left = [scope.leaving(g, followed) for g in found]
    grads = left[0] if isinstance(picked, torch.Tensor) else tree_unflatten(left, tree_flatten(picked)[1])
    value = scope.leaving(output, followed)
    return (grads, (value, aux)) if has_aux else (grads, value)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by the arguments `argnums`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return named_after(func, wrapper)


# -- vjp ----------------------------------------------------------------------------------------------------------
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and a function from gradients of its results to gradients of `primals`."""
    return vjp_of(func, primals, None, has_aux)


def vjp_of(func: Callable[..., Any], primals: tuple[Any, ...], argnums: Argnums | None, has_aux: bool) -> Any:
    with Scope() as scope:
        picked = primals if argnums is None else chosen(primals, argnums)
        fresh = _map_leaves(scope.fresh, picked)
        output = func(*(fresh if argnums is None else replaced(primals, argnums, fresh)))
        aux = None
        if has_aux:
            output, aux = _split_aux(output, "vjp(f, *primals)")
            tensors_only(aux)
        flat, spec = tree_flatten(output)
        if not flat or flat == [None]:
            raise RuntimeError(
                f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = {flat})"
            )
        for t in flat:
            if not isinstance(t, torch.Tensor):
                raise RuntimeError(
                    f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(t)}"
                )
        for t in flat:
            if not (t.dtype.is_floating_point or t.dtype.is_complex):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{t.dtype}"
                )
        followed = scope.follows(flat)
        if has_aux:
            aux = _map_leaves(lambda t: scope.leaving(t, followed or scope.follows([t])), aux)
    structure = tree_flatten(picked)[1]
    wrapper = _vjp_function(scope, flat, spec, structure, followed)
    left = tree_unflatten([scope.leaving(t, followed) for t in flat], spec)
    return (left, wrapper, aux) if has_aux else (left, wrapper)


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def _shown(spec: TreeSpec) -> str:
    """A structure with a star for each leaf."""
    return repr(tree_unflatten([_Leaf()] * spec.num_leaves, spec))


def _vjp_function(scope: Scope, flat: list[Any], spec: TreeSpec, structure: TreeSpec, followed: bool) -> Any:
    def wrapper(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, found_spec = tree_flatten(cotangents)
        if found_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
                f" cotangents: {_shown(found_spec)}, primal output: {_shown(spec)}"
            )
        record = (followed and is_grad_enabled()) if create_graph is None else create_graph
        for t in given:
            if t is not None and not isinstance(t, torch.Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(t).__name__}")
        record = record or (is_grad_enabled() and any(t is not None and requires_grad(t) for t in given))
        found = gradients(flat, scope.inputs, given, retain_graph, record)
        return tree_unflatten([scope.leaving(g, record) for g in found], structure)

    return wrapper


# -- jacrev -------------------------------------------------------------------------------------------------------
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the derivatives of every element of the results of `func` by every element of the
    arguments `argnums`, with all gradients (or `chunk_size` at a time) computed in one pass. Memory for the result is
    taken once in any case, which is what `_preallocate_and_copy` asks for."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        check_real("inputs", "jacrev", args)
        found = vjp_of(functools.partial(func, **kwargs) if kwargs else func, args, argnums, has_aux)
        output, pull = found[0], found[1]
        check_real("outputs", "jacrev", output)
        picked = chosen(args, argnums)
        outputs, out_spec = tree_flatten(output)
        inputs, in_spec = tree_flatten(picked)
        for x in inputs:
            need_elements(x)
        rows = _rows(outputs, out_spec, pull, chunk_size)
        sizes = [t.numel() for t in outputs]
        columns = [(row,) if len(sizes) == 1 else row.split(sizes, 0) for row in rows]
        parts = []
        for k, out in enumerate(outputs):
            one = [column[k].reshape(tuple(out.shape) + tuple(x.shape)) for column, x in zip(columns, inputs)]
            parts.append(tree_unflatten(one, in_spec))
        jacobian = tree_unflatten(parts, out_spec)
        return (jacobian, found[2]) if has_aux else jacobian

    return named_after(func, wrapper)


def _rows(outputs: list[Any], spec: TreeSpec, pull: Any, chunk_size: int | None) -> list[Any]:
    """For each input the gradients of all elements of the outputs, one below the other."""
    from ._vmap import map_rows

    def one(*basis: Any) -> Any:
        found = leaves_of(pull(tree_unflatten(list(basis), spec)))
        return found[0] if len(found) == 1 else tuple(found)

    basis = standard_basis(outputs)
    found = map_rows(one, basis, "error", chunk_size)
    return [found] if isinstance(found, torch.Tensor) else list(found)
