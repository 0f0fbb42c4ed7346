"""`torch._functorch.config`: settings of transforms under compilation, kept for programs that set them."""

from __future__ import annotations

from typing import Any

from .._dynamo._settings import become, spelled

_NAMES: dict[str, str] = dict(
    true="""
    autograd_cache_normalize_inputs ban_recompute_long_fusible_chains ban_recompute_materialized_backward
    ban_recompute_not_in_allowlist ban_recompute_reductions ban_recompute_used_far_apart
    check_custom_op_aliasing cse decompose_custom_triton_ops donated_buffer enable_autograd_cache
    fake_tensor_allow_meta fake_tensor_allow_unsafe_data_ptr_access graphsafe_rng_functionalization
    guess_tangent_strides_as_outputs remat_using_tags_for_fwd_loss_bwd_graph static_weight_shapes
    treat_parameters_as_free_to_save view_replay_for_aliased_outputs
    """,
    false="""
    activation_offload_separate_stream activation_offload_sink_wait activation_reload_prefetch
    aggressive_recomputation autograd_cache_allow_custom_autograd_functions bundled_autograd_cache
    bypass_autograd_cache_key debug_assert debug_partitioner
    disable_guess_zero_tangent_for_mutated_input_subclass enable_activation_offloading enable_complex_wrapper
    error_on_custom_op_aliasing fake_tensor_crossref fake_tensor_propagate_real_tensors force_autograd_cache
    force_non_lazy_backward_lowering functionalize_rng_ops generate_fake_kernels_from_real_mismatches
    is_non_builtin_to_include recompute_views selective_decompose strict_autograd_cache unlift_effect_tokens
    unsafe_allow_optimization_of_collectives unsafe_treat_script_objects_as_zero_size
    visualize_memory_budget_pareto
    """,
    none="""
    enable_remote_autograd_cache fake_tensor_prefer_device_type joint_custom_pass memory_budget_pareto_dir
    """,
    int="""
    max_dist_from_bw=1000
    """,
    float="""
    activation_memory_budget=1.0 activation_offload_cpu_gpu_bw=50.0
    """,
    str="""
    activation_memory_budget_runtime_estimator=flops activation_memory_budget_solver=dp
    backward_pass_autocast=same_as_forward custom_op_default_layout_constraint=needs_exact_strides
    saved_tensors_hooks_filtering_mode=donated torch_compile_graph_format=svg
    """,
)


def _table() -> dict[str, Any]:
    return spelled(**_NAMES)


become(__name__, _table)
