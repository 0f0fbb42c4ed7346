"""`jvp`, `jacfwd` and `linearize`: derivatives of functions along the forward pass.

Invariant: every `jvp` opens a level of its own, so that they nest; what leaves it has the tangents of the levels around
it and none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from .._autograd.forward import enter_level, leave_level, put_dual, tangent_of
from .._batching.level import begin, end
from .._dispatch.keys import SPARSE
from .._dispatch.state import STATE, is_inference_mode, set_modes, swap_inference
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from ._arguments import Argnums, check_real, chosen, named_after, replaced, standard_basis, tensors_only

_API = "jvp(f, primals, tangents)"


def _flat_tensors(tree: Any, what: str) -> tuple[list[Any], TreeSpec]:
    flat, spec = tree_flatten(tree)
    for t in flat:
        if not isinstance(t, torch.Tensor):
            raise RuntimeError(f"{_API}: Expected {what} to only contain Tensors, got {type(t)}")
    return flat, spec


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `func(*primals)`, and its derivative along `tangents`."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat: Sequence[Any] = primals
    along: Sequence[Any] = tangents
    # A tuple of tensors is its own leaves.
    spec = None
    if not (_only_tensors(primals) and _only_tensors(tangents) and len(primals) == len(tangents)):
        flat, along, spec = _leaves(primals, tangents)
    for t in flat:
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {t.dtype}")
    modes = swap_inference(False) if is_inference_mode() else None
    entered = enter_level()
    begin("jvp")
    level = entered[0]
    try:
        given = [put_dual(p if p._keys & SPARSE else p.view_as(p), t, level) for p, t in zip(flat, along)]
        output, aux = _split(func(*given) if spec is None else func(*tree_unflatten(given, spec)), has_aux, _API)
        if has_aux:
            tensors_only(aux)
        if isinstance(output, torch.Tensor):
            direction = _tangent(output, level, strict)
            return (output, direction, aux) if has_aux else (output, direction)
        results, out_spec = _checked(output)
        pushed = [_tangent(r, level, strict) for r in results]
    finally:
        end()
        leave_level(entered)
        if modes is not None:
            set_modes(modes)
    made = tuple(tree_unflatten(values, out_spec) for values in (results, pushed))
    return (*made, aux) if has_aux else made


def _only_tensors(tree: Any) -> bool:
    if type(tree) is not tuple or not tree:
        return False
    for t in tree:
        if not isinstance(t, torch.Tensor):
            return False
    return True


def _leaves(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], TreeSpec]:
    """The tensors of both, which have the same structure, and that."""
    flat, spec = tree_flatten(primals)
    along, along_spec = tree_flatten(tangents)
    if spec != along_spec:
        raise RuntimeError(
            f"{_API}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{along_spec}"
        )
    _flat_tensors(primals, "primals")
    if not flat:
        raise RuntimeError(f"{_API}: Expected primals to contain at least one Tensor.")
    _flat_tensors(tangents, "tangents")
    return flat, along, spec


def _split(output: Any, has_aux: bool, where: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _checked(output: Any) -> tuple[list[Any], TreeSpec]:
    flat, spec = tree_flatten(output)
    if flat == [None]:
        raise RuntimeError(f"{_API}: Expected f to be a function that has non-empty output (got output = {flat})")
    for t in flat:
        if not isinstance(t, torch.Tensor):
            raise RuntimeError(f"{_API}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")
    if not flat:
        raise RuntimeError(f"{_API}: Expected f to be a function that has non-empty output (got output = {flat})")
    return flat, spec


def _tangent(result: Any, level: int, strict: bool) -> Any:
    found = tangent_of(result, level)
    if found is not None:
        return found
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return torch.zeros_like(result)


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that returns the derivatives of every element of the results of `func` by every element of the
    arguments `argnums`: one derivative along each unit vector in the space of those arguments."""
    return by_unit_vectors(func, argnums, has_aux, randomness, True)


def by_unit_vectors(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, randomness: str, real: bool
) -> Callable[..., Any]:
    """The same; `real`: what is complex is refused."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from ._vmap import map_rows

        inputs, in_spec = tree_flatten(chosen(args, argnums))

        def one(*primals: Any) -> Any:
            return func(*replaced(args, argnums, tree_unflatten(list(primals), in_spec)), **kwargs)

        def push(*basis: Any) -> Any:
            found = jvp(one, tuple(inputs), basis, has_aux=has_aux)
            if real:
                check_real("outputs", "jacfwd", found[0])
            return found[1:]

        if real:
            check_real("inputs", "jacfwd", args)
        _flat_tensors(inputs, "primals")
        basis = standard_basis(inputs)
        if basis and basis[0].shape[0] == 0:
            # No unit vector: the results alone say what is empty.
            columns, aux = _empty(one, inputs, has_aux)
        else:
            found = map_rows(push, basis, randomness, None)
            columns = found[0]
            aux = tree_map_first(found[1]) if has_aux else None
        outputs, out_spec = tree_flatten(columns)
        parts = [tree_unflatten(_by_input(column, inputs), in_spec) for column in outputs]
        jacobian = tree_unflatten(parts, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return named_after(func, wrapper)


def tree_map_first(tree: Any) -> Any:
    """What is the same along every unit vector, once."""
    flat, spec = tree_flatten(tree)
    return tree_unflatten([t[0] for t in flat], spec)


def _empty(one: Callable[..., Any], inputs: list[Any], has_aux: bool) -> tuple[Any, Any]:
    output, aux = _split(one(*inputs), has_aux, _API)
    flat, spec = _checked(output)
    return tree_unflatten([t.new_zeros((0, *t.shape)) for t in flat], spec), aux


def _by_input(column: Any, inputs: list[Any]) -> list[Any]:
    """The derivatives of one result, from those along all unit vectors, by input."""
    shape = tuple(column.shape[1:])
    last = column.movedim(0, -1)
    parts = (last,) if len(inputs) == 1 else last.split([t.numel() for t in inputs], dim=-1)
    return [part.reshape(shape + tuple(t.shape)) for part, t in zip(parts, inputs)]


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func(*primals)`, and a function of tangents that is its derivative there. `func` runs once: the
    derivative is kept as the transpose of a transpose, which is computed for each call. Inside another transform, which
    wants to follow both, each call is a `jvp`."""
    flat, spec = tree_flatten(primals)
    for t in flat:
        if isinstance(t, torch.Tensor) and not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {t.dtype}")
    if STATE.transforms or STATE.levels:
        return func(*primals), _followed(func, primals, flat, spec)
    with torch.enable_grad():
        given = [t.detach().requires_grad_() if _can_have(t) else t for t in flat]
        output = func(*tree_unflatten(given, spec))
        results, out_spec = tree_flatten(output)
        starts = [torch.zeros_like(r, requires_grad=True) if _can_have(r) else None for r in results]
        pairs = [(r, s) for r, s in zip(results, starts) if s is not None and r.requires_grad]
        inputs = [t for t in given if _can_have(t)]
        back: Any = [None] * len(inputs)
        if pairs and inputs:
            back = torch.autograd.grad(
                [r for r, _ in pairs], inputs, [s for _, s in pairs], create_graph=True, allow_unused=True
            )
    values = [r.detach() if isinstance(r, torch.Tensor) else r for r in results]

    def jvp_fn(*tangents: Any) -> Any:
        along = _directions(tangents, flat, spec)
        directions = [t for p, t in zip(flat, along) if _can_have(p)]
        rows = [(b, t) for b, t in zip(back, directions) if b is not None and b.requires_grad]
        wanted = [s for _, s in pairs]
        found: Any = [None] * len(wanted)
        if rows:
            found = torch.autograd.grad(
                [b for b, _ in rows],
                wanted,
                [t for _, t in rows],
                retain_graph=True,
                create_graph=torch.is_grad_enabled() and any(t.requires_grad for t in directions),
                allow_unused=True,
            )
        by_start = {id(s): g for s, g in zip(wanted, found)}
        return tree_unflatten(
            [_derivative(v, by_start.get(id(s)) if s is not None else None) for v, s in zip(values, starts)], out_spec
        )

    return tree_unflatten(values, out_spec), jvp_fn


def _directions(tangents: Any, flat: list[Any], spec: TreeSpec) -> list[Any]:
    """The leaves of tangents, which must fit the primals."""
    along, along_spec = tree_flatten(tangents)
    if along_spec != spec:
        raise RuntimeError(f"Expected the tangents {along_spec} to have the same argspec as the primals {spec}")
    for i, (p, t) in enumerate(zip(flat, along)):
        for what in ("shape", "device", "dtype"):
            if isinstance(p, torch.Tensor) and getattr(t, what) != getattr(p, what):
                raise RuntimeError(
                    f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't match the {what} "
                    f"{getattr(p, what)} of the corresponding primal."
                )
    return along


def _followed(func: Callable[..., Any], primals: Any, flat: list[Any], spec: TreeSpec) -> Callable[..., Any]:
    def jvp_fn(*tangents: Any) -> Any:
        _directions(tangents, flat, spec)
        return jvp(func, primals, tangents)[1]

    return jvp_fn


def _can_have(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())


def _derivative(value: Any, found: Any) -> Any:
    if found is not None or not isinstance(value, torch.Tensor):
        return found
    return torch.zeros_like(value)
