"""`torch._functorch.aot_autograd`: functions whose arguments come in a list; compiling ahead of time is not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._unserved import offer as _offer

WHY = "{name}: nothing is compiled ahead of time here; torch.fx.experimental.proxy_tensor.make_fx gives graphs"


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function that takes its arguments as one list."""

    def g(args: list[Any]) -> Any:
        return f(*args)

    vars(g)["_boxed_call"] = True
    return g


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose functions take their arguments as one list."""

    def f(fx_g: Any, inps: Any) -> Any:
        return make_boxed_func(compiler(fx_g, inps))

    return f


_offer(
    __name__,
    "aot_function aot_module aot_module_simplified aot_export_module aot_export_joint_simple "
    "aot_export_joint_with_descriptors aot_compile_joint_with_descriptors create_joint get_aot_compilation_context "
    "get_aot_graph_name get_graph_being_compiled run_functionalized_fw_and_collect_metadata "
    "setup_stacktrace_preservation_hooks",
    "AOTConfig",
    WHY,
)
compiled_function: Any = vars()["aot_function"]
compiled_module: Any = vars()["aot_module"]
