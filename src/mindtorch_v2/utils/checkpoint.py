"""`torch.utils.checkpoint`: values are computed again in backward instead of being kept.

Invariant: without `use_reentrant` a frame holds the inputs of one call and an empty place for each value the call
saved; the first place that is asked for in a pass fills all of them by running the call again. With it the call is one
node of the graph, whose backward runs the call and a pass of its own.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mindtorch_v2 as torch

from .._autograd.engine import current_pass, runs_everything
from .._autograd.saved_hooks import KeptTensor
from .._dispatch.state import device_stack
from .._tensor_base import TensorBase
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "DefaultDeviceType",
    "GraphExecGroup",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_lib: Any = torch


# Names of this module that need dispatch modes, which other checkpoints do without.
_LATE = ("CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts")


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from . import _selective_checkpoint

        return getattr(_selective_checkpoint, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class CheckpointError(RuntimeError):
    """The call did not do the same when it was run again."""


class DefaultDeviceType:
    """The device whose random state is kept when no argument of a checkpoint is on a device other than the CPU."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "npu") -> None:
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        if not DefaultDeviceType._default_device_type:
            found = _lib.accelerator.current_accelerator(True)
            DefaultDeviceType._default_device_type = found.type if found else "cpu"
        return DefaultDeviceType._default_device_type


# -- random state -----------------------------------------------------------------------------------------------------
def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


def _infer_device_type(*args: Any) -> str:
    """The type of the devices the arguments are on."""
    found = [t.device.type for t in _tensors(args) if t.device.type != "cpu"]
    if len(set(found)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Device state will "
            "only be saved for devices of a single device type, and the remaining devices will be ignored. "
            "Consequently, if any checkpointed functions involve randomness, this may result in incorrect gradients. "
            "(Note that if CUDA devices are among the devices detected, it will be prioritized; otherwise, the first "
            f"device encountered will be selected.)\nDevice types: {sorted(set(found))} first device type: {found[0]}",
            stacklevel=3,
        )
    return found[0] if found else DefaultDeviceType.get_device_type()


def _is_initialized(device_type: str) -> bool:
    """Whether a device has a random state that may have been used."""
    module = None if device_type in ("cpu", "meta") else getattr(torch, device_type, None)
    return module is not None and bool(module.is_initialized())


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The devices the arguments are on, apart from the CPU, and the states of their generators."""
    devices = [t.get_device() for t in _tensors(args) if t.device.type not in ("cpu", "meta")]
    kind = _infer_device_type(*args)
    return devices, [getattr(torch, kind).get_rng_state(f"{kind}:{d}") for d in devices]


def set_device_states(devices: Iterable[int], states: Iterable[Any], *, device_type: str | None = None) -> None:
    kind = device_type or DefaultDeviceType.get_device_type()
    if kind != "meta":
        for d, state in zip(devices, states):
            getattr(torch, kind).set_rng_state(state, f"{kind}:{d}")


class _RandomState:
    """The generators as they were before a call; `restored` has them so for a block."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.kind = _infer_device_type(*args)
        self.cpu = _lib.get_rng_state()
        self.initialized = _is_initialized(self.kind)
        self.devices: list[int] = []
        self.states: list[Any] = []
        if self.initialized:
            self.devices, self.states = get_device_states(*args)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        cpu = _lib.get_rng_state()
        states = [getattr(torch, self.kind).get_rng_state(f"{self.kind}:{d}") for d in self.devices]
        try:
            _lib.set_rng_state(self.cpu)
            set_device_states(self.devices, self.states, device_type=self.kind)
            yield
        finally:
            _lib.set_rng_state(cpu)
            set_device_states(self.devices, states, device_type=self.kind)


class _Autocast:
    """Autocast of the CPU and of the arguments' device as it was before a call; `restored` has it so for a block."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        kinds = {"cpu", *(t.device.type for t in _tensors(args))}
        cache = torch.is_autocast_cache_enabled()
        self.states = [
            (kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind), cache)
            for kind in sorted(kinds)
            if torch.amp.is_autocast_available(kind)
        ]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for state in self.states:
                stack.enter_context(torch.autocast(*state))
            yield


# -- one node of the graph --------------------------------------------------------------------------------------------
def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """The tensors of a tuple cut from the graph, each requiring grad if it did; other values as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    out: list[Any] = []
    for x in inputs:
        if isinstance(x, TensorBase):
            cut: Any = _lib.Tensor.detach(x)
            cut.requires_grad = x.requires_grad
            out.append(cut)
        else:
            out.append(x)
    return tuple(out)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    if not any(x.requires_grad for x in inputs if isinstance(x, TensorBase)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """A call as one node, which keeps its inputs."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = _RandomState(args) if preserve_rng_state else None
        ctx.autocast = _Autocast(args)
        ctx.inputs = [None if isinstance(a, TensorBase) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, TensorBase)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_indices])
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        if not runs_everything():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[i] = t
        detached = detach_variable(tuple(inputs))
        random = contextlib.nullcontext() if ctx.random is None else ctx.random.restored()
        with random, torch.enable_grad(), ctx.autocast.restored():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, TensorBase):
            outputs = (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, args) if isinstance(o, TensorBase) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[x.grad if isinstance(x, TensorBase) else None for x in detached])


# -- values computed again --------------------------------------------------------------------------------------------
_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\u2011debug mode globally.
"""
_USED = object()


class _Groups(threading.local):
    """The group of this thread's backward passes."""

    current: GraphExecGroup | None = None


_GROUPS = _Groups()


class GraphExecGroup:
    """Inside, backward passes run a checkpointed call again once for all of them; no two may use the same saved value.
    Only for `use_reentrant=False`."""

    def __enter__(self) -> GraphExecGroup:
        if _GROUPS.current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_GROUPS.current}")
        _GROUPS.current = self
        return self

    def __exit__(self, *args: object) -> None:
        _GROUPS.current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _GROUPS.current


_OVERLAP = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute gradients) "
    "is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
)


class _Stop(Exception):
    """Everything that was saved has been computed again."""


class _Place:
    """Stands for a saved value; `values` has it by pass, once it was computed again, until it is taken."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}


class _Frame:
    """One call: how to run it again, and the places of what it saved (weakly: they die with their nodes)."""

    def __init__(
        self, recompute: Callable[..., Any], args: tuple[Any, ...], early_stop: bool, describe: Callable[[Any], Any]
    ) -> None:
        self.recompute = recompute
        self.args = [KeptTensor(a) if isinstance(a, TensorBase) else a for a in args]
        self.early_stop = early_stop
        self.describe = describe
        self.places: list[weakref.ref[_Place]] = []
        self.descriptions: list[Any] = []
        self.counts: dict[Any, int] = {}
        self.done: set[Any] = set()
        # Backward inside the call runs it again before it has ended: then the number of values says nothing.
        self.completed = False
        self.partial = False
        # What both runs did, where somebody wants to know.
        self.logs: Any = None

    def pack(self, t: Any) -> _Place:
        place = _Place()
        self.places.append(weakref.ref(place))
        with torch.no_grad():
            self.descriptions.append(self.describe(t))
        return place

    def unpack(self, place: _Place) -> Any:
        if self.logs is None:
            return self.value(place)
        try:
            return self.value(place)
        except CheckpointError as error:
            raise CheckpointError(self.logs.report()) from error

    def value(self, place: _Place) -> Any:
        group = _GROUPS.current
        number: Any = current_pass() if group is None else group
        if number == -1:
            number = object()
        if number not in self.done:
            self.run_again(number)
        found = place.values[number]
        if found is _USED:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{_OVERLAP if group is not None else ''}If you are calling ctx.saved_tensors in backward, make sure "
                "to do so only once. Otherwise please open an issue with details on your use case."
            )
        place.values[number] = _USED
        return found

    def run_again(self, number: Any) -> None:
        args = [a.unpack() if isinstance(a, KeptTensor) else a for a in self.args]
        self.counts[number] = 0

        def pack(t: Any) -> Any:
            return self.pack_again(number, t)

        try:
            with saved_tensors_hooks(pack, _same), torch.enable_grad():
                self.recompute(*args)
        except _Stop:
            pass
        self.done.add(number)
        self.compare(number)

    def pack_again(self, number: Any, t: Any) -> Any:
        t = t.detach() if t.requires_grad else t
        at = self.counts[number]
        self.counts[number] += 1
        if at >= len(self.places):
            if not self.completed:
                self.partial = True
                return t
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                f"forward pass.\n{_TIP}"
            )
        place = self.places[at]()
        if place is not None:
            place.values[number] = t
        if self.early_stop and at + 1 == len(self.places):
            raise _Stop
        return t

    def compare(self, number: Any) -> None:
        """Refuse what was computed again if it cannot be what was saved."""
        if self.partial:
            return
        if self.counts[number] != len(self.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.places)}\nNumber of tensors saved "
                f"during recomputation: {self.counts[number]}.\n{_TIP}"
            )
        different = ""
        for i, ref in enumerate(self.places):
            place = ref()
            if place is not None:
                now = self.describe(place.values[number])
                if now != self.descriptions[i]:
                    different += (
                        f"tensor at position {i}:\nsaved metadata: {self.descriptions[i]}\nrecomputed metadata: {now}\n"
                    )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}.\n{_TIP}"
            )


def _same(t: Any) -> Any:
    return t


def _metadata(t: Any) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


_DETERMINISM: dict[str, Callable[[Any], Any]] = {"default": _metadata, "none": lambda t: None}


class _Settings:
    """What blocks around checkpoints override; None leaves it to the call."""

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, whether running a call again ends once its last saved value is there."""
    before = _Settings.early_stop
    _Settings.early_stop = enable
    try:
        yield
    finally:
        _Settings.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, `debug` of all checkpoints."""
    before = _Settings.debug
    _Settings.debug = enabled
    try:
        yield
    finally:
        _Settings.debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts for the call and for running it again that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)` whose intermediate values are computed again in backward."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _run(function, args, kwargs, preserve, context_fn, determinism_check, debug, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def _run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    logs: Any = None
    if debug if _Settings.debug is None else _Settings.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        from ._selective_checkpoint import DebugLogs

        logs = DebugLogs()
        context_fn = logs.contexts
    describe = _DETERMINISM.get(determinism_check)
    if describe is None:
        raise ValueError(f"determinism_check should be one of {list(_DETERMINISM)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    random, autocast = _RandomState(args) if preserve else None, _Autocast(args)
    devices = device_stack()
    device_context: Any = devices[-1] if devices else contextlib.nullcontext()

    def recompute(*again: Any) -> None:
        state = contextlib.nullcontext() if random is None else random.restored()
        with state, autocast.restored(), recompute_context, device_context:
            function(*again, **kwargs)

    frame = _Frame(recompute, args, early_stop if _Settings.early_stop is None else _Settings.early_stop, describe)
    frame.logs = logs
    result: Any = _USED
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
    if result is _USED:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    frame.completed = True
    if random is not None and not random.initialized and _is_initialized(random.kind):
        raise RuntimeError(
            "PyTorch's device state was initialized in the forward pass of a Checkpoint, which is not allowed. Please "
            "open an issue if you need this feature."
        )
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """The functions one after the other, in segments that are checkpointed, all but the last."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, _lib.nn.Sequential):
        functions = list(functions.children())

    def segment(start: int, stop: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for function in functions[start:stop]:
                value = function(value)
            return value

        return forward

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            segment(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return segment(size * (segments - 1), len(functions))(input)
