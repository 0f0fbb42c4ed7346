"""Mixed precision, deterministic mode, flags of backends, and devices that are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._case import Case


def cast_cat(torch: Any, tensor: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return torch.cat([tensor, tensor])


def deterministic(torch: Any, call: Callable[[], Any]) -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        return call()
    finally:
        torch.use_deterministic_algorithms(False)


CASES = [
    Case(
        "autocast_device_type_no_str",
        lambda torch: {},
        lambda torch, v: torch.autocast(3),
        "ValueError",
        "Expected `device_type` of type `str`, got: `<class 'int'>`",
    ),
    Case(
        "autocast_device_type_unknown",
        lambda torch: {},
        lambda torch, v: torch.autocast("nothing"),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: nothing",
    ),
    Case(
        "autocast_device_type_meta",
        lambda torch: {},
        lambda torch, v: torch.autocast("meta"),
        "RuntimeError",
        "unsupported scalarType",
    ),
    Case(
        "autocast_without_autocast",
        lambda torch: {},
        lambda torch, v: torch.autocast("vulkan", dtype=torch.bfloat16),
        "RuntimeError",
        "User specified an unsupported autocast device_type 'vulkan'",
    ),
    Case(
        "autocast_decorates_no_function",
        lambda torch: {},
        lambda torch, v: torch.autocast("cpu")(3),
        "TypeError",
        (
            "autocast()(func) requires a callable, but got int. Did you mean to use autocast as a context manager? For"
            " example:\n    with torch.autocast(device_type=...):\n        output = model(input)"
        ),
    ),
    Case(
        "autocast_missing_device_type",
        lambda torch: {},
        lambda torch, v: torch.autocast(),
        "TypeError",
        "autocast.__init__() missing 1 required positional argument: 'device_type'",
    ),
    Case(
        "autocast_enabled_no_str",
        lambda torch: {},
        lambda torch, v: torch.is_autocast_enabled(3),
        "TypeError",
        "is_autocast_enabled(): argument 'device_type' (position 1) must be str, not int",
    ),
    Case(
        "autocast_enabled_meta",
        lambda torch: {},
        lambda torch, v: torch.is_autocast_enabled("meta"),
        "RuntimeError",
        "unknown device type for autocast in get_autocast_dispatch_key_from_device_type",
    ),
    Case(
        "autocast_set_enabled_no_bool",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_enabled("cpu", 3),
        "TypeError",
        "set_autocast_enabled(): argument 'enabled' (position 2) must be bool, not int",
    ),
    Case(
        "autocast_set_enabled_alone_no_bool",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_enabled(3),
        "TypeError",
        "set_autocast_enabled(): argument 'enabled' (position 1) must be bool, not int",
    ),
    Case(
        "autocast_set_enabled_no_arguments",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_enabled(),
        "TypeError",
        "set_autocast_enabled() received an invalid combination of arguments - got ()",
    ),
    Case(
        "autocast_set_enabled_unknown",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_enabled("nothing", True),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: nothing",
    ),
    Case(
        "autocast_dtype_no_str",
        lambda torch: {},
        lambda torch, v: torch.get_autocast_dtype(None),
        "TypeError",
        "get_autocast_dtype(): argument 'device_type' (position 1) must be str, not NoneType",
    ),
    Case(
        "autocast_dtype_meta",
        lambda torch: {},
        lambda torch, v: torch.get_autocast_dtype("meta"),
        "RuntimeError",
        "unsupported scalarType",
    ),
    Case(
        "autocast_set_dtype_no_dtype",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_dtype("cpu", 3),
        "TypeError",
        "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not int",
    ),
    Case(
        "autocast_set_dtype_no_str",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_dtype(3, torch.bfloat16),
        "TypeError",
        "set_autocast_dtype(): argument 'device_type' (position 1) must be str, not int",
    ),
    Case(
        "autocast_set_cpu_dtype_no_dtype",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_cpu_dtype("bfloat16"),
        "TypeError",
        "dtype must be a torch.dtype (got str)",
    ),
    Case(
        "autocast_set_cpu_enabled_no_bool",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_cpu_enabled(1),
        "TypeError",
        "enabled must be a bool (got int)",
    ),
    Case(
        "autocast_set_cache_no_bool",
        lambda torch: {},
        lambda torch, v: torch.set_autocast_cache_enabled(1),
        "TypeError",
        "enabled must be a bool (got int)",
    ),
    Case(
        "custom_fwd_no_str",
        lambda torch: {},
        lambda torch, v: torch.amp.custom_fwd(device_type=1),
        "ValueError",
        "Expected `device_type` of type `str`, got: `<class 'int'>`",
    ),
    Case(
        "custom_bwd_no_str",
        lambda torch: {},
        lambda torch, v: torch.amp.custom_bwd(device_type=None),
        "ValueError",
        "Expected `device_type` of type `str`, got: `<class 'NoneType'>`",
    ),
    Case(
        "autocast_promotes_another_half",
        lambda torch: dict(h=torch.ones(2, dtype=torch.float16)),
        lambda torch, v: cast_cat(torch, v.h),
        "RuntimeError",
        "Unexpected floating ScalarType in at::autocast::prioritize",
    ),
    Case(
        "scaler_growth_factor",
        lambda torch: {},
        lambda torch, v: torch.amp.GradScaler("cpu", growth_factor=0.5),
        "AssertionError",
        "The growth factor must be > 1.0.",
    ),
    Case(
        "scaler_backoff_factor",
        lambda torch: {},
        lambda torch, v: torch.amp.GradScaler("cpu", backoff_factor=2.0),
        "AssertionError",
        "The backoff factor must be < 1.0.",
    ),
    Case(
        "scaler_scales_a_number",
        lambda torch: {},
        lambda torch, v: torch.amp.GradScaler("cpu").scale(3),
        "ValueError",
        "outputs must be a Tensor or an iterable of Tensors",
    ),
    Case(
        "scaler_update_without_scale",
        lambda torch: {},
        lambda torch, v: torch.amp.GradScaler("cpu").update(),
        "AssertionError",
        (
            "Attempted update but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
            "outputs) earlier in the iteration."
        ),
    ),
    Case(
        "scaler_empty_state",
        lambda torch: {},
        lambda torch, v: torch.amp.GradScaler("cpu").load_state_dict({}),
        "RuntimeError",
        "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.",
    ),
    Case(
        "unscale_integers",
        lambda torch: dict(i=torch.ones(2, dtype=torch.int32), zero=torch.zeros(()), one=torch.ones(())),
        lambda torch, v: torch._amp_foreach_non_finite_check_and_unscale_([v.i], v.zero, v.one),
        "NotImplementedError",
        "\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for 'Int'",
    ),
    Case(
        "unscale_found_inf_size",
        lambda torch: dict(one=torch.ones(()), x=torch.ones(2)),
        lambda torch, v: torch._amp_foreach_non_finite_check_and_unscale_([v.x], v.x, v.one),
        "RuntimeError",
        "found_inf must be a 1-element tensor.",
    ),
    Case(
        "unscale_found_inf_dtype",
        lambda torch: dict(one=torch.ones(()), x=torch.ones(2), i1=torch.zeros((), dtype=torch.int64)),
        lambda torch, v: torch._amp_foreach_non_finite_check_and_unscale_([v.x], v.i1, v.one),
        "RuntimeError",
        "found_inf must be a float tensor.",
    ),
    Case(
        "unscale_inv_scale_size",
        lambda torch: dict(zero=torch.zeros(()), x=torch.ones(2)),
        lambda torch, v: torch._amp_foreach_non_finite_check_and_unscale_([v.x], v.zero, v.x),
        "RuntimeError",
        "inv_scale must be a 1-element tensor.",
    ),
    Case(
        "update_scale_tracker_dtype",
        lambda torch: dict(zero=torch.zeros(()), one=torch.ones(()), i1=torch.zeros((), dtype=torch.int64)),
        lambda torch, v: torch._amp_update_scale_(v.one, v.i1, v.zero, 2.0, 0.5, 3),
        "RuntimeError",
        "growth_tracker must be an int tensor.",
    ),
    Case(
        "update_scale_size",
        lambda torch: dict(zero=torch.zeros(()), x=torch.ones(2), t=torch.zeros((), dtype=torch.int32)),
        lambda torch, v: torch._amp_update_scale_(v.x, v.t, v.zero, 2.0, 0.5, 3),
        "RuntimeError",
        "current_scale must be a 1-element tensor.",
    ),
    Case(
        "update_scale_factor_no_float",
        lambda torch: dict(zero=torch.zeros(()), one=torch.ones(()), t=torch.zeros((), dtype=torch.int32)),
        lambda torch, v: torch._amp_update_scale_(v.one, v.t, v.zero, "a", 0.5, 3),
        "TypeError",
        "_amp_update_scale_(): argument 'scale_growth_factor' (position 4) must be float, not str",
    ),
    Case(
        "deterministic_no_bool",
        lambda torch: {},
        lambda torch, v: torch.use_deterministic_algorithms(1),
        "TypeError",
        "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not int",
    ),
    Case(
        "deterministic_debug_number",
        lambda torch: {},
        lambda torch, v: torch.set_deterministic_debug_mode(7),
        "RuntimeError",
        "invalid value of debug_mode, expected 0, 1, or 2, but got 7",
    ),
    Case(
        "deterministic_debug_word",
        lambda torch: {},
        lambda torch, v: torch.set_deterministic_debug_mode("loud"),
        "RuntimeError",
        "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got loud",
    ),
    Case(
        "deterministic_debug_type",
        lambda torch: {},
        lambda torch, v: torch.set_deterministic_debug_mode(0.5),
        "TypeError",
        "debug_mode must be str or int, but got <class 'float'>",
    ),
    Case(
        "deterministic_put",
        lambda torch: dict(x=torch.ones(2), index=torch.zeros(1, dtype=torch.int64), one1=torch.ones(1)),
        lambda torch, v: deterministic(torch, lambda: v.x.put_(v.index, v.one1)),
        "RuntimeError",
        (
            "put_ does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, or you "
            "can use the 'warn_only=True' option, if that's acceptable for your application. You can also file an "
            "issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for"
            " this operation."
        ),
    ),
    Case(
        "deterministic_unpool",
        lambda torch: dict(image=torch.ones(1, 1, 1, 1), places=torch.zeros(1, 1, 1, 1, dtype=torch.int64)),
        lambda torch, v: deterministic(torch, lambda: torch.nn.functional.max_unpool2d(v.image, v.places, 2)),
        "RuntimeError",
        (
            "max_unpooling2d_forward_out does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, or you "
            "can use the 'warn_only=True' option, if that's acceptable for your application. You can also file an "
            "issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for"
            " this operation."
        ),
    ),
    Case(
        "matmul_precision_no_str",
        lambda torch: {},
        lambda torch, v: torch.set_float32_matmul_precision(1),
        "RuntimeError",
        "set_float32_matmul_precision expects a str, but got int",
    ),
    Case(
        "cuda_synchronize",
        lambda torch: {},
        lambda torch, v: torch.cuda.synchronize(),
        "AssertionError",
        "Torch not compiled with CUDA enabled",
    ),
    Case(
        "cuda_device_name",
        lambda torch: {},
        lambda torch, v: torch.cuda.get_device_name(0),
        "AssertionError",
        "Torch not compiled with CUDA enabled",
    ),
    Case(
        "cuda_stream",
        lambda torch: {},
        lambda torch, v: torch.cuda.Stream(),
        "RuntimeError",
        "torch.cuda.Stream requires CUDA support",
    ),
    Case(
        "cuda_event",
        lambda torch: {},
        lambda torch, v: torch.cuda.Event(),
        "RuntimeError",
        "Tried to instantiate dummy base class Event",
    ),
    Case(
        "cuda_tensor_type",
        lambda torch: {},
        lambda torch, v: torch.cuda.FloatTensor(2),
        "TypeError",
        "type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.",
    ),
    Case(
        "cuda_device_of_another_type",
        lambda torch: {},
        lambda torch, v: torch.cuda.device("cpu"),
        "ValueError",
        "Expected a cuda device, but got: cpu",
    ),
    Case(
        "cuda_enter_device",
        lambda torch: {},
        lambda torch, v: torch.cuda.device(0).__enter__(),
        "RuntimeError",
        "PyTorch was compiled without CUDA support",
    ),
    Case(
        "xpu_current_device",
        lambda torch: {},
        lambda torch, v: torch.xpu.current_device(),
        "AssertionError",
        "Torch not compiled with XPU enabled",
    ),
    Case(
        "mps_synchronize",
        lambda torch: {},
        lambda torch, v: torch.mps.synchronize(),
        "RuntimeError",
        "Cannot execute deviceSynchronize() without MPS backend.",
    ),
    Case(
        "mtia_init",
        lambda torch: {},
        lambda torch, v: torch.mtia.init(),
        "AssertionError",
        (
            "Torch not compiled with MTIA enabled. Ensure you have `import "
            "mtia.host_runtime.torch_mtia.dynamic_library` in your python src file and include "
            "`//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
        ),
    ),
    Case(
        "cudnn_benchmark_no_bool",
        lambda torch: {},
        lambda torch, v: setattr(torch.backends.cudnn, "benchmark", 1),
        "RuntimeError",
        "set_benchmark_cudnn expects a bool, but got int",
    ),
    Case(
        "cuda_matmul_no_flag",
        lambda torch: {},
        lambda torch, v: setattr(torch.backends.cuda.matmul, "nothing", True),
        "AttributeError",
        "Unknown attribute nothing",
    ),
    Case(
        "cuda_tf32_no_bool",
        lambda torch: {},
        lambda torch, v: setattr(torch.backends.cuda.matmul, "allow_tf32", 1),
        "RuntimeError",
        "set_allow_tf32_cublas expects a bool, but got int",
    ),
    Case(
        "fp32_precision_unknown",
        lambda torch: {},
        lambda torch, v: setattr(torch.backends, "fp32_precision", "low"),
        "RuntimeError",
        "Unknown precision: low",
    ),
    Case(
        "cufft_plan_cache_device",
        lambda torch: {},
        lambda torch, v: torch.backends.cuda.cufft_plan_cache[0],
        "RuntimeError",
        "cufft_plan_cache: expected 0 <= device index < 0, but got device with index 0",
    ),
    Case(
        "cufft_plan_cache_size",
        lambda torch: {},
        lambda torch, v: torch.backends.cuda.cufft_plan_cache.size,
        "AssertionError",
        "Torch not compiled with CUDA enabled",
    ),
    Case(
        "preferred_linalg_unknown",
        lambda torch: {},
        lambda torch, v: torch.backends.cuda.preferred_linalg_library("nothing"),
        "RuntimeError",
        "Unknown input value. Choose from: default, cusolver, magma.",
    ),
    Case(
        "preferred_linalg_magma",
        lambda torch: {},
        lambda torch, v: torch.backends.cuda.preferred_linalg_library("magma"),
        "RuntimeError",
        "Cannot set preferred backend to MAGMA if PyTorch has not been compiled with MAGMA.",
    ),
    Case(
        "preferred_blas_unknown",
        lambda torch: {},
        lambda torch, v: torch.backends.cuda.preferred_blas_library("nothing"),
        "RuntimeError",
        "Unknown input value. Choose from: default, cublas, hipblas, cublaslt, hipblaslt, ck.",
    ),
    Case(
        "quantized_engine",
        lambda torch: {},
        lambda torch, v: setattr(torch.backends.quantized, "engine", "nothing"),
        "RuntimeError",
        "nothing is not a valid value for quantized engine",
    ),
    Case(
        "opt_einsum_strategy",
        lambda torch: {},
        lambda torch, v: torch.backends.opt_einsum.set_flags(False, "greedy"),
        "ValueError",
        (
            "opt_einsum is not available, so setting `strategy` to greedy will not be meaningful. torch.einsum will "
            "bypass path calculation and simply contract from left to right. Please install opt_einsum or unset "
            "`strategy`."
        ),
    ),
    Case(
        "fill_memory_no_bool",
        lambda torch: {},
        lambda torch, v: setattr(torch.utils.deterministic, "fill_uninitialized_memory", 1),
        "RuntimeError",
        "expected a bool, but got int",
    ),
    Case(
        "flush_denormal_no_bool",
        lambda torch: {},
        lambda torch, v: torch.set_flush_denormal(1),
        "RuntimeError",
        "flush_denormal expects a bool, but got int",
    ),
]
