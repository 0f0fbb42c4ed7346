"""`torch.fx.experimental._config`: settings of symbolic sizes, kept for programs that set them."""

from __future__ import annotations

from typing import Any

from ..._dynamo._settings import become, spelled

_NAMES: dict[str, str] = dict(
    true="use_duck_shape",
    false="""
    backed_size_oblivious check_shape_env_recorded_events enrich_profiler_metadata extended_debug_cpp
    extended_debug_current_loc inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY meta_nonzero_assume_all_nonzero
    no_data_dependent_graph_break print_specializations skip_dtype_check_in_meta_registrations
    soft_pending_unbacked_not_found_error translation_validation translation_validation_no_bisect
    unify_view_symbols_bso_meta validate_shape_env_version_key
    """,
    none="extended_debug_create_symbol extended_debug_guard_added symbol_guard_limit_before_specialize",
    int="aggressive_guard_free_semantics=0 translation_validation_timeout=600000",
)


def _table() -> dict[str, Any]:
    return spelled(**_NAMES)


become(__name__, _table)
