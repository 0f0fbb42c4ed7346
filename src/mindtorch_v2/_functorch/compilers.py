"""`torch._functorch.compilers`: compilers that give back the graph they were given."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._decomp import get_decompositions
from .._unserved import offer as _offer
from .aot_autograd import WHY, make_boxed_compiler


@make_boxed_compiler
def nop(fx_g: Any, _: Any) -> Any:
    """The graph itself."""
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: Any, _: Any) -> Any:
    """The graph itself, after its code has been printed."""
    print(fx_g.code)
    return fx_g


_offer(
    __name__,
    "debug_compile debug_nop draw_graph_compile graph_dumper_aot memory_efficient_fusion nnc_jit simple_ts_compile "
    "ts_compile get_inputs",
    "DebugInterpreter",
    WHY,
)


def _defaults() -> dict[Any, Any]:
    aten = ops.aten
    return get_decompositions(
        (
            *(aten.detach, aten.gelu_backward, aten.leaky_relu_backward, aten.sigmoid_backward),
            *(aten.threshold_backward, aten.hardtanh_backward, aten.hardsigmoid_backward, aten.hardswish_backward),
            *(aten.tanh_backward, aten.silu_backward, aten.elu_backward, aten.masked_fill.Scalar),
            *(aten.masked_fill.Tensor, aten.elu, aten.leaky_relu, aten.hardtanh, aten.hardswish),
            *(aten.hardsigmoid, aten.conj_physical, aten.is_same_size),
        )
    )


default_decompositions = _defaults()
