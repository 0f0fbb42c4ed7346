"""`torch.npu.make_graphed_callables`: forward and backward passes of callables, each captured in a graph.

Invariant: a graphed call reads and writes the tensors of its capture only. Arguments are copied into them, and results
share their memory until the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ..utils import _pytree
from .graphs import NPUGraph, graph, graph_pool_handle


class _Passes:
    """The two graphs of one callable, and the tensors they work on."""

    def __init__(self, function: Callable[..., Any], sample: tuple[Any, ...]) -> None:
        self.function = function
        self.sample = sample
        self.arguments = tuple(_pytree.arg_tree_leaves(*sample))
        if not all(isinstance(leaf, torch.Tensor) for leaf in self.arguments):
            raise AssertionError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        parameters = tuple(function.parameters()) if isinstance(function, torch.nn.Module) else ()
        # What gradients may be asked for: a module's parameters are arguments as well.
        self.inputs = self.arguments + parameters
        self.wanted = tuple(t for t in self.inputs if t.requires_grad)
        self.forward_graph = NPUGraph()
        self.backward_graph = NPUGraph()
        self.outputs: tuple[Any, ...] = ()
        self.shape: Any = None
        self.grad_outputs: tuple[Any, ...] = ()
        self.grad_inputs: tuple[Any, ...] = ()

    def gradients(self, outputs: tuple[Any, ...], given: tuple[Any, ...], allow_unused: bool) -> tuple[Any, ...]:
        targets = tuple(o for o in outputs if o.requires_grad)
        if not targets or not self.wanted:
            return ()
        return tuple(torch.autograd.grad(targets, self.wanted, given, only_inputs=True, allow_unused=allow_unused))

    def warm_up(self, times: int, allow_unused: bool) -> None:
        for _ in range(times):
            outputs = tuple(_pytree.tree_leaves(self.function(*self.sample)))
            given = tuple(torch.empty_like(o) for o in outputs if o.requires_grad)
            self.gradients(outputs, given, allow_unused)

    def capture_forward(self, pool: tuple[int, int]) -> None:
        with graph(self.forward_graph, pool=pool):
            result = self.function(*self.sample)
        leaves, self.shape = _pytree.tree_flatten(result)
        self.outputs = tuple(leaves)

    def capture_backward(self, pool: tuple[int, int], allow_unused: bool) -> None:
        self.grad_outputs = tuple(torch.empty_like(o) if o.requires_grad else None for o in self.outputs)
        given = tuple(g for g in self.grad_outputs if g is not None)
        with graph(self.backward_graph, pool=pool):
            found = iter(self.gradients(self.outputs, given, allow_unused))
        self.grad_inputs = tuple(next(found, None) if t.requires_grad else None for t in self.inputs)

    def call(self, *arguments: Any) -> Any:
        leaves = tuple(_pytree.arg_tree_leaves(*arguments))
        if len(leaves) != len(self.arguments):
            raise RuntimeError(
                f"a graphed callable takes {len(self.arguments)} tensors as in sample_args, got {len(leaves)}"
            )
        out = _Replay.apply(self, *leaves, *self.inputs[len(self.arguments) :])
        return _pytree.tree_unflatten(list(out), self.shape)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, passes: _Passes, *inputs: Any) -> tuple[Any, ...]:
        ctx.passes = passes
        for own, given in zip(passes.arguments, inputs):
            _copy(own, given)
        passes.forward_graph.replay()
        return tuple(output.detach() for output in passes.outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        passes: _Passes = ctx.passes
        for own, given in zip(passes.grad_outputs, grads):
            if own is not None:
                _copy(own, given)
        passes.backward_graph.replay()
        return (None, *(g if g is None else g.detach() for g in passes.grad_inputs))


def _copy(own: Any, given: Any) -> None:
    if own.data_ptr() != given.data_ptr():
        with torch.no_grad():
            own.copy_(given)


def _check_module(module: Any) -> None:
    if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
        raise AssertionError(
            "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
            "after passing them through make_graphed_callables is allowed."
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise AssertionError(
            "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
            "trainable. All buffers must have ``requires_grad=False``."
        )


def _replaced(passes: _Passes) -> Any:
    """The callable, or the module with another `forward`, which runs as it was in the other of training and eval."""
    module = passes.function
    if not isinstance(module, torch.nn.Module):
        return passes.call
    captured, original = module.training, module.forward

    def forward(*arguments: Any, **keywords: Any) -> Any:
        if module.training == captured:
            return passes.call(*arguments, **keywords)
        return original(*arguments, **keywords)

    module.forward = forward
    return module


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Functions or modules whose forward and backward passes are graphs; see `torch.cuda.make_graphed_callables`."""
    if torch.is_autocast_enabled("npu") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    several = isinstance(callables, tuple)
    functions, samples = (callables, sample_args) if several else ((callables,), (sample_args,))
    for function in functions:
        if isinstance(function, torch.nn.Module):
            _check_module(function)
    all_passes = [_Passes(function, sample) for function, sample in zip(functions, samples)]
    shared = graph_pool_handle() if pool is None else pool
    torch.npu.synchronize()
    with torch.npu.stream(torch.npu.Stream()):
        for passes in all_passes:
            passes.warm_up(num_warmup_iters, allow_unused_input)
    torch.npu.synchronize()
    # In the order in which they will run: graphs that share memory write over each other's.
    for passes in all_passes:
        passes.capture_forward(shared)
    for passes in reversed(all_passes):
        passes.capture_backward(shared, allow_unused_input)
    made = tuple(_replaced(passes) for passes in all_passes)
    return made if several else made[0]
