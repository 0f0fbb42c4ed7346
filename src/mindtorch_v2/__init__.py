"""PyTorch's Python API with PyTorch's semantics, for cpu, meta and npu: `import mindtorch_v2 as torch`.

Invariant: importing this touches no device and imports neither NumPy nor SciPy; operators get their public functions,
and submodules are imported, when first asked for.
"""

from __future__ import annotations as _annotations

import gc as _gc
import typing as _typing
from importlib import import_module as _import_module
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any as _Any

from . import _compiled  # noqa: F401 (the modules below are imported through it)

# isort: split
from . import _attach
from ._api import lazy_tables as _late
from ._api import load as _load
from ._api import public as _public
from ._autograd.record import NO_DERIVATIVE as _NO_DERIVATIVE
from ._backends import meta as _meta  # noqa: F401 (registers the device)
from ._backends.common import kernels as _kernels
from ._backends.common.functionalize import FUNCTIONALIZE_KERNEL as _FUNCTIONALIZE
from ._backends.common.lazy import RESOLVE as _LAZY_RESOLVER
from ._backends.cpu import load as _cpu_load
from ._backends.cpu.kernels import runtime as _cpu  # noqa: F401 (registers the device)
from ._backends.cpu.kernels.refusing import refusing as _refusing
from ._backends.npu import is_available as _npu_is_available  # noqa: F401 (registers the device)
from ._core_operators import CORE as _CORE
from ._device import device as device
from ._dispatch.keys import NESTED as _NESTED
from ._dispatch.op import RESOLVERS as _RESOLVERS
from ._dispatch.state import is_grad_enabled as is_grad_enabled
from ._dispatch.state import set_default_device as set_default_device
from ._dtype import *  # noqa: F403
from ._dtype import get_default_dtype as get_default_dtype
from ._dtype import set_default_dtype as set_default_dtype
from ._from_data import *  # noqa: F403
from ._from_data import constructed as _constructed
from ._layout import *  # noqa: F403
from ._native import get_num_threads as get_num_threads
from ._native import set_num_threads as set_num_threads
from ._overrides import OVERRIDER as _OVERRIDER
from ._overrides import TORCH_DISPATCHER as _TORCH_DISPATCHER
from ._size import Size as Size
from ._tensor import Tensor as Tensor
from ._tensor_class import define as _define_tensor_class
from ._version import __version__ as __version__

if _typing.TYPE_CHECKING:
    from . import _C as _C
    from ._creation import *  # noqa: F403
    from ._finfo import finfo as finfo
    from ._finfo import iinfo as iinfo
    from .autograd import enable_grad as enable_grad
    from .autograd import inference_mode as inference_mode
    from .autograd import no_grad as no_grad
    from .autograd import set_grad_enabled as set_grad_enabled
    from .autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled

# Public names that live in modules nobody needs at import.
_LAZY = {
    "sparse_coo_tensor": "_sparse.construct",
    "sparse_compressed_tensor": "_sparse.construct",
    "sparse_csr_tensor": "_sparse.construct",
    "sparse_csc_tensor": "_sparse.construct",
    "sparse_bsr_tensor": "_sparse.construct",
    "sparse_bsc_tensor": "_sparse.construct",
    "_validate_sparse_coo_tensor_args": "_sparse.construct",
    "_validate_sparse_compressed_tensor_args": "_sparse.construct",
    "_validate_sparse_csr_tensor_args": "_sparse.construct",
    "_validate_sparse_csc_tensor_args": "_sparse.construct",
    "_validate_sparse_bsr_tensor_args": "_sparse.construct",
    "_validate_sparse_bsc_tensor_args": "_sparse.construct",
    "hspmm": "_sparse.methods",
    "hsmm": "_sparse.methods",
    "dsmm": "_sparse.methods",
    "smm": "_sparse.methods",
    "sspaddmm": "_sparse.methods",
    "_coalesce": "_sparse.methods",
    "resize_as_sparse_": "_sparse.methods",
    "_nested_compute_contiguous_strides_offsets": "_ragged.functions",
    "_nested_from_padded": "_ragged.functions",
    "_nested_from_padded_and_nested_example": "_ragged.functions",
    "_nested_from_padded_tensor": "_ragged.functions",
    "_nested_get_jagged_dummy": "_ragged.functions",
    "_nested_get_lengths": "_ragged.functions",
    "_nested_get_max_seqlen": "_ragged.functions",
    "_nested_get_min_seqlen": "_ragged.functions",
    "_nested_get_offsets": "_ragged.functions",
    "_nested_get_ragged_idx": "_ragged.functions",
    "_nested_get_values": "_ragged.functions",
    "_nested_get_values_copy": "_ragged.functions",
    "_nested_tensor_from_mask": "_ragged.functions",
    "_nested_tensor_from_mask_left_aligned": "_ragged.functions",
    "_nested_tensor_from_tensor_list": "_ragged.functions",
    "_nested_tensor_softmax_with_shape": "_ragged.functions",
    "_nested_view_from_buffer": "_ragged.functions",
    "_nested_view_from_buffer_copy": "_ragged.functions",
    "_nested_view_from_jagged": "_ragged.functions",
    "_nested_view_from_jagged_copy": "_ragged.functions",
    "UntypedStorage": "_storage",
    "TypedStorage": "_typed_storage",
    "from_dlpack": "_dlpack",
    "to_dlpack": "_dlpack",
    "set_printoptions": "_printing",
    "printoptions": "_printing",
    "Generator": "_random",
    "default_generator": "_random",
    "manual_seed": "_random",
    "seed": "_random",
    "initial_seed": "_random",
    "get_rng_state": "_random",
    "set_rng_state": "_random",
    "functionalize": "_dispatch.functionalize",
    "promote_types": "_types",
    "result_type": "_types",
    "can_cast": "_types",
    "is_tensor": "_types",
    "is_storage": "_types",
    "is_floating_point": "_types",
    "is_complex": "_types",
    "is_nonzero": "_types",
    "numel": "_types",
    "typename": "_types",
    "get_default_device": "_types",
    "set_default_tensor_type": "_types",
    "index_put": "_types",
    "nonzero": "_types",
    "einsum": "functional",
    "broadcast_shapes": "functional",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "set_anomaly_enabled": "autograd.anomaly_mode",
    "tensordot": "functional",
    "unique": "functional",
    "unique_consecutive": "functional",
    "block_diag": "functional",
    "cartesian_prod": "functional",
    "chain_matmul": "functional",
    "gradient": "functional",
    "unravel_index": "functional",
    "lu": "functional",
    "stft": "functional",
    "istft": "functional",
    "empty_permuted": "functional",
    "AcceleratorError": "_backends.npu.errors",
    "Tag": "_tags",
    "classproperty": "_utils_names",
    "get_file_path": "_utils_names",
    "thread_safe_generator": "random",
    "cond": "_higher_order_ops",
    "while_loop": "_higher_order_ops",
    "lobpcg": "_lobpcg",
    "svd_lowrank": "_lowrank",
    "pca_lowrank": "_lowrank",
    "resize_as_": "_ops.inplace_views",
    "as_strided_": "_ops.inplace_views",
    "detach_": "_ops.inplace_views",
    "index_put_": "_types",
    "OutOfMemoryError": "_backends.npu.errors",
    "_sobol_engine_draw": "_sobol",
    "_sobol_engine_ff_": "_sobol",
    "_sobol_engine_initialize_state_": "_sobol",
    "_sobol_engine_scramble_": "_sobol",
    "ops": "_operators",
    "autocast": "amp",
    "GradScaler": "amp",
    "PyTorchFileReader": "_serialization.reader",
    "save": "serialization",
    "load": "serialization",
    "compile": "_compile",
    "_disable_dynamo": "_compile",
    "Future": "futures",
    "ScriptFunction": "jit",
    "ScriptMethod": "jit",
    "ScriptModule": "jit",
    "vmap": "func",
    "SymInt": "_symbolic_types",
    "SymFloat": "_symbolic_types",
    "SymBool": "_symbolic_types",
}
# The same by module, where a module has many.
for _module, _names in {
    "_autocast": (
        "is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype "
        "is_autocast_cache_enabled set_autocast_cache_enabled autocast_increment_nesting "
        "autocast_decrement_nesting clear_autocast_cache is_autocast_cpu_enabled set_autocast_cpu_enabled "
        "is_autocast_ipu_enabled set_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_xla_enabled "
        "get_autocast_cpu_dtype set_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_gpu_dtype "
        "get_autocast_ipu_dtype set_autocast_ipu_dtype get_autocast_xla_dtype set_autocast_xla_dtype"
    ),
    "_sequences": "bartlett_window blackman_window hamming_window hann_window kaiser_window range",
    "_symbolic": (
        "sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max "
        "sym_min sym_not sym_sqrt sym_sum _assert _check _check_index _check_is_size _check_not_implemented "
        "_check_tensor_all _check_tensor_all_with _check_type _check_value _check_with _sym_sqrt _sym_cos "
        "_sym_cosh _sym_sin _sym_sinh _sym_tan _sym_tanh _sym_asin _sym_acos _sym_atan _sym_log2"
    ),
    "_streams": "Event Stream",
    "_c_names": "_nnpack_available",
    "_registrations": "_register_device_module",
    "_finfo": "finfo iinfo",
    "autograd.grad_mode": "enable_grad inference_mode is_inference_mode_enabled no_grad set_grad_enabled",
    "_C": (
        "DisableTorchFunction DisableTorchFunctionSubclass AnyType BoolType DictType FloatType Graph IntType "
        "InterfaceType ListType NoneType NumberType OptionalType ScriptDict ScriptList ScriptObject StringType "
        "TensorType TupleType UnionType FunctionSchema DispatchKey DispatchKeySet ExcludeDispatchKeyGuard "
        "Block Node Type Value"
    ),
    "_ops.determinism": (
        "use_deterministic_algorithms are_deterministic_algorithms_enabled set_deterministic_debug_mode "
        "is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode"
    ),
    "backends._precision": "get_float32_matmul_precision set_float32_matmul_precision",
    "_classes": "classes",
    "_removed": "eig lstsq matrix_rank solve symeig",
    "_utils_names": "_import_dotted_name",
    "_questions": (
        "_is_functional_tensor is_same_size is_signed is_inference is_distributed get_device is_vulkan_available "
        "compiled_with_cxx11_abi get_device_module get_num_interop_threads set_num_interop_threads "
        "set_flush_denormal set_warn_always is_warn_always_enabled has_lapack has_mkl has_openmp has_spectral "
        "_running_with_deploy"
    ),
    "_storage_classes": (
        "from_file BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage "
        "DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage Storage"
    ),
}.items():
    _LAZY.update(dict.fromkeys(_names.split(), _module))
_SUBMODULES = (
    "_utils",
    "_C",
    "_higher_order_ops",
    "_VF",
    "__config__",
    "__future__",
    "_custom_op",
    "_custom_ops",
    "_decomp",
    "_dynamo",
    "_export",
    "_functorch",
    "_guards",
    "_inductor",
    "_jit_internal",
    "_library",
    "_opaque_base",
    "_prims",
    "_prims_common",
    "_refs",
    "_subclasses",
    "_linalg_utils",
    "_lobpcg",
    "_logging",
    "_lowrank",
    "_tensor_str",
    "_utils_internal",
    "_vendor",
    "_vmap_internals",
    "accelerator",
    "amp",
    "ao",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "npu",
    "onnx",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "torch_version",
    "types",
    "utils",
    "version",
    "xpu",
)
_TENSOR_TYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}

# Second names.
_SAME = {"spmm": "mm", "saddmm": "sspaddmm"}

newaxis = None

_RESOLVERS.python = _OVERRIDER
_RESOLVERS.torch_dispatch = _TORCH_DISPATCHER
_RESOLVERS.no_derivative = _NO_DERIVATIVE
_RESOLVERS.lazy = _LAZY_RESOLVER
_RESOLVERS.functionalize = _FUNCTIONALIZE
_define_tensor_class(Tensor, _constructed)
_RESOLVERS.mixed = _kernels.MIXED
_RESOLVERS.derived = _kernels.derived
_RESOLVERS.refusing = _refusing


def _sparse_kernel(op: _Any, keys: _Any) -> _Any:
    """The kernel for a call with a sparse or nested tensor; loads what knows it."""
    if keys & _NESTED:
        from ._ragged.table import find as nested

        return nested(op, keys)
    from ._sparse.table import find

    return find(op, keys)


_RESOLVERS.sparse = _sparse_kernel


def _start() -> None:
    """Declare the operators. All of it stays, so collecting garbage in the meantime would only take time."""
    collects = _gc.isenabled()
    _gc.disable()
    try:
        _load.load_tables()
        _cpu_load.load_kernels()
        _public.install_core(_CORE)
        _attach.attach(Tensor)
        _public.install_methods(Tensor)
        _late.install_methods(Tensor)
        globals().update(_attach.functions())
    finally:
        if collects:
            _gc.enable()


_start()
_FUNCTIONS = {name: ops for name, ops in _public.by_name().items() if any(o.row.function for o in ops)}


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        value: _Any = getattr(_import_module("." + _LAZY[name], __package__), name)
    elif name in _SUBMODULES:
        value = _import_module("." + name, __package__)
    elif name in ("_tensor_classes", "set_vital"):
        from . import _registrations

        # Asking for `set_vital` warns each time.
        return _registrations.tensor_classes() if name == "_tensor_classes" else _registrations.set_vital()
    elif name in _TENSOR_TYPES:
        from ._legacy import tensor_type

        value = tensor_type(name, globals()[_TENSOR_TYPES[name]])
    elif name in _attach.FACTORIES:
        value = _attach.factory(name)
    elif name in _FUNCTIONS:
        value = _public.function(name, _FUNCTIONS[name])
    elif name in _late.FUNCTIONS:
        value = _late.function(name)
    elif name in _SAME:
        value = getattr(_import_module(__name__), _SAME[name])
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *_attach.FACTORIES, *_FUNCTIONS, *_LAZY, *_SUBMODULES, *_TENSOR_TYPES, *_late.FUNCTIONS, *_SAME}
    )
