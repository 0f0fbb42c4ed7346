"""Names of `torch._C` that only PyTorch's own modules and tests, and what was made after them, ask for."""

from __future__ import annotations

import functools
import warnings
import weakref
from enum import Enum
from typing import Any

from ._batching.loop import FALLBACK
from ._dispatch.keys import CONJUGATE, FORWARD, NEGATIVE, PYTHON
from ._dispatch.state import LOCAL, NO_TORCH_FUNCTION, modes, set_modes
from ._ops.determinism import STATE as DETERMINISM
from ._ops.rules.pointwise import broadcast_shapes
from ._size import Size
from ._tensor_base import TensorBase, requires_grad


def _infer_size(*args: Any) -> Size:
    """The shape that two shapes broadcast to."""
    if len(args) != 2:
        raise RuntimeError("expected exactly 2 arguments")
    for i, size in enumerate(args):
        if not isinstance(size, Size):
            raise RuntimeError(f"expected a torch.Size as argument {i + 1}")
    return Size(broadcast_shapes(tuple(args[0]), tuple(args[1])))


def _storage_id(arg0: Any) -> int:
    """A number that tensors have in common exactly when they share a storage."""
    if not isinstance(arg0, TensorBase):
        raise TypeError(
            "_storage_id(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: torch.Tensor) -> int\n\nInvoked with: {arg0!r}"
        )
    return id(arg0._storage)


class _WeakTensorRef:
    """Asks whether a tensor is still there without keeping it."""

    def __init__(self, tensor: TensorBase) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._ref() is None


class _EnableTorchFunction:
    """`__torch_function__` is asked again, inside a block that hid it, from now until this object goes."""

    def __init__(self) -> None:
        self._before: int | None = modes()
        set_modes(self._before & ~(NO_TORCH_FUNCTION | PYTHON << 32))

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        before, self._before = self._before, None
        if before is not None:
            set_modes(before)

    def __del__(self) -> None:
        self.__exit__()


def _is_alias_of(arg0: Any, arg1: Any) -> bool:
    """Whether two tensors see the same memory."""
    if not (isinstance(arg0, TensorBase) and isinstance(arg1, TensorBase)):
        raise TypeError("_is_alias_of(): two tensors are needed")
    return arg0._storage is arg1._storage


def _set_conj(tensor: Any, conj: bool) -> None:
    """Say whether a tensor is to be read conjugated."""
    if conj and not tensor._dtype.is_complex:
        raise RuntimeError(f"_set_conj: expected a complex tensor, got one of type {tensor._dtype}")
    tensor._keys = (tensor._keys & ~CONJUGATE) | (CONJUGATE if conj else 0)


def _set_neg(tensor: Any, neg: bool) -> None:
    """Say whether a tensor is to be read with the other sign."""
    tensor._keys = (tensor._keys & ~NEGATIVE) | (NEGATIVE if neg else 0)


# Functions that PyTorch has here and not in `torch`.
_ROWS_ALONE = frozenset({"__and__", "__lshift__", "__or__", "__rshift__", "__xor__", "unique_dim"})


def row_function(name: str) -> Any:
    """The function of an operator, made from its rows."""
    from ._api import overloads, public
    from ._dispatch import registry

    row = overloads.row_base(name)
    if registry.find(row) is None:
        registry.find(f"{row}.Tensor")
    ops = registry.overloads(row)
    built = public.build(name, ops)
    names = [argument.name for argument in ops[0].schema.args]
    return _unreduced(built, names.index("reduction")) if "reduction" in names else built


def _unreduced(function: Any, place: int) -> Any:
    """A loss as PyTorch's parser of arguments makes it, which cannot read the default in the schema: not reduced."""

    @functools.wraps(function)
    def loss(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place:
            kwargs.setdefault("reduction", 0)
        return function(*args, **kwargs)

    return loss


class _VariableFunctionsClass:
    """PyTorch's functions on tensors from C++: the functions of `torch` that are made from operators."""

    def __getattr__(self, name: str) -> Any:
        import mindtorch_v2 as torch

        if name in _ROWS_ALONE:
            found = self.__dict__[name] = row_function(name)
            return found
        if not name.startswith("__") and callable(getattr(torch, name, None)):
            return getattr(torch, name)
        raise AttributeError(f"type object 'torch._C._VariableFunctions' has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted(_function_names() | _ROWS_ALONE)


def _function_names() -> set[str]:
    import mindtorch_v2 as torch

    from ._api import lazy_tables

    return {*torch._FUNCTIONS, *lazy_tables.FUNCTIONS}


_VariableFunctions = _VariableFunctionsClass()


class _ConvBackend(Enum):
    """The libraries that PyTorch computes convolutions with. Here all are computed by kernels of the package's own."""

    CudaDepthwise2d = 0
    CudaDepthwise3d = 1
    Cudnn = 2
    CudnnTranspose = 3
    Empty = 4
    Miopen = 5
    MiopenDepthwise = 6
    MiopenTranspose = 7
    Mkldnn = 8
    MkldnnEmpty = 9
    NnpackSpatial = 10
    Overrideable = 11
    Slow2d = 12
    Slow3d = 13
    SlowDilated2d = 14
    SlowDilated3d = 15
    SlowTranspose2d = 16
    SlowTranspose3d = 17
    Winograd3x3Depthwise = 18
    Xnnpack2d = 19
    Mps = 20
    MpsTranspose = 21


def _select_conv_backend(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    bias_sizes: Any = None,
) -> _ConvBackend:
    """The kind of a convolution, by the name that PyTorch without libraries has for it. All kinds are computed by the
    package's own kernels."""
    if input.numel() == 0:
        return _ConvBackend.Empty
    volume = input.dim() == 5
    if transposed:
        return _ConvBackend.SlowTranspose3d if volume else _ConvBackend.SlowTranspose2d
    if any(d != 1 for d in dilation):
        return _ConvBackend.SlowDilated3d if volume else _ConvBackend.SlowDilated2d
    return _ConvBackend.Slow3d if volume else _ConvBackend.Slow2d


def _nnpack_available() -> bool:
    """Whether NNPACK, a library for convolutions, is there."""
    return False


# -- objects of a thread ----------------------------------------------------------------------------------------------
def _stashed() -> dict[str, Any]:
    kept: dict[str, Any] | None = getattr(LOCAL, "stashed", None)
    if kept is None:
        kept = LOCAL.stashed = {}
    return kept


def _stash_obj_in_tls(key: str, arg: Any) -> None:
    """Keep an object for this thread, and for the backward passes it runs."""
    _stashed()[key] = arg


def _get_obj_in_tls(key: str) -> Any:
    """What was kept under a name."""
    if not _is_key_in_tls(key):
        raise RuntimeError("TLS does not contain key")
    return _stashed()[key]


def _is_key_in_tls(key: str) -> bool:
    """Whether something is kept under a name."""
    return key in _stashed()


# -- settings and warnings --------------------------------------------------------------------------------------------
def _get_deterministic_fill_uninitialized_memory() -> bool:
    """`torch.utils.deterministic.fill_uninitialized_memory`"""
    return DETERMINISM.fill


def _set_deterministic_fill_uninitialized_memory(mode: bool) -> None:
    if not isinstance(mode, bool):
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    DETERMINISM.fill = mode


def _warn() -> None:
    """For tests of warnings."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """For tests of warnings."""
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Whether operators of this thread compute tangents."""
    hidden = int(FORWARD) << 32
    set_modes(modes() & ~hidden if enabled else modes() | hidden)


def _set_grad_enabled(enabled: bool) -> None:
    """Whether operators of this thread are recorded."""
    from .autograd.grad_mode import set_grad_enabled

    set_grad_enabled(enabled)


def _is_torch_function_all_disabled() -> bool:
    """Whether neither subclasses nor modes are asked about functions in this thread."""
    from ._function_state import _get_torch_function_state, _TorchFunctionState

    return bool(_get_torch_function_state() == _TorchFunctionState.ALL_DISABLED)


# -- addresses --------------------------------------------------------------------------------------------------------
def _data_address(tensor: TensorBase) -> int:
    """Where the storage of a tensor begins; asking does not make the memory the tensor's own."""
    return int(tensor._storage.ptr)


def _storage_address(tensor: TensorBase) -> int:
    """A number of the tensor's storage object."""
    return id(tensor._storage)


def _is_cow_tensor(tensor: TensorBase) -> bool:
    """Whether the memory is copied by the first write, because lazy clones share it."""
    return bool(getattr(tensor._storage, "shared", False))


def _get_cpu_allow_fp16_reduced_precision_reduction() -> bool:
    """Whether sums of half floats are kept in half: never, kernels add in float."""
    return False


def _set_cpu_allow_fp16_reduced_precision_reduction(arg: bool) -> None:
    if not isinstance(arg, bool):
        raise RuntimeError(f"set_allow_fp16_reduction_cpu expects a bool, but got {type(arg).__name__}")
    if arg:
        raise RuntimeError("Float16 arithmetic is not supported by the CPU!")


# -- TorchScript, signals ---------------------------------------------------------------------------------------------
class _Script:
    """Settings of TorchScript: kept, since tools save and restore them; nothing is scripted."""

    kept: dict[str, Any] = {"executor": True, "mode": True, "optimize": True, "runs": 1, "hooks": (None, None)}


def _exchanged(name: str, value: Any) -> Any:
    before, _Script.kept[name] = _Script.kept[name], value
    return before


def _jit_set_profiling_executor(value: bool) -> bool:
    """Keep a setting; the one before."""
    return bool(_exchanged("executor", value))


def _jit_set_profiling_mode(value: bool) -> bool:
    """Keep a setting; the one before."""
    return bool(_exchanged("mode", value))


def _jit_set_num_profiled_runs(value: int) -> int:
    """Keep a setting; the one before."""
    return int(_exchanged("runs", value))


def _jit_set_emit_hooks(module_hook: Any, function_hook: Any) -> None:
    """Keep functions that PyTorch calls with what it compiled."""
    _exchanged("hooks", (module_hook, function_hook))


def _jit_get_emit_hooks() -> tuple[Any, Any]:
    """The functions that were kept."""
    hooks: tuple[Any, Any] = _Script.kept["hooks"]
    return hooks


def _jit_clear_class_registry() -> None:
    """Forget compiled classes, of which there are none."""


def _get_graph_executor_optimize(new_settings: bool | None = None) -> bool:
    """Keep a setting, if one is given; the one before."""
    return bool(_Script.kept["optimize"] if new_settings is None else _exchanged("optimize", new_settings))


def _set_print_stack_traces_on_fatal_signal(print_stack: bool) -> None:
    """Show where a process was that a signal ends."""
    import faulthandler

    if print_stack:
        faulthandler.enable()
    else:
        faulthandler.disable()


# -- operators from outside -------------------------------------------------------------------------------------------
def _get_autograd_fallback_mode() -> str:
    """What is done with an operator that nobody gave a derivative: nothing is said, its parts are recorded."""
    return "nothing"


def _set_autograd_fallback_mode(mode: str) -> None:
    """PyTorch can warn of such an operator, or refuse it."""
    if mode not in ("nothing", "warn", "error"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    if mode != "nothing":
        raise NotImplementedError(
            f"torch._C._set_autograd_fallback_mode({mode!r}): the parts of an operator without a derivative are "
            "recorded here"
        )


def _any_requires_grad(*args: Any, **kwargs: Any) -> bool:
    """Whether a tensor among the arguments, or in a list among them, requires grad."""
    given = [t for v in (*args, *kwargs.values()) for t in (v if isinstance(v, (list, tuple)) else (v,))]
    return any(isinstance(t, TensorBase) and requires_grad(t) for t in given)


def _any_output_is_alias_to_input_or_output(args: Any, kwargs: Any, outs: Any) -> bool:
    """Whether a result shares memory with an argument or another result."""
    seen = {id(t._storage) for t in _tensors_in((args, kwargs))}
    for t in _tensors_in(outs):
        if id(t._storage) in seen:
            return True
        seen.add(id(t._storage))
    return False


def _tensors_in(value: Any) -> list[Any]:
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _tensors_in(v)] if isinstance(value, (list, tuple)) else []


def _jit_get_schemas_for_operator(op_name: str) -> list[Any]:
    """The schemas of the overloads of `namespace::name`."""
    packet = _packet(op_name)
    return [] if packet is None else [getattr(packet, name)._schema for name in packet.overloads()]


def _jit_resolve_packet(op_name: str, *args: Any, **kwargs: Any) -> str:
    """The name of the overload of `namespace::name` that a call of it takes."""
    from ._operators import _bound, overload_for

    packet = _packet(op_name)
    for name in [] if packet is None else packet.overloads():
        op = getattr(packet, name)._op
        bound = _bound(op, args, kwargs)
        if bound is not None:
            return str(overload_for(op, bound)._overloadname)
    raise RuntimeError(f"{op_name}: no overload takes these arguments")


def _packet(op_name: str) -> Any:
    from ._operators import ops

    namespace, _, name = op_name.partition("::")
    return getattr(getattr(ops, namespace), name, None)


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """A switch that PyTorch keeps for its tests: `vmap` warns of loops whatever it says."""
    FALLBACK.displayed = enabled


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    return FALLBACK.displayed
