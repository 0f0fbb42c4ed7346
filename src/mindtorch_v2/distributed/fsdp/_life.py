"""When parameters are gathered and given back: hooks around forward and backward, the same for both kinds of FSDP.

Invariant: a unit's parameters are whole from before its forward until after it, and again from before its backward
until its gradients were reduced. Every rank runs the same units in the same order, and gathers and reduces in it.
"""

from __future__ import annotations

from typing import Any

from ...autograd import Function
from ...autograd.variable import Variable
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten


class Unit:
    """Parameters that are gathered and reduced together."""

    reduced = False  # in this backward

    def start_gather(self) -> None:
        """Ask for the other ranks' parts, if that was not done."""
        raise NotImplementedError

    def gather(self) -> None:
        """Have the whole parameters, in the modules that own them."""
        raise NotImplementedError

    def release(self) -> None:
        """Give the other ranks' parts back."""
        raise NotImplementedError

    def release_until_backward(self) -> None:
        """Give back what backward does not want to find."""
        self.release()

    def start_reduce(self) -> bool:
        """Send the gradients that there are; whether there were any."""
        raise NotImplementedError

    def finish_reduce(self) -> None:
        """Have this rank's part of the gradients."""
        raise NotImplementedError


class Context:
    """What the units below one root share."""

    def __init__(self) -> None:
        self.states: list[State] = []
        # The order in which forward reached them: backward goes the other way.
        self.order: list[State] = []
        self.reducing: list[Unit] = []
        self.queued = False

    def queue(self) -> None:
        """Have `end` called when backward has ended."""
        if not self.queued:
            self.queued = True
            Variable._execution_engine.queue_callback(self.end)

    def end(self) -> None:
        """After backward: what had no gradient to wait for is reduced now."""
        self.queued = False
        for state in reversed(self.order or self.states):
            if state.backward or state.unit is not None:
                state.after_backward()
        self.finish()
        for state in self.states:
            state.backward = False
            if state.unit is not None:
                state.unit.reduced = False

    def finish(self, under_way: int = 0) -> None:
        """Wait for reductions, the oldest first, until only so many are under way."""
        while len(self.reducing) > under_way:
            self.reducing.pop(0).finish_reduce()


class _AfterBackward(Function):
    """The identity on a module's inputs: its backward runs after that of the module."""

    @staticmethod
    def forward(ctx: Any, state: Any, *inputs: Any) -> Any:
        ctx.state = state
        return inputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.after_backward()
        return None, *grads


def _tensors(value: Any) -> tuple[list[Any], Any]:
    return tree_flatten(value)


def _wants_grad(value: Any) -> bool:
    from ... import Tensor

    return isinstance(value, Tensor) and value.requires_grad


class State:
    """A module with (or, for a root, without) parameters of its own."""

    def __init__(self, modules: list[Any], unit: Unit | None) -> None:
        self.modules, self.unit = modules, unit
        self.context: Context | None = None
        self.is_root = False
        self.release_after_forward: bool | None = None
        self.release_after_backward = True
        self.sync = True
        self.backward = False
        self.unshard_in_backward = True
        self.under_way = 1  # reductions that may be, while the next module's backward runs
        self.wait_for: Any = None  # an event, for the next forward of a root
        self.forward_next: list[State] = []
        self.backward_next: list[State] = []
        self.input_dtype: Any = None
        self.output_dtype: Any = None
        self._running: set[int] = set()

    def hook(self) -> None:
        """Look at the modules' forward."""
        for module in self.modules:
            module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._after, prepend=False)

    # -- forward --------------------------------------------------------------------------------------------------
    def _root(self) -> None:
        """The first state that runs is the root of those below it."""
        if self.context is not None:
            return
        self.context = Context()
        self.is_root = True
        found: list[State] = []
        for module in self.modules:
            for each in module.modules():
                state = getattr(each, "_fsdp_state", None)
                if isinstance(state, State) and state not in found:
                    found.append(state)
        for state in found:
            if state is not self and state.is_root and state.context is not None:
                raise RuntimeError(
                    "FSDP state has already been lazily initialized: forward ran on a module below first"
                )
            state.context = self.context
            if state.release_after_forward is None:
                state.release_after_forward = state is not self
        self.context.states = found

    def _before(self, module: Any, args: Any, kwargs: Any) -> Any:
        if len(self.modules) > 1:
            first = not self._running
            self._running.add(id(module))
            if not first:
                return args, kwargs
        return self.before_forward(args, kwargs)

    def _after(self, module: Any, args: Any, output: Any) -> Any:
        if len(self.modules) > 1 and len(self._running) < len(self.modules):
            return output
        self._running.clear()
        return self.after_forward(output)

    def before_forward(self, args: Any, kwargs: Any) -> Any:
        self._root()
        context = self.context
        assert context is not None
        if self.backward:
            # Recomputed activations: the parameters are whole already, and stay so.
            if self.unit is not None:
                self.unit.gather()
            return args, kwargs
        if self.is_root:
            context.order.clear()
            if self.wait_for is not None:
                self.wait_for.wait()
                self.wait_for = None
        if self.input_dtype is not None:
            args, kwargs = tree_map(self._cast(self.input_dtype), (args, kwargs))
        if self.unit is not None:
            self.unit.gather()
            for other in self.forward_next:
                if other.unit is not None:
                    other.unit.start_gather()
        return self._watched(args, kwargs)

    def _watched(self, args: Any, kwargs: Any) -> Any:
        from ... import is_grad_enabled

        if not is_grad_enabled() or self.unit is None:
            return args, kwargs
        flat, spec = _tensors((args, kwargs))
        places = [at for at, value in enumerate(flat) if _wants_grad(value)]
        if places:
            passed = _AfterBackward.apply(self, *[flat[at] for at in places])
            for at, value in zip(places, passed):
                flat[at] = value
        found: Any = tree_unflatten(flat, spec)
        return found

    @staticmethod
    def _cast(dtype: Any) -> Any:
        from ... import Tensor

        def cast(value: Any) -> Any:
            return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

        return cast

    def after_forward(self, output: Any) -> Any:
        context = self.context
        assert context is not None
        if self.backward:
            return output
        if self.unit is not None and self.release_after_forward:
            self.unit.release_until_backward()
        if self not in context.order:
            context.order.append(self)
        for value in _tensors(output)[0]:
            if _wants_grad(value):
                value.register_hook(self._before_backward)
        return output if self.output_dtype is None else tree_map(self._cast(self.output_dtype), output)

    # -- backward -------------------------------------------------------------------------------------------------
    def _before_backward(self, grad: Any) -> Any:
        context = self.context
        assert context is not None
        context.queue()
        if not self.backward:
            self.backward = True
            if self.unit is not None and self.unshard_in_backward:
                self.unit.gather()
                for other in self._next(context):
                    if other.unit is not None and not other.backward and other.unshard_in_backward:
                        other.unit.start_gather()
        return grad

    def _next(self, context: Context) -> list[State]:
        """The states whose parameters backward wants next."""
        if self.backward_next:
            return self.backward_next
        at = context.order.index(self) if self in context.order else 0
        return [context.order[at - 1]] if at > 0 else []

    def after_backward(self) -> None:
        """Reduce what gradients there are, and give the parameters back."""
        if self.unit is None:
            return
        context = self.context
        assert context is not None
        self.backward = False
        if self.sync and self.unit.start_reduce():
            context.finish(self.under_way - 1)
            context.reducing.append(self.unit)
        if self.release_after_backward:
            self.unit.release()
