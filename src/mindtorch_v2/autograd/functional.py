"""`torch.autograd.functional`: Jacobians, Hessians and their products with vectors, of functions of tensors.

Invariant: a function is called on copies of its inputs that share their memory (views of them with `create_graph`), and
what is returned is cut from the graph unless `create_graph` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._tensor_base import TensorBase

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_lib: Any = torch
_OUTPUTS = "outputs of the user-provided function"


class _Tensors:
    """One tensor or a tuple of them; `given` turns results for each back into the form the user chose."""

    def __init__(self, value: Any, what: str, where: str) -> None:
        self.many = isinstance(value, tuple)
        self.items: tuple[Any, ...] = value if self.many else (value,)
        for i, t in enumerate(self.items):
            if not isinstance(t, TensorBase):
                which = f"value at index {i}" if self.many else f"given {what}"
                raise TypeError(
                    f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the {which} has "
                    f"type {type(t)}."
                )

    def given(self, results: tuple[Any, ...]) -> Any:
        return results if self.many else results[0]


def _fresh(tensors: tuple[Any, ...], create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    """Tensors to call the function with; with `create_graph` those that require grad stay part of the graph."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in tensors
    )


def _released(values: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    return values if create_graph else tuple(v.detach() for v in values)


def _vector(v: Any, other: _Tensors, where: str, create_graph: bool) -> tuple[Any, ...]:
    """The vector of a product, checked against what it is multiplied with."""
    vs = _fresh(_Tensors(v, "v", where).items, create_graph, False)
    if len(vs) != len(other.items):
        if other.many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(other.items)} but got {len(vs)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(vs, other.items)):
        if a.size() != b.size():
            prefix = f"Entry {i} in " if other.many else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.size()} but got {a.size()}.")
    return vs


def _input_vector(v: Any, inputs: _Tensors, where: str, create_graph: bool) -> tuple[Any, ...] | None:
    if v is not None:
        return _vector(v, inputs, where, create_graph)
    if len(inputs.items) != 1 or inputs.items[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element."
        )
    return None


_STRICT = {
    "outputs": "Output {0} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {0} is independent of the inputs of the user-provided function. "
    "This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {0} is independent of the input. This is not allowed in strict mode. You should ensure that "
    "your function is twice differentiable and that the jacobian depends on the inputs (this would be "
    "violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {0} is independent of the input. This "
    "is not allowed in strict mode. You should ensure that your function is thrice differentiable and that "
    "the hessian depends on the inputs.",
}


def _strictly(values: Any, kind: str, strict: bool) -> None:
    """In strict mode every value must depend on the inputs."""
    if not strict:
        return
    for i, t in enumerate(values):
        if t is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is not allowed in strict "
                "mode."
            )
        if not t.requires_grad:
            raise RuntimeError(_STRICT[kind].format(i))


def _grad(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    vectors: tuple[Any, ...] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> tuple[Any, ...]:
    """`autograd.grad` of the outputs that have a history; None for inputs that were not used."""
    from . import grad

    vectors = vectors or (None,) * len(outputs)
    pairs = [(o, v) for o, v in zip(outputs, vectors) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    found: tuple[Any, ...] = grad(
        tuple(o for o, _ in pairs),
        inputs,
        tuple(v for _, v in pairs),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
        is_grads_batched=batched,
    )
    return found


_UNUSED = {
    "back": "The output of the user-provided function is independent of input {0}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {0} in the grad_outputs when using "
    "the double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {0}. This is not allowed in "
    "strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {0} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to "
    "replace forward mode AD.",
}


def _filled(
    grads: tuple[Any, ...], like: tuple[Any, ...], strict: bool, create_graph: bool, stage: str
) -> tuple[Any, ...]:
    """Zeros where nothing was used, which strict mode refuses."""
    out = []
    for i, g in enumerate(grads):
        if g is None:
            if strict:
                raise RuntimeError(_UNUSED[stage].format(i))
            g = _lib.zeros_like(like[i])
        elif strict and create_graph and not g.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict "
                "mode when create_graph=True."
            )
        out.append(g)
    return tuple(out)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of the vector `v` with its Jacobian."""
    with torch.enable_grad():
        asked = _Tensors(inputs, "inputs", "vjp")
        args = _fresh(asked.items, create_graph, True)
        outputs = _Tensors(func(*args), _OUTPUTS, "vjp")
        _strictly(outputs.items, "outputs", strict)
        vs = None
        if v is not None:
            vs = _vector(v, outputs, "vjp", create_graph)
        elif len(outputs.items) != 1 or outputs.items[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element."
            )
    with torch.set_grad_enabled(bool(create_graph) or torch.is_grad_enabled()):
        product = _filled(_grad(outputs.items, args, vs, create_graph=create_graph), args, strict, create_graph, "back")
    return outputs.given(_released(outputs.items, create_graph)), asked.given(_released(product, create_graph))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of its Jacobian with the vector `v`. Backward is linear in the gradients it
    starts from, so its own derivative by them is the Jacobian."""
    with torch.enable_grad():
        asked = _Tensors(inputs, "inputs", "jvp")
        args = _fresh(asked.items, create_graph, True)
        vs = _input_vector(v, asked, "jvp", create_graph)
        outputs = _Tensors(func(*args), _OUTPUTS, "jvp")
        _strictly(outputs.items, "outputs", strict)
        starts = tuple(_lib.zeros_like(o, requires_grad=True) for o in outputs.items)
        back = _grad(outputs.items, args, starts, create_graph=True)
        _strictly(back, "grad_inputs", strict)
    with torch.set_grad_enabled(bool(create_graph) or torch.is_grad_enabled()):
        product = _filled(
            _grad(back, starts, vs, create_graph=create_graph), outputs.items, strict, create_graph, "back_trick"
        )
    return outputs.given(_released(outputs.items, create_graph)), outputs.given(_released(product, create_graph))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of every element of the outputs by every element of the inputs. `vectorize` asks for all rows
    with one call of `grad`."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward_mode(create_graph, strict, vectorize)
        return _by_columns(func, inputs)
    with torch.enable_grad():
        asked = _Tensors(inputs, "inputs", "jacobian")
        args = _fresh(asked.items, create_graph, True)
        outputs = _Tensors(func(*args), _OUTPUTS, "jacobian")
        _strictly(outputs.items, "outputs", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                    "together. Please either set `strict=False` or `vectorize=False`."
                )
            table = _all_rows(outputs.items, args, create_graph)
        else:
            table = tuple(_rows(i, o, args, create_graph, strict) for i, o in enumerate(outputs.items))
        return outputs.given(tuple(asked.given(_released(row, create_graph)) for row in table))


def _check_forward_mode(create_graph: bool, strict: bool, vectorize: bool) -> None:
    """PyTorch's refusals."""
    where = "torch.autograd.functional.jacobian"
    if create_graph:
        raise NotImplementedError(
            f'{where}: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please '
            'either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            f'{where}: `strict=True` and `strategy="forward-mode"` are not supported together (yet). Please either set '
            '`strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )


def _by_columns(func: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobian from derivatives along every element of the inputs; lists where PyTorch's are."""
    from .._batching.level import untransformed
    from ..func._forward import by_unit_vectors

    asked = _Tensors(inputs, "inputs", "jacobian")
    many = False

    def outputs_of(*args: Any) -> tuple[Any, ...]:
        nonlocal many
        with untransformed():
            outputs = _Tensors(func(*args), "outputs", "None")
        many = outputs.many
        return outputs.items

    table = by_unit_vectors(outputs_of, tuple(range(len(asked.items))), False, "error", False)(*asked.items)
    rows = [list(row) if asked.many else row[0] for row in table]
    return rows if many else rows[0]


def _rows(i: int, out: Any, args: tuple[Any, ...], create_graph: bool, strict: bool) -> tuple[Any, ...]:
    """The derivatives of one output by every input, one pass for each element."""
    rows: tuple[list[Any], ...] = tuple([] for _ in args)
    for j in range(out.numel()):
        found = _grad((out.reshape(-1)[j],), args, retain_graph=True, create_graph=create_graph)
        for k, g in enumerate(found):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {k}. This is not allowed in "
                        "strict mode."
                    )
                g = _lib.zeros_like(args[k])
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            rows[k].append(g)
    return tuple(_lib.stack(row, dim=0).view(out.size() + x.size()) for row, x in zip(rows, args))


def _construct_standard_basis_for(tensors: tuple[Any, ...], tensor_numels: tuple[int, ...]) -> tuple[Any, ...]:
    """The unit vectors in the space of all elements, as rows, in one part for each tensor."""
    units = []
    start = 0
    for t, n in zip(tensors, tensor_numels):
        unit = t.new_zeros(sum(tensor_numels), n)
        unit.diagonal(-start).fill_(1)
        units.append(unit)
        start += n
    return tuple(units)


def _all_rows(outputs: tuple[Any, ...], args: tuple[Any, ...], create_graph: bool) -> tuple[tuple[Any, ...], ...]:
    """The same for all outputs, from the unit vectors in the space of all their elements."""
    sizes = [o.numel() for o in outputs]
    total = sum(sizes)
    units = _construct_standard_basis_for(outputs, tuple(sizes))
    flat = tuple(o.reshape(-1) for o in outputs)
    columns = []
    for g, x in zip(_grad(flat, args, units, create_graph=create_graph, batched=True), args):
        if g is None:
            g = _lib.zeros_like(x).expand((total, *x.shape))
        columns.append([part.view(o.shape + x.shape) for part, o in zip(g.split(sizes, dim=0), outputs)])
    return tuple(zip(*columns))


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns one number."""
    asked = _Tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def number(*args: Any) -> Any:
        return _single(func(*args), "hessian", strict).squeeze()

    def gradient(*args: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            # Inside, they are dual tensors: what is a leaf to the inner Jacobian must stay one of these.
            args = tuple(t.requires_grad_(True) for t in args)
        found = jacobian(number, args, create_graph=True)
        _strictly(found, "jacobian", strict)
        return found

    table = jacobian(
        gradient,
        asked.items,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    if outer_jacobian_strategy == "forward-mode":
        return table if asked.many else table[0][0]
    return asked.given(tuple(asked.given(row) for row in table))


def _single(value: Any, where: str, strict: bool) -> Any:
    """The result of a function that has to return one tensor with one element."""
    outputs = _Tensors(value, _OUTPUTS, where)
    _strictly(outputs.items, "outputs", strict)
    if outputs.many:
        raise RuntimeError(f"The function given to {where} should return a single Tensor")
    if value.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")
    return value


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of the vector `v` with its Hessian."""
    with torch.enable_grad():
        asked = _Tensors(inputs, "inputs", "vhp")
        args = _fresh(asked.items, create_graph, True)
        vs = _input_vector(v, asked, "vhp", create_graph)
        output = _single(func(*args), "vhp", strict)
        first = _grad((output,), args, create_graph=True)
        _strictly(first, "jacobian", strict)
    with torch.set_grad_enabled(bool(create_graph) or torch.is_grad_enabled()):
        product = _filled(_grad(first, args, vs, create_graph=create_graph), args, strict, create_graph, "double_back")
    return _released((output,), create_graph)[0], asked.given(_released(product, create_graph))


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """`func(*inputs)`, and the product of its Hessian with the vector `v`; slower than `vhp`, and equal to it where the
    Hessian is symmetric."""
    with torch.enable_grad():
        asked = _Tensors(inputs, "inputs", "hvp")
        args = _fresh(asked.items, create_graph, True)
        vs = _input_vector(v, asked, "hvp", create_graph)
        output = _single(func(*args), "hvp", strict)
        first = _grad((output,), args, create_graph=True)
        _strictly(first, "jacobian", strict)
        starts = tuple(_lib.zeros_like(x, requires_grad=True) for x in args)
        second = _grad(first, args, starts, create_graph=True)
        _strictly(first, "hessian", strict)
    with torch.set_grad_enabled(bool(create_graph) or torch.is_grad_enabled()):
        product = _filled(
            _grad(second, starts, vs, create_graph=create_graph), args, strict, create_graph, "double_back_trick"
        )
    return _released((output,), create_graph)[0], asked.given(_released(product, create_graph))
