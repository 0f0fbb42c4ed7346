"""Public names of PyTorch that are not here, by module and reason; the one table of them.

A module as a whole stands in `MODULES`; names of a module that is here stand in `NAMES`, under the module's name below
`torch` ("" is `torch` itself, "Tensor" the class). A name that is written leaves this table, which
`test_namespace` sees to.
"""

from __future__ import annotations

# -- modules ------------------------------------------------------------------------------------------------------
_COMPILER = "compiling, tracing and exporting programs"
_DEVICES = "devices and libraries that are not here, and the switches for them"
_FORWARD = "forward-mode derivatives and function transforms"

MODULES: dict[str, str] = {}

# -- names --------------------------------------------------------------------------------------------------------
_SCRIPT = (
    "AggregationType AliasDb Argument ArgumentSpec AVG AwaitType BenchmarkConfig BenchmarkExecutionStats "
    "BufferDict CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType "
    "ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType EnumType ErrorReport "
    "ExecutionPlan FatalError FileCheck FutureType Gradient GraphExecutorState IODescriptor InferredType JITException "
    "LiteScriptModule LockingLogger LoggerBase ModuleDict NoopLogger OperatorInfo ParameterDict PyObjectType "
    "PyTorchFileWriter RRefType SUM ScriptClass ScriptClassFunction ScriptDictIterator ScriptDictKeyIterator "
    "ScriptListIterator ScriptModuleSerializer ScriptObjectProperty SerializationStorageContext StaticModule "
    "StreamObjType SymBoolType SymIntType ThroughputBenchmark TracingState Use fork import_ir_module "
    "import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema parse_type_comment "
    "unify_type_list wait"
)
_QUANTIZED = (
    "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage quantization quantized_gru quantized_lstm"
)

NAMES: dict[str, dict[str, str]] = {
    "distributed": {"PyTorch's own logs, settings and helpers": "c10d_logger config logging_handlers remote_device"},
    "sparse": {
        "two of four: for CUDA": "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT "
        "SparseSemiStructuredTensorCUTLASS semi_structured to_sparse_semi_structured",
        "types, imports and old tensor classes that show": "DType DimOrDims TYPE_CHECKING Tensor torch",
    },
    "onnx": {_COMPILER: "ops"},
    "utils.collect_env": {
        _DEVICES: (
            "NVIDIA_PATTERNS ONEAPI_PATTERNS get_cuda_module_loading_config get_cudnn_version get_gpu_info "
            "get_intel_gpu_detected get_intel_gpu_driver_version get_intel_gpu_onboard get_linux_pkg_version "
            "get_lsb_version get_mac_version get_nvidia_driver_version get_nvidia_smi get_running_cuda_version "
            "get_windows_version is_xnnpack_available"
        )
    },
    "": {
        "called by PyTorch itself when it is imported": "prepare_multiprocessing_environment",
        _COMPILER: f"{_SCRIPT} profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
        "quantized tensors": _QUANTIZED,
        "the inside of PyTorch's library": "PRIVATE_OPS StorageBase "
        "TYPE_CHECKING USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH cpp init_num_threads windows",
    },
    "Tensor": {"rows without a method of that name": "index"},
    "accelerator": {_DEVICES: "Graph"},
    "autograd.graph": {_DEVICES: "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch"},
    "backends": {_DEVICES: "xnnpack"},
    "cuda": {_DEVICES: "GreenContext nccl nvtx profiler sparse tunable"},
    "func": {_FORWARD: "rearrange"},
    "linalg": {"texts for documentation": "common_notes"},
    "monitor": {"an import that shows": "TYPE_CHECKING"},
    "mps": {_DEVICES: "profiler"},
    "nn": {"quantized tensors": "intrinsic qat quantizable quantized"},
    "nn.functional": {
        "imports and texts that show": "TYPE_CHECKING reproducibility_notes sparse_support_notes tf32_notes"
    },
    "utils": {
        "the inside of PyTorch's library": "ThroughputBenchmark cmake_prefix_path cpp_backtrace "
        "get_cpp_backtrace throughput_benchmark"
    },
    "xpu": {_DEVICES: "change_current_allocator graph make_graphed_callables streams use_mem_pool"},
}


def left_out(owner: str) -> set[str]:
    """Names of a module or class that are not here on purpose; whole modules inside it among them."""
    named = {name for names in NAMES.get(owner, {}).values() for name in names.split()}
    inside = f"{owner}." if owner else ""
    return named | {m[len(inside) :] for m in MODULES if m.startswith(inside) and "." not in m[len(inside) :]}
