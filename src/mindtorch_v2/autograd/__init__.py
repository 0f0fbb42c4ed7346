"""`torch.autograd`: gradients of tensors.

Invariant: this module checks what a user asked for and translates it into roots and edges; the pass itself is
`_autograd.engine`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from .._autograd.engine import (
    backward_one,
    grad_one,
    gradient_at,
    has_edge,
    input_edge,
    ones_at,
    ones_of,
    root_gradient,
    run_backward,
    runs_everything,
)
from .._autograd.node import Node, meta
from .._autograd.record import zeros_at
from .._autograd.tensor_hooks import retain_grad
from .._dispatch.keys import PYTHON, TORCH_DISPATCH
from .._dispatch.state import STATE, transformed
from .._numbers import flag
from .._overrides import handle_torch_function, has_torch_function, is_tensor_like
from .._size import Size
from .._tensor_base import TensorBase, requires_grad
from . import anomaly_mode as anomaly_mode
from . import function as function
from . import grad_mode as grad_mode
from . import graph as graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .graph import GradientEdge
from .variable import Variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "variable",
    "set_multithreading_enabled",
]


# What PyTorch's profiler is made of, which other programs ask for here.
_OF_PROFILERS = (
    *("DeviceType", "ProfilerActivity", "ProfilerConfig", "ProfilerState", "_KinetoEvent", "_ProfilerResult"),
    *("_add_metadata_json", "_disable_profiler", "_enable_profiler", "_is_kineto_stopped", "_kineto_step"),
    *("_prepare_profiler", "_profiler_enabled", "_supported_activities", "_toggle_collection_dynamic"),
    *("kineto_available", "_record_function_with_args_enter", "_record_function_with_args_exit"),
)


def __getattr__(name: str) -> Any:
    # gradcheck needs NumPy, which is not imported before somebody asks for it.
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(import_module(".gradcheck", __name__), name)
    if name in ("forward_ad", "functional", "profiler", "profiler_legacy", "profiler_util"):
        return import_module("." + name, __name__)
    if name == "SavedTensor":
        return import_module(".._autograd.names", __name__).SavedTensor
    if name in _OF_PROFILERS:
        return getattr(import_module(".._profiler.names", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    late = {"functional", "gradcheck", "gradgradcheck", "profiler", "profiler_legacy", "profiler_util"}
    return sorted({*globals(), *late, *_OF_PROFILERS, "SavedTensor"})


class _Package(ModuleType):
    """The import system puts submodules under their names; two of these are names of functions, as in PyTorch."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("gradcheck", "variable") and isinstance(value, ModuleType):
            value = value.gradcheck if name == "gradcheck" else _variable
        super().__setattr__(name, value)


def _variable(*args: Any, **kwargs: Any) -> NoReturn:
    """Long gone; says what to use."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


_variable.__name__ = _variable.__qualname__ = "variable"
variable = _variable
sys.modules[__name__].__class__ = _Package


def _is_checkpoint_valid() -> bool:
    """Whether a backward pass inside the one that runs now would be right: not when that one has `inputs`."""
    return runs_everything()


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves behind them, or only of `inputs`."""
    if transformed():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    overridable = (*_tuple(tensors), *(() if inputs is None else _inputs(inputs, "backward")))
    if _overridden(overridable):
        return handle_torch_function(  # type: ignore[no-any-return]
            backward,
            overridable,
            tensors,
            grad_tensors=grad_tensors,
            retain_graph=retain_graph,
            create_graph=create_graph,
            inputs=inputs,
        )
    create_graph = flag(create_graph)
    keep = create_graph if retain_graph is None else flag(retain_graph)
    if inputs is None and isinstance(tensors, TensorBase) and isinstance(grad_tensors, (TensorBase, type(None))):
        backward_one(tensors, grad_tensors, keep, create_graph)
        return
    wanted = None if inputs is None else _inputs(inputs, "backward")
    nodes, nrs, grads = _roots(_tuple(tensors), grad_tensors)
    edges = None
    if wanted is not None:
        edges = []
        for t in wanted:
            if isinstance(t, TensorBase):
                retain_grad(t)
            edges.append(input_edge(t))
    run_backward(nodes, nrs, grads, keep, create_graph, edges, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`; `.grad` is left alone."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    wanted = (inputs,) if isinstance(inputs, TensorBase) else _inputs(inputs, "grad")
    overridable = (*_tuple(outputs), *wanted)
    if _overridden(overridable):
        return handle_torch_function(
            grad,
            overridable,
            outputs,
            inputs,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    unused_ok = flag(materialize_grads if allow_unused is None else allow_unused)
    create_graph = flag(create_graph)
    keep = create_graph if retain_graph is None else flag(retain_graph)
    if is_grads_batched:
        result = _batched(_tuple(outputs), grad_outputs, [input_edge(t) for t in wanted], keep, create_graph)
    elif isinstance(outputs, TensorBase) and isinstance(grad_outputs, (TensorBase, type(None))):
        result = grad_one(outputs, grad_outputs, wanted, keep, create_graph)
    else:
        nodes, nrs, grads = _roots(_tuple(outputs), grad_outputs)
        result = run_backward(nodes, nrs, grads, keep, create_graph, [input_edge(t) for t in wanted], False)
    for i, g in enumerate(result):
        if g is None:
            if not unused_ok:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                t = wanted[i]
                if not isinstance(t, TensorBase):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                result[i] = zeros_at(t._shape, t._dtype, t._device)
                result[i].requires_grad = create_graph
    if type(inputs) is dict:
        return dict(zip(inputs, result))
    return tuple(result)


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shape of an output, and that of a gradient for it without its batch dimension."""
    if not isinstance(output, GradientEdge):
        return output.shape, grad.shape[1:] if is_grads_batched else grad.shape
    if is_grads_batched:
        raise RuntimeError("Batched grads are not supported with GradientEdge")
    return Size(meta(output.node, output.output_nr)[0]), grad.shape


def _batched(
    outputs: tuple[Any, ...], gradients: Any, edges: list[tuple[Node, int]], keep: bool, create: bool
) -> list[Any]:
    """One pass for all slices of the gradients' first dimension."""
    import mindtorch_v2 as torch

    given: list[Any] = [None] * len(outputs) if gradients is None else _gradients(gradients)
    sizes: list[int] = []
    for i, (out, g) in enumerate(zip(outputs, given)):
        if g is None:
            # Raises where none can be made; the one that can has no dimension to take slices of.
            _start(outputs, given, i)
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )
        first = g[0]
        shape = meta(out.node, out.output_nr)[0] if isinstance(out, GradientEdge) else out._shape
        if first._shape != tuple(shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {first.shape} and output[{i}] "
                f"has a shape of {torch.Size(shape)}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
        sizes.append(g._shape[0])
    count = sizes[0]
    if any(n != count for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    if count and any(isinstance(t, TensorBase) and t._keys & TORCH_DISPATCH for t in (*outputs, *given)):
        return _one_by_one(outputs, given, count, edges, keep, create)
    from .._batching.dims import add_batch_dim, remove_batch_dim
    from .._batching.kernel import serve
    from .._batching.level import enter, leave, untransformed

    serve()
    with untransformed():
        level = enter(count, "error")
        try:
            nodes, nrs, grads = _roots(outputs, [add_batch_dim(g, 0, level) for g in given])
            found = run_backward(nodes, nrs, grads, keep, create, edges, False)
            return [None if g is None else remove_batch_dim(g, 0, level) for g in found]
        finally:
            leave()


def _one_by_one(
    outputs: tuple[Any, ...], given: list[Any], count: int, edges: list[tuple[Node, int]], keep: bool, create: bool
) -> list[Any]:
    """A pass for each slice: tensors whose class computes have no memory that could stand for many."""
    lib: Any = sys.modules[__name__.partition(".")[0]]
    rows: list[list[Any]] = []
    for i in range(count):
        nodes, nrs, grads = _roots(outputs, [g[i] for g in given])
        rows.append(run_backward(nodes, nrs, grads, keep or i < count - 1, create, edges, False))
    return [None if column[0] is None else lib.stack(column) for column in (list(c) for c in zip(*rows))]


def _overridden(values: tuple[Any, ...]) -> bool:
    """Whether handlers among these, or modes, are to see the call."""
    if STATE.active == 0:
        for v in values:
            if not isinstance(v, TensorBase) or v._keys & PYTHON:
                break
        else:
            return False
    return has_torch_function(values)


def _tuple(tensors: Any) -> tuple[Any, ...]:
    if isinstance(tensors, (TensorBase, GradientEdge)):
        return (tensors,)
    return (tensors,) if is_tensor_like(tensors) else tuple(tensors)


def _gradients(given: Any) -> list[Any]:
    return [given] if isinstance(given, TensorBase) else list(given)


def _inputs(inputs: Any, name: str) -> tuple[Any, ...]:
    if type(inputs) is dict:
        wanted: tuple[Any, ...] = tuple(inputs.values())
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{name}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are not "
            "supported."
        )
    else:
        wanted = _tuple(inputs)
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    return wanted


def _roots(outputs: tuple[Any, ...], gradients: Any) -> tuple[list[Node], list[int], list[Any]]:
    """Where the pass starts, and with what."""
    given = [None] * len(outputs) if gradients is None else _gradients(gradients)
    made = [_start(outputs, given, i) for i in range(min(len(outputs), len(given)))]
    if len(given) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    nodes: list[Node] = []
    nrs: list[int] = []
    grads: list[Any] = []
    for i, out in enumerate(outputs):
        if isinstance(out, GradientEdge):
            nodes.append(out.node)
            nrs.append(out.output_nr)
        else:
            if not has_edge(out):
                raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
            node, nr = gradient_at(out)
            nodes.append(node)
            nrs.append(nr)
        grads.append(made[i])
    return nodes, nrs, grads


def _start(outputs: tuple[Any, ...], given: list[Any], i: int) -> Any:
    """The gradient to start from at one output."""
    out, g = outputs[i], given[i]
    if isinstance(out, GradientEdge):
        shape, dt, dev = meta(out.node, out.output_nr)
        return ones_at(shape, dt, dev) if g is None else root_gradient(g, shape, dt, i)
    if not isinstance(out, TensorBase):
        raise AssertionError("Expected output to be a torch.Tensor")
    if g is None:
        return ones_of(out) if requires_grad(out) else None
    return root_gradient(g, out._shape, out._dtype, i)
