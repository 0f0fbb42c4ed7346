"""The functions that take expanded weights, and their gradients by sample.

One autograd function serves them all. Forward, it calls the function with the parameters themselves; backward, it
differentiates the same call for each sample, mapped over the batch. A rule only says which arguments carry the batch,
and along which dimension.

Invariant: gradients of inputs are those of the call as a whole; what a call changes besides (running statistics, norms
of embeddings) it changes once, forward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import mindtorch_v2 as torch

from ...._tensor import Tensor
from ....autograd.function import Function
from ....func import vjp, vmap
from ....utils._pytree import tree_flatten, tree_unflatten
from ... import functional as F
from .expanded_weights_impl import HANDLED_FUNCTIONS, ExpandedWeight
from .expanded_weights_utils import (
    check_input,
    check_reductions,
    set_grad_sample_if_exists,
    unpack_expanded_weight_or_tensor,
)

__all__ = ["rule_of"]

Rule = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]


def rule_of(func: Any) -> Rule | None:
    """The rule of a function, or None."""
    try:
        return HANDLED_FUNCTIONS.get(func)
    except TypeError:  # unhashable
        return None


def _first(gradient: Any, _weight: Any) -> Any:
    return gradient


class Call:
    """One call: its function of a flat list of values, which of them are weights, and where the batch is.

    `again` is the function without what must happen once; `dims` has the batch's dimension of a value, or None, and
    `out_dims` those of the results.
    """

    def __init__(
        self,
        again: Callable[[Sequence[Any]], Any],
        values: Sequence[Any],
        dims: Sequence[int | None],
        out_dims: Sequence[int],
    ) -> None:
        self.again = again
        self.values = [v.orig_weight if isinstance(v, ExpandedWeight) else v for v in values]
        self.weights = [v if isinstance(v, ExpandedWeight) else None for v in values]
        self.dims = list(dims)
        self.out_dims = list(out_dims)

    def results(self, places: Sequence[int], given: Sequence[Any]) -> tuple[Any, ...]:
        """The results with `given` in the places; everything else is what the call had."""
        values = [v.detach() if isinstance(v, Tensor) else v for v in self.values]
        for place, value in zip(places, given, strict=True):
            values[place] = value
        made = self.again(values)
        return (made,) if isinstance(made, Tensor) else tuple(made)

    def inputs_gradients(self, needed: Sequence[bool], gradients: Sequence[Any]) -> list[Any]:
        """The gradients of values that are no weights."""
        places = [i for i, weight in enumerate(self.weights) if weight is None and needed[i]]
        answer: list[Any] = [None] * len(self.values)
        if places:
            given = [self.values[i].detach() for i in places]
            _, pull = vjp(lambda *xs: self.results(places, xs), *given)
            for place, gradient in zip(places, pull(tuple(gradients)), strict=True):
                answer[place] = gradient
        return answer

    def sample_gradients(self, places: Sequence[int], gradients: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of weights, with the batch in front."""
        batched = [i for i, dim in enumerate(self.dims) if dim is not None]
        dims = [d for d in self.dims if d is not None]
        weights = [self.values[i].detach() for i in places]

        def one(*parts: Any) -> Any:
            mine = [p.unsqueeze(d) for p, d in zip(parts[: len(batched)], dims, strict=True)]
            outs = [p.unsqueeze(d) for p, d in zip(parts[len(batched) :], self.out_dims, strict=True)]
            _, pull = vjp(lambda *ws: self.results([*batched, *places], [*mine, *ws]), *weights)
            return pull(tuple(outs))

        parts = [self.values[i].detach() for i in batched]
        made: tuple[Any, ...] = vmap(one, in_dims=(*dims, *self.out_dims), randomness="error")(*parts, *gradients)
        return made

    def collect(self, gradients: Sequence[Any]) -> None:
        """Add to `grad_sample` of every parameter."""
        places = [i for i, weight in enumerate(self.weights) if weight is not None]
        made = self.sample_gradients(places, gradients)
        for place, gradient in zip(places, made, strict=True):
            set_grad_sample_if_exists(self.weights[place], partial(_first, gradient))


class _Packed(Call):
    """A recurrent call over packed sequences: samples have lengths of their own, so they are taken one by one."""

    def __init__(
        self,
        again: Callable[[Sequence[Any]], Any],
        single: Callable[[Sequence[Any]], Any],
        values: Sequence[Any],
        sizes: Sequence[int],
    ) -> None:
        super().__init__(again, values, [None] * len(values), [])
        self.single = single
        self.sizes = list(sizes)

    def sample_gradients(self, places: Sequence[int], gradients: Sequence[Any]) -> tuple[Any, ...]:
        starts = [sum(self.sizes[:t]) for t in range(len(self.sizes))]
        weights = [self.values[i].detach() for i in places]
        made: list[tuple[Any, ...]] = []
        for sample in range(self.sizes[0]):
            rows = [start + sample for start, size in zip(starts, self.sizes) if sample < size]
            values = [v.detach() if isinstance(v, Tensor) else v for v in self.values]
            values[0] = values[0][rows].unsqueeze(1)
            for place, value in enumerate(values):
                if place and self.weights[place] is None and isinstance(value, Tensor):
                    values[place] = value[:, sample : sample + 1]

            def of_weights(*given: Any, values: list[Any] = values) -> Any:
                mine = list(values)
                for place, value in zip(places, given, strict=True):
                    mine[place] = value
                return tuple(self.single(mine))

            outs = (gradients[0][rows].unsqueeze(1), *(g[:, sample : sample + 1] for g in gradients[1:]))
            made.append(vjp(of_weights, *weights)[1](outs))
        return tuple(torch.stack(parts) for parts in zip(*made, strict=True))


class PerSample(Function):
    """A call whose weights get their gradients by sample."""

    @staticmethod
    def forward(ctx: Any, call: Call, first: Any, *values: Any) -> Any:
        ctx.call = call
        ctx.set_materialize_grads(True)
        return first()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        call: Call = ctx.call
        answer = call.inputs_gradients(ctx.needs_input_grad[2:], gradients)
        call.collect(gradients)
        return (None, None, *answer)


def _run(call: Call, first: Callable[[], Any]) -> Any:
    # What is recorded is the parameter; no gradient is given for it, and so its `grad` stays as it is.
    return PerSample.apply(call, first, *[v if isinstance(v, Tensor) else None for v in call.values])


def _simple(
    check: Callable[[Any, Mapping[Any, Any]], None], once: Callable[[dict[str, Any]], None] | None = None
) -> Rule:
    """The rule of a function whose first argument alone has the batch, in front (or second, if the weights say so)."""

    def rule(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        values, tree = tree_flatten((args, dict(kwargs)))
        weights = [v for v in values if isinstance(v, ExpandedWeight)]
        given = args[0] if args else kwargs["input"]
        check(given, {**dict(enumerate(args)), **kwargs})
        check_input(func.__name__, given, weights)
        check_reductions(weights)
        for value in values:
            if value is not given:
                unpack_expanded_weight_or_tensor(value)  # refuses a plain parameter beside expanded ones
        dim = 0 if all(w.batch_first for w in weights) else 1

        def again(flat: Sequence[Any]) -> Any:
            mine, named = tree_unflatten(list(flat), tree)
            if once is None:
                return func(*mine, **named)
            bound = inspect.signature(func).bind(*mine, **named).arguments
            once(bound)
            return func(**bound)

        call = Call(again, values, [dim if v is given else None for v in values], [dim])

        def first() -> Any:
            mine, named = tree_unflatten(call.values, tree)
            return func(*mine, **named)

        return _run(call, first)

    return rule


def _check_linear(given: Any, arguments: Mapping[Any, Any]) -> None:
    if len(given.shape) < 2:
        raise RuntimeError(
            "Input does not have a batch dimension. Expanded Weights expected input "
            f"of at least rank 2, got of rank {len(given.shape)}"
        )


def _check_convolution(spatial: int) -> Callable[[Any, Mapping[Any, Any]], None]:
    def check(given: Any, arguments: Mapping[Any, Any]) -> None:
        if given.dim() != spatial + 2:
            raise RuntimeError(
                f"Expanded Weights only support convolution with batched input, got conv{spatial}d with an"
                f"unbatched input of dim {given.dim()}, expected input of dim {spatial + 2}"
            )

    return check


def _check_embedding(given: Any, arguments: Mapping[Any, Any]) -> None:
    if len(given.shape) == 1:
        raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a 1D tensor, {given}")


def _check_layer_norm(given: Any, arguments: Mapping[Any, Any]) -> None:
    shape = arguments.get(1, arguments.get("normalized_shape"))
    if isinstance(given, Tensor) and len(given.shape) == len(shape):
        raise RuntimeError(
            "Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradient"
            f"computations but got that normalized shape, {shape}, matched input shape."
        )


def _no_check(given: Any, arguments: Mapping[Any, Any]) -> None:
    pass


def _norms_are_made(named: dict[str, Any]) -> None:
    named["max_norm"] = None


def _statistics_are_taken(named: dict[str, Any]) -> None:
    if named.get("use_input_stats", True):
        named["running_mean"] = named["running_var"] = None


def _recurrent(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The rule of whole recurrent networks: `func(input, hx, weights, ...)`, or packed `func(data, sizes, hx, ...)`."""
    if kwargs:
        args = (*args, *kwargs.values())
    packed = not isinstance(args[2], (list, tuple)) or isinstance(args[3], (list, tuple))
    data, states, flat = (args[0], args[2], args[3]) if packed else args[:3]
    options = args[4:] if packed else args[3:]
    dropout, train = options[2], options[3]
    if dropout and train:
        raise RuntimeError(
            "Expanded Weights: recurrent layers with dropout in training draw the same numbers again for no sample; "
            "use torch.func.vmap over torch.func.grad"
        )
    lone = isinstance(states, Tensor)
    held = [states] if lone else list(states)
    weights = [w for w in flat if isinstance(w, ExpandedWeight)]
    check_reductions(weights)
    values = [data, *held, *flat]

    def split(given: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
        mine = list(given[1 : 1 + len(held)])
        return given[0], mine[0] if lone else mine, list(given[1 + len(held) :])

    if packed:
        sizes = [int(n) for n in args[1].tolist()]

        def again(given: Sequence[Any]) -> Any:
            x, hx, ws = split(given)
            return func(x, args[1], hx, ws, *options)

        def single(given: Sequence[Any]) -> Any:
            x, hx, ws = split(given)
            return func(x, hx, ws, *options, False)

        call: Call = _Packed(again, single, values, sizes)
        return _run(call, lambda: again(call.values))

    dim = 0 if options[5] else 1
    size = data.shape[dim]
    for weight in weights:
        if weight.batch_size != size:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {size} with ExpandedWeight of batch size {weight.batch_size}"
            )

    def whole(given: Sequence[Any]) -> Any:
        x, hx, ws = split(given)
        return func(x, hx, ws, *options)

    call = Call(whole, values, [dim, *([1] * len(held)), *([None] * len(flat))], [dim, *([1] * len(held))])
    return _run(call, lambda: whole(call.values))


def _register() -> None:
    HANDLED_FUNCTIONS[F.linear] = _simple(_check_linear)
    for spatial in (1, 2, 3):
        rule = _simple(_check_convolution(spatial))
        for home in (F, torch):
            HANDLED_FUNCTIONS[getattr(home, f"conv{spatial}d")] = rule
    HANDLED_FUNCTIONS[F.embedding] = _simple(_check_embedding, _norms_are_made)
    HANDLED_FUNCTIONS[F.layer_norm] = _simple(_check_layer_norm)
    HANDLED_FUNCTIONS[F.group_norm] = _simple(_no_check)
    HANDLED_FUNCTIONS[F.instance_norm] = _simple(_no_check, _statistics_are_taken)
    for name in ("rnn_relu", "rnn_tanh", "lstm", "gru"):
        HANDLED_FUNCTIONS[getattr(torch, name)] = _recurrent


_register()
