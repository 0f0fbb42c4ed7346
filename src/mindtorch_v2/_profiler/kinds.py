"""The enumerations of PyTorch's profiler, with its numbers, and the options it takes."""

from __future__ import annotations

from collections.abc import Sequence

from .._numbered import Numbered


class DeviceType(Numbered):
    """Where an event happened; NPUs are PyTorch's `PrivateUse1`."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    MTIA = 19
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    PrivateUse1 = 20


class ProfilerActivity(Numbered):
    """What is recorded. `NPU` is another name of `PrivateUse1`."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5
    NPU = 5


class ProfilerState(Numbered):
    """How a profiler works; here always `KINETO`, with or without a device."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class RecordScope(Numbered):
    """What kind of code an event stands for."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class ActiveProfilerType(Numbered):
    """Which profiler runs."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


class ExperimentalConfig:
    """`torch._C._profiler._ExperimentalConfig`. Of its options, `verbose` (stacks on events), `capture_overload_names`
    and `trace_only` mean something here; one that would have to do something else is refused."""

    def __init__(
        self,
        profiler_metrics: Sequence[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Sequence[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        given = {
            "profiler_metrics": profiler_metrics,
            "profiler_measure_per_kernel": profiler_measure_per_kernel,
            "performance_events": performance_events,
            "enable_cuda_sync_events": enable_cuda_sync_events,
            "adjust_profiler_step": adjust_profiler_step,
            "disable_external_correlation": disable_external_correlation,
            "profile_all_threads": profile_all_threads,
            "record_python_gc_info": record_python_gc_info,
            "expose_kineto_event_metadata": expose_kineto_event_metadata,
            "custom_profiler_config": custom_profiler_config,
            "adjust_timestamps": adjust_timestamps,
        }
        for name, value in given.items():
            if value:
                raise NotImplementedError(f"_ExperimentalConfig(): argument '{name}' is not supported, got {value!r}")
        self.verbose = verbose
        self.capture_overload_names = capture_overload_names
        self.trace_only = trace_only

    def __copy__(self) -> ExperimentalConfig:
        return ExperimentalConfig(
            verbose=self.verbose, capture_overload_names=self.capture_overload_names, trace_only=self.trace_only
        )


class ProfilerConfig:
    """What a profiler was asked for."""

    def __init__(
        self,
        state: ProfilerState,
        report_input_shapes: bool,
        profile_memory: bool,
        with_stack: bool,
        with_flops: bool,
        with_modules: bool,
        experimental_config: ExperimentalConfig,
        trace_id: str = "",
    ) -> None:
        self.state = state
        self.report_input_shapes = report_input_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.trace_id = trace_id
