"""`torch.fx.experimental.graph_gradual_typechecker`: importable; gradual types are not inferred."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "broadcast_types expand_to_tensor_dim register_inference_rule register_refinement_rule "
    "register_algebraic_expressions_inference_rule calculate_out_dimension get_greatest_upper_bound get_parameter",
    "GraphTypeChecker Refine",
    "{name}: types of tensors with unknown sizes are not inferred here; torch.fx.passes.shape_prop notes real shapes",
)
