"""The few private names that other code expects to find in `torch._C`."""

from __future__ import annotations

import sys
from typing import Any

from .. import _native
from .._autograd import engine as _engine
from .._dispatch.keys import AUTOCASTS, AUTOGRAD
from .._dispatch.state import exclude, modes, set_modes
from .._dispatch.state import is_grad_enabled as is_grad_enabled
from .._overrides import DisableTorchFunction as DisableTorchFunction
from .._overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .._overrides import _disabled_torch_dispatch_impl as _disabled_torch_dispatch_impl
from .._overrides import _disabled_torch_function_impl as _disabled_torch_function_impl
from .._overrides import redispatch_function
from .._tensor_base import TensorBase as TensorBase

_TensorBase = TensorBase
_TensorMeta = _native.TensorMeta
_skip_one_hop_torch_function = redispatch_function
_current_graph_task_id = _engine.current_pass
_will_engine_execute_node = _engine.will_run


def _is_any_autocast_enabled() -> bool:
    """Whether this thread autocasts on some device type that has tensors here."""
    return bool(modes() & AUTOCASTS)


def _DisableTorchDispatch() -> Any:
    """A context in which neither subclasses nor modes take operators over."""
    from .._torch_dispatch import DisableTorchDispatch

    return DisableTorchDispatch()


class _AutoDispatchBelowAutograd:
    """A context in which operators run without being recorded, whatever the grad mode says to others."""

    def __enter__(self) -> None:
        self.before = exclude(AUTOGRAD)

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


def _npu_aclnn_available() -> bool:
    """Whether Ascend's operator libraries can be loaded here; never raises."""
    from .._backends import npu

    return npu.aclnn_available()


def _npu_aclnn_symbols_ok() -> bool:
    """Whether every function the NPU backend's core needs is found; never raises."""
    from .._backends import npu

    return npu.aclnn_symbols_ok()


# -- what PyTorch defines in C++ and other code asks for here -----------------------------------------------------
# Names of the package's top level, found there when asked for.
_TOP = frozenset(
    """Event Generator OutOfMemoryError Size Stream
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache default_generator device dtype finfo
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype
    get_default_dtype get_num_interop_threads get_num_threads iinfo is_anomaly_check_nan_enabled is_anomaly_enabled
    is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled
    is_autocast_xla_enabled is_inference_mode_enabled layout memory_format set_anomaly_enabled
    set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
    set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
    set_autocast_xla_enabled set_flush_denormal set_num_interop_threads set_num_threads""".split()
)
_ELSEWHERE = {
    **dict.fromkeys(
        """_ConvBackend _EnableTorchFunction _VariableFunctions _WeakTensorRef _infer_size _is_alias_of
        _select_conv_backend _set_conj _set_neg _storage_id _stash_obj_in_tls _get_obj_in_tls _is_key_in_tls
        _get_deterministic_fill_uninitialized_memory _set_deterministic_fill_uninitialized_memory _warn
        _warn_deprecation _set_fwd_grad_enabled _set_grad_enabled _is_torch_function_all_disabled _data_address
        _debug_only_are_vmap_fallback_warnings_enabled _debug_only_display_vmap_fallback_warnings
        _any_output_is_alias_to_input_or_output _any_requires_grad _get_autograd_fallback_mode
        _set_autograd_fallback_mode _jit_get_schemas_for_operator _jit_resolve_packet
        _storage_address _is_cow_tensor _get_graph_executor_optimize _jit_set_num_profiled_runs
        _jit_clear_class_registry _jit_get_emit_hooks _jit_set_emit_hooks
        _jit_set_profiling_executor _jit_set_profiling_mode _set_print_stack_traces_on_fatal_signal
        _get_cpu_allow_fp16_reduced_precision_reduction _set_cpu_allow_fp16_reduced_precision_reduction""".split(),
        "_c_names",
    ),
    **dict.fromkeys(
        """_TorchFunctionState _get_function_stack_at _get_torch_function_state _len_torch_function_stack
        _pop_torch_function_stack _push_on_torch_function_stack _set_torch_function_state""".split(),
        "_function_state",
    ),
    "_is_view_replay_enabled": "autograd.grad_mode",
    **dict.fromkeys(
        """DispatchKey DispatchKeySet ExcludeDispatchKeyGuard _EnablePythonDispatcher _ExcludeDispatchKeyGuard
        _dispatch_call_boxed _dispatch_find_schema_or_throw _dispatch_has_kernel _dispatch_has_kernel_for_dispatch_key
        _dispatch_isTensorSubclassLike _dispatch_key_name
        _dispatch_key_parse _dispatch_key_set _dispatch_keys _dispatch_tls_local_exclude_set""".split(),
        "_dispatch_keys",
    ),
    "FunctionSchema": "_operators",
    **dict.fromkeys("_SchemaArgType _SchemaArgument _SchemaInfo _overlaps parse_schema".split(), "_schema_info"),
    "Tag": "_tags",
    "_LinAlgError": "_ops.linalg",
    "Future": "futures",
    "PyTorchFileReader": "_serialization.reader",
    "PyTorchFileWriter": "_serialization.zip_streams",
}
# The build: no LAPACK, MKL or OpenMP is linked; what they would serve is written here.
has_lapack = True
has_mkl = has_openmp = False
has_spectral = True
_has_distributed = True
_has_mps = _has_xpu = _has_mtia = _has_cuda = False


class _Functions:
    """Functions that PyTorch has in C++, by the names they have there; generated code (`torch.fx`) speaks of them."""

    # Asked by who imports a module that is loaded.
    __spec__ = None

    def __init__(self, module: str, prefix: str = "", renamed: dict[str, str] | None = None) -> None:
        self.__name__ = f"torch._C._{module}"
        sys.modules[f"{__package__}._{module}"] = self  # type: ignore[assignment]
        self._module = module
        self._prefix = prefix
        self._renamed = renamed or {}

    def __getattr__(self, name: str) -> Any:
        from importlib import import_module

        if name.startswith("__") or not name.startswith(self._prefix):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        module = import_module("..nn.functional" if self._module == "nn" else f"..{self._module}", __package__)
        found = getattr(module, self._renamed.get(name, name[len(self._prefix) :]), None)
        if found is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return found


_NN_ROWS = frozenset(
    """_conv_depthwise2d _pad_circular _pad_enum _test_ambiguous_defaults _test_optional_filled_intlist
    _test_optional_floatlist _test_optional_intlist _test_string_default _test_warn_in_autograd
    _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d
    adaptive_max_pool3d binary_cross_entropy col2im conv_depthwise3d cross_entropy_loss elu flatten_dense_tensors
    fractional_max_pool2d fractional_max_pool3d gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh
    huber_loss im2col l1_loss leaky_relu max_pool2d_with_indices max_pool3d_with_indices max_unpool2d max_unpool3d
    mish mish_ mkldnn_linear mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd pad pad_sequence reflection_pad1d reflection_pad2d
    reflection_pad3d relu6 relu6_ replication_pad1d replication_pad2d replication_pad3d rrelu_with_noise
    rrelu_with_noise_ silu silu_ slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d
    slow_conv_transpose3d smooth_l1_loss soft_margin_loss thnn_conv2d unflatten_dense_tensors upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_trilinear3d""".split()
)


class _RowFunctions(_Functions):
    """Functions behind a module; those of operators take what the operator takes."""

    def __init__(self, module: str, rows: frozenset[str], prefix: str = "", renamed: dict[str, str] | None = None):
        super().__init__(module, prefix, renamed)
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        if name not in self._rows:
            return super().__getattr__(name)
        from .._c_names import row_function

        built = self.__dict__[name] = row_function(name)
        return built


class _NnFunctions(_RowFunctions):
    """`torch._C._nn`"""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """The arguments of `Tensor.to`: device, dtype, non_blocking, memory format."""
        from .._backends.common.convert import parse_to

        dtype, device, non_blocking, _, memory_format = parse_to(args, kwargs)
        return device, dtype, non_blocking, memory_format


_nn = _NnFunctions("nn", _NN_ROWS, renamed={"log_sigmoid": "logsigmoid"})
_linalg = _RowFunctions("linalg", frozenset({"_linalg_eigvals", "linalg__powsum"}), "linalg_")
_fft = _Functions("fft", "fft_")
_special = _Functions("special", "special_")


def _log_api_usage_once(event: str) -> None:
    """PyTorch counts who uses what if told to; nobody is told here."""


def _get_default_device() -> str:
    """The device type of tensors of the default type; `torch.set_default_device` is a mode, which this does not ask."""
    return "cpu"


def _are_functorch_transforms_active() -> bool:
    """Whether this thread is inside of a transform of `torch.func`."""
    from .._batching.level import transforms

    return bool(transforms())


def _get_cpu_capability() -> str:
    """The widest vector instructions that kernels use here."""
    from ..backends import cpu

    return cpu.get_cpu_capability()


def _get_privateuse1_backend_name() -> str:
    """What PyTorch calls `privateuseone` until it is renamed is `npu` from the start."""
    return "npu"


def _get_tracing_state() -> None:
    """Programs are never traced into scripts."""


def _is_tracing() -> bool:
    return False


# PyTorch's modules inside `_C` that are imported by name as well.
_MODULES = frozenset({"_autograd", "_distributed_c10d", "_functorch", "_profiler"})
# Classes of TorchScript, for `isinstance` and annotations: nothing is ever an instance.
_SCRIPT = frozenset(
    """AnyType Block BoolType DictType FloatType Graph IntType InterfaceType JITException ListType Node NoneType
    NumberType OptionalType ScriptDict ScriptFunction ScriptList ScriptMethod ScriptModule ScriptModuleSerializer
    ScriptObject StringType TensorType TupleType Type UnionType Value""".split()
)


def __getattr__(name: str) -> Any:
    import mindtorch_v2 as torch

    if name in _SCRIPT:
        from .._absent import classes

        globals().update(classes("torch", " ".join(_SCRIPT), "torch._C.{name}: programs are not scripted here"))
        return globals()[name]

    if name in _TOP:
        return getattr(torch, name)
    if name in _ELSEWHERE:
        from importlib import import_module

        return getattr(import_module(".." + _ELSEWHERE[name], __package__), name)
    if name in _MODULES:
        from importlib import import_module

        return import_module("." + name, __package__)
    if name == "_functions":
        from .._autograd.names import FUNCTIONS

        return FUNCTIONS
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
