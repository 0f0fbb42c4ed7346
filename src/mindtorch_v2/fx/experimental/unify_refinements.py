"""`torch.fx.experimental.unify_refinements`: importable; gradual types are not inferred."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "infer_symbolic_types infer_symbolic_types_single_pass convert_eq unify_eq substitute_solution_one_type "
    "substitute_all_types check_for_type_equality",
    "",
    "{name}: types of tensors with unknown sizes are not inferred here; torch.fx.passes.shape_prop notes real shapes",
)
