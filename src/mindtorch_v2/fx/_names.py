"""What PyTorch calls our functions and types: generated code says `torch.nn.functional.relu(x)` wherever `relu` stands.

Invariant: a name given here leads, from the package, to a function that does the same: generated code runs with it.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import operator
import sys
import types
from typing import Any

from .. import _native
from .._torch_name import PACKAGE, shown

_OWN = PACKAGE + "."
# Functions of `torch` that PyTorch has written in Python, in another module.
_IN_FUNCTIONAL = frozenset(
    """atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    einsum lu meshgrid norm split stft tensordot unique unique_consecutive unravel_index""".split()
)
_ELSEWHERE = {
    **dict.fromkeys(_IN_FUNCTIONAL, "torch.functional"),
    "lobpcg": "torch._lobpcg",
    "pca_lowrank": "torch._lowrank",
    "svd_lowrank": "torch._lowrank",
}
# Functions of `torch.nn.functional` that PyTorch has in C++: those of `torch` itself, and those of `torch._C._nn`.
OF_TORCH = frozenset(
    """adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist
    pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_""".split()
)
OF_C_NN = frozenset(
    """avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot scaled_dot_product_attention
    softplus softshrink""".split()
)
_RENAMED = {"logsigmoid": "log_sigmoid", "threshold": "_threshold"}
# Python's operators on a tensor, by the method that PyTorch calls for them.
OPERATORS = {
    **{f"__{n}__": n for n in "add mul sub matmul eq ne lt le gt ge neg abs pow".split()},
    "__radd__": "add",
    "__rmul__": "mul",
    "__rtruediv__": "__rdiv__",
    "__truediv__": "div",
    "__mod__": "remainder",
    "__invert__": "bitwise_not",
}


def package() -> Any:
    """The package's top level."""
    return sys.modules[PACKAGE]


def public_module(module: str) -> str:
    """A module of the package by PyTorch's name; files that only share out a module's content are that module."""
    if module == PACKAGE:
        return "torch"
    if module.startswith(_OWN):
        tail = module[len(_OWN) :]
        if not shown(tail):
            return "torch"
        module = "torch." + tail
    if not module.startswith("torch."):
        return module
    return "torch.nn.functional" if module.startswith("torch.nn.functional.") else module


def is_ours(module: str | None) -> bool:
    """Whether a module is the package's, under either name."""
    return module is not None and (module == PACKAGE or module.startswith(_OWN) or _installed_name(module))


def _installed_name(module: str) -> bool:
    if sys.modules.get("torch") is not sys.modules[PACKAGE]:
        return False
    return module == "torch" or module.startswith("torch.")


def place(func: Any) -> tuple[str, str] | None:
    """Module and name that PyTorch has for a function of the package; None for others."""
    name = getattr(func, "__name__", None)
    if name is None or not is_ours(getattr(func, "__module__", None)):
        return None
    torch = package()
    for space in ("linalg", "fft", "special"):
        plain = name.removeprefix(space + "_")
        module = sys.modules.get(_OWN + space)
        if module is not None and (vars(module).get(plain) is func or vars(module).get(name) is func):
            return f"torch._C._{space}", f"{space}_{plain}"
    if vars(torch).get(name) is func:
        return _ELSEWHERE.get(name, "torch"), name
    functional = sys.modules.get(_OWN + "nn.functional")
    if functional is not None and vars(functional).get(name) is func and "functional" in func.__module__:
        shown_name = _RENAMED.get(name, name)
        if name in OF_C_NN:
            return "torch._C._nn", shown_name
        return "torch" if name in OF_TORCH else "torch.nn.functional", shown_name
    return None


def target_name(target: Any) -> str:
    """The name from which a node that calls `target` gets its own."""
    found = place(target)
    name: str = target.__name__ if found is None else found[1]
    return name


def is_python_function(func: Any) -> bool:
    """Whether PyTorch has the function in Python: then a handler gets its arguments completed."""
    found = place(func)
    if found is None:
        module = getattr(func, "__module__", None)
        return is_ours(module) and public_module(module or "") == "torch.nn.init"
    return found[0] in ("torch.functional", "torch.nn.functional", "torch._lobpcg", "torch._lowrank")


def method_name(func: Any) -> str | None:
    """The name of a method of `Tensor`, as PyTorch calls it; None for anything else."""
    name = getattr(func, "__name__", None)
    if name is None:
        return None
    tensor = package().Tensor
    if name == "__get__":
        return name if isinstance(getattr(func, "__self__", None), (property, types.GetSetDescriptorType)) else None
    found = inspect.getattr_static(tensor, name, None)
    if found is not func and getattr(tensor, name, None) is not func:
        return None
    shown: str = OPERATORS.get(name, name)
    return shown


def find_module(func: Any) -> str:
    """The module in which generated code finds a function."""
    found = place(func)
    if found is not None:
        return found[0]
    module, name = func.__module__, func.__name__
    if module is not None:
        return public_module(module)
    for guess in ("torch", "torch.nn.functional"):
        space: Any = package() if guess == "torch" else package().nn.functional
        if getattr(space, name, None) is func:
            return guess
    raise RuntimeError(f"cannot find module for {func}")


def qualified_name(func: Any) -> str:
    """The name by which generated code calls a function."""
    name: str = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    from .._operators import OpOverload, OpOverloadPacket

    if isinstance(func, OpOverload):
        return f"torch.ops.{func.namespace}.{func.__name__}"
    if isinstance(func, OpOverloadPacket):
        return f"torch.ops.{func._namespace}.{func.__name__}"
    method = method_name(func)
    if method is not None:
        return f"torch.Tensor.{name}"
    found = place(func)
    if found is not None:
        return f"{found[0]}.{found[1]}"
    if name == "<lambda>":
        # The name it was assigned to where it was written.
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    return f"{find_module(func)}.{name}"


def is_from_torch(obj: Any) -> bool:
    """Whether generated code finds an object under `torch` and needs no name of its own for it."""
    from .._operators import OpOverload, OpOverloadPacket

    if isinstance(obj, (OpOverload, OpOverloadPacket)):
        return True
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        if not is_ours(module):
            return module == "torch" or module.startswith("torch.")
        return not public_module(module).startswith(("torch._dynamo.", "torch._inductor."))
    name = getattr(obj, "__name__", None)
    if name is not None and name != "torch":
        return any(getattr(guess, name, None) is obj for guess in (package(), package().nn.functional))
    return False


def type_repr(obj: Any) -> str:
    """A type as annotations show it."""
    if isinstance(obj, type) and not hasattr(obj, "__origin__"):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        module = obj.__module__
        return f"{public_module(module) if is_ours(module) else module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, (types.FunctionType, _native.Overridable)):
        return obj.__name__
    return repr(obj)


def pretty_target(target: Any) -> str:
    """A target as printed graphs show it."""
    if isinstance(target, str):
        return target
    if hasattr(target, "__module__"):
        name = getattr(target, "__name__", None)
        if name is not None and target.__module__ == "builtins":
            return f"builtins.{name}"
        if name is not None and target.__module__ == "_operator":
            return f"operator.{name}"
    return qualified_name(target)


@functools.cache
def magic_operator(name: str) -> Any:
    """The function of `operator` behind Python's syntax."""
    return getattr(operator, name)
