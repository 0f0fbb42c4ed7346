"""One call of every in-place method, for the properties that hold of all of them.

Invariant: every in-place operator of the library has an entry here or in `NOT_WRITES`;
`test_c_inplace_views_autograd.py` fails for one that has neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Any], Any]


class Inplace:
    """`make(torch)` gives the tensor that is written, `call(torch, tensor)` writes it."""

    def __init__(self, call: Call, make: str = "floats", methods: tuple[str, ...] = ()) -> None:
        self.call = call
        self.kind = make
        self.methods = methods

    def make(self, torch: Any, device: str = "cpu") -> Any:
        if self.kind == "floats":
            return on(floats(torch), device)
        if self.kind == "wide":
            return floats(torch).to(device)
        if self.kind == "ints":
            return ints(torch).to(device)
        if self.kind == "vector":
            return on(torch.tensor([0.5, 1.5, 0.25], dtype=torch.float64), device)
        if self.kind == "batch":
            return on(torch.stack([floats(torch), floats(torch) * 0.5]), device)
        raise ValueError(self.kind)


def on(t: Any, device: Any) -> Any:
    """A tensor on a device; NPUs have hardly any operator for float64."""
    return (t.float() if str(device).startswith("npu") else t).to(device)


def floats(torch: Any) -> Any:
    return torch.tensor([[0.5, 0.25, 0.75], [0.125, 0.625, 0.375], [0.875, 0.0625, 0.9375]], dtype=torch.float64)


def ints(torch: Any) -> Any:
    return torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])


def other(torch: Any, like: Any) -> Any:
    return on(floats(torch) + 0.5, like.device)


def other_ints(torch: Any, like: Any) -> Any:
    return torch.tensor([[3, 1, 2], [2, 3, 1], [1, 2, 3]]).to(like.device)


def index(torch: Any, like: Any) -> Any:
    return torch.tensor([0, 2]).to(like.device)


def rows(torch: Any, like: Any) -> Any:
    return on(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64), like.device)


def mask(torch: Any, like: Any) -> Any:
    return torch.tensor([[True, False, True], [False, True, False], [True, True, False]]).to(like.device)


def vector(torch: Any, like: Any) -> Any:
    return on(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), like.device)


def column_index(torch: Any, like: Any) -> Any:
    return torch.tensor([[0, 1, 2], [2, 0, 1]]).to(like.device)


CALLS: dict[str, Inplace] = {
    # arithmetic
    "add_": Inplace(lambda torch, t: t.add_(other(torch, t))),
    "add_scalar": Inplace(lambda torch, t: t.add_(2, alpha=3), methods=("add_",)),
    "sub_": Inplace(lambda torch, t: t.sub_(other(torch, t))),
    "subtract_": Inplace(lambda torch, t: t.subtract_(other(torch, t))),
    "mul_": Inplace(lambda torch, t: t.mul_(other(torch, t))),
    "mul_scalar": Inplace(lambda torch, t: t.mul_(3.0), methods=("mul_",)),
    "multiply_": Inplace(lambda torch, t: t.multiply_(other(torch, t))),
    "div_": Inplace(lambda torch, t: t.div_(other(torch, t))),
    "div_floor": Inplace(lambda torch, t: t.div_(other(torch, t), rounding_mode="floor"), methods=("div_",)),
    "divide_": Inplace(lambda torch, t: t.divide_(other(torch, t))),
    "true_divide_": Inplace(lambda torch, t: t.true_divide_(other(torch, t))),
    "floor_divide_": Inplace(lambda torch, t: t.floor_divide_(other(torch, t))),
    "remainder_": Inplace(lambda torch, t: t.remainder_(other(torch, t))),
    "fmod_": Inplace(lambda torch, t: t.fmod_(other(torch, t))),
    "pow_": Inplace(lambda torch, t: t.pow_(2)),
    "pow_tensor": Inplace(lambda torch, t: t.pow_(other(torch, t)), methods=("pow_",)),
    "float_power_": Inplace(lambda torch, t: t.float_power_(2), "wide"),
    "atan2_": Inplace(lambda torch, t: t.atan2_(other(torch, t))),
    "arctan2_": Inplace(lambda torch, t: t.arctan2_(other(torch, t))),
    "hypot_": Inplace(lambda torch, t: t.hypot_(other(torch, t))),
    "copysign_": Inplace(lambda torch, t: t.copysign_(other(torch, t))),
    "nextafter_": Inplace(lambda torch, t: t.nextafter_(other(torch, t))),
    "xlogy_": Inplace(lambda torch, t: t.xlogy_(other(torch, t))),
    "heaviside_": Inplace(lambda torch, t: t.heaviside_(other(torch, t))),
    "ldexp_": Inplace(lambda torch, t: t.ldexp_(other(torch, t))),
    "igamma_": Inplace(lambda torch, t: t.igamma_(other(torch, t))),
    "igammac_": Inplace(lambda torch, t: t.igammac_(other(torch, t))),
    "gcd_": Inplace(lambda torch, t: t.gcd_(other_ints(torch, t)), "ints"),
    "lcm_": Inplace(lambda torch, t: t.lcm_(other_ints(torch, t)), "ints"),
    "addcmul_": Inplace(lambda torch, t: t.addcmul_(other(torch, t), other(torch, t), value=2)),
    "addcdiv_": Inplace(lambda torch, t: t.addcdiv_(other(torch, t), other(torch, t), value=2)),
    "lerp_": Inplace(lambda torch, t: t.lerp_(other(torch, t), 0.25)),
    # comparison and logic
    **{
        name: Inplace(lambda torch, t, name=name: getattr(t, name)(other(torch, t)))
        for name in (
            "eq_ ne_ lt_ le_ gt_ ge_ not_equal_ less_ less_equal_ greater_ greater_equal_ "
            "logical_and_ logical_or_ logical_xor_"
        ).split()
    },
    **{
        name: Inplace(lambda torch, t, name=name: getattr(t, name)(other_ints(torch, t)), "ints")
        for name in (
            "bitwise_and_ bitwise_or_ bitwise_xor_ bitwise_left_shift_ bitwise_right_shift_ "
            "__iand__ __ior__ __ixor__ __ilshift__ __irshift__"
        ).split()
    },
    "bitwise_not_": Inplace(lambda torch, t: t.bitwise_not_(), "ints"),
    # one argument
    **{
        name: Inplace(lambda torch, t, name=name: getattr(t, name)())
        for name in (
            "abs_ absolute_ neg_ negative_ sign_ sgn_ square_ sqrt_ rsqrt_ reciprocal_ exp_ exp2_ expm1_ log_ "
            "log2_ log10_ log1p_ "
            "sin_ cos_ tan_ asin_ acos_ atan_ arcsin_ arccos_ arctan_ sinh_ cosh_ tanh_ asinh_ atanh_ "
            "arcsinh_ arctanh_ sigmoid_ relu_ floor_ ceil_ round_ trunc_ fix_ frac_ erf_ erfc_ erfinv_ lgamma_ "
            "digamma_ i0_ sinc_ deg2rad_ rad2deg_ logical_not_ zero_ nan_to_num_ tril_ triu_ conj_physical_ "
            "normal_ uniform_ bernoulli_ random_ exponential_ cauchy_ log_normal_ squeeze_ t_"
        ).split()
    },
    "acosh_": Inplace(lambda torch, t: t.acosh_()),
    "arccosh_": Inplace(lambda torch, t: t.arccosh_()),
    "geometric_": Inplace(lambda torch, t: t.geometric_(0.5)),
    "logit_": Inplace(lambda torch, t: t.logit_(0.1)),
    "polygamma_": Inplace(lambda torch, t: t.polygamma_(1)),
    "mvlgamma_": Inplace(lambda torch, t: t.mvlgamma_(1)),
    "clamp_": Inplace(lambda torch, t: t.clamp_(0.2, 0.6)),
    "clamp_tensor": Inplace(lambda torch, t: t.clamp_(other(torch, t) - 0.25, other(torch, t)), methods=("clamp_",)),
    "clamp_min_": Inplace(lambda torch, t: t.clamp_min_(0.5)),
    "clamp_max_": Inplace(lambda torch, t: t.clamp_max_(0.5)),
    "clip_": Inplace(lambda torch, t: t.clip_(0.2, 0.6)),
    "renorm_": Inplace(lambda torch, t: t.renorm_(2, 0, 0.5)),
    "cumsum_": Inplace(lambda torch, t: t.cumsum_(0)),
    "cumprod_": Inplace(lambda torch, t: t.cumprod_(0)),
    # matrices
    "addmm_": Inplace(lambda torch, t: t.addmm_(other(torch, t), other(torch, t))),
    "addmv_": Inplace(lambda torch, t: t.addmv_(other(torch, t), vector(torch, t)), "vector"),
    "addr_": Inplace(lambda torch, t: t.addr_(vector(torch, t), vector(torch, t))),
    "addbmm_": Inplace(lambda torch, t: t.addbmm_(other(torch, t).unsqueeze(0), other(torch, t).unsqueeze(0))),
    "baddbmm_": Inplace(lambda torch, t: t.baddbmm_(t.clone(), t.clone()), "batch"),
    # filling, copying, indexing
    "fill_": Inplace(lambda torch, t: t.fill_(7.0)),
    "copy_": Inplace(lambda torch, t: t.copy_(other(torch, t))),
    "fill_diagonal_": Inplace(lambda torch, t: t.fill_diagonal_(7.0)),
    "masked_fill_": Inplace(lambda torch, t: t.masked_fill_(mask(torch, t), 7.0)),
    "masked_scatter_": Inplace(lambda torch, t: t.masked_scatter_(mask(torch, t), other(torch, t))),
    "index_fill_": Inplace(lambda torch, t: t.index_fill_(0, index(torch, t), 7.0)),
    "index_add_": Inplace(lambda torch, t: t.index_add_(0, index(torch, t), rows(torch, t))),
    "index_copy_": Inplace(lambda torch, t: t.index_copy_(0, index(torch, t), rows(torch, t))),
    "index_reduce_": Inplace(lambda torch, t: t.index_reduce_(0, index(torch, t), rows(torch, t), "amax")),
    "index_put_": Inplace(lambda torch, t: t.index_put_((index(torch, t),), rows(torch, t))),
    "scatter_": Inplace(lambda torch, t: t.scatter_(0, column_index(torch, t), rows(torch, t))),
    "scatter_value": Inplace(lambda torch, t: t.scatter_(1, column_index(torch, t), 7.0), methods=("scatter_",)),
    "scatter_add_": Inplace(lambda torch, t: t.scatter_add_(0, column_index(torch, t), rows(torch, t))),
    "scatter_reduce_": Inplace(lambda torch, t: t.scatter_reduce_(0, column_index(torch, t), rows(torch, t), "sum")),
    "put_": Inplace(lambda torch, t: t.put_(index(torch, t), vector(torch, t)[:2])),
    "setitem": Inplace(lambda torch, t: t.__setitem__(0, 7.0), methods=("__setitem__",)),
    "setitem_slice": Inplace(
        lambda torch, t: t.__setitem__((slice(None), slice(0, 2)), rows(torch, t)[0, 0]), methods=("__setitem__",)
    ),
    "setitem_mask": Inplace(lambda torch, t: t.__setitem__(mask(torch, t), 7.0), methods=("__setitem__",)),
    "setitem_index": Inplace(lambda torch, t: t.__setitem__(index(torch, t), rows(torch, t)), methods=("__setitem__",)),
    # layout
    "transpose_": Inplace(lambda torch, t: t.transpose_(0, 1)),
    "swapaxes_": Inplace(lambda torch, t: t.swapaxes_(0, 1)),
    "swapdims_": Inplace(lambda torch, t: t.swapdims_(0, 1)),
    "unsqueeze_": Inplace(lambda torch, t: t.unsqueeze_(0)),
    "as_strided_": Inplace(lambda torch, t: t.as_strided_((2, 2), (3, 1))),
    "resize_": Inplace(lambda torch, t: t.resize_((2, 2))),
    "resize_as_": Inplace(lambda torch, t: t.resize_as_(rows(torch, t))),
    "set_": Inplace(lambda torch, t: t.set_(other(torch, t))),
}

# Written by a random generator: two calls differ, so only shape, dtype and version are compared.
RANDOM = frozenset("normal_ uniform_ bernoulli_ random_ exponential_ cauchy_ log_normal_ geometric_".split())

# These change what the tensor object points at, not the values under it.
LAYOUT = frozenset("squeeze_ t_ transpose_ swapaxes_ swapdims_ unsqueeze_ as_strided_ resize_ resize_as_ set_".split())

# Methods with a trailing underscore that write no element, or that call back into Python for each one.
NOT_WRITES: dict[str, str] = {
    "requires_grad_": "sets a flag",
    "detach_": "cuts the history",
    "share_memory_": "moves the storage",
    "apply_": "calls a Python function per element",
    "map_": "calls a Python function per element",
    "map2_": "calls a Python function per element",
    "resize_as_sparse_": "sparse layout",
    "sparse_resize_": "sparse layout",
    "sparse_resize_and_clear_": "sparse layout",
}


def covered(method: str) -> bool:
    return method in CALLS or method in NOT_WRITES or any(method in call.methods for call in CALLS.values())


def inplace_methods(torch: Any) -> list[str]:
    """Every public method of Tensor whose name says that it writes."""
    return [
        name
        for name in dir(torch.Tensor)
        if name.endswith("_")
        and not name.endswith("__")
        and not name.startswith("_")
        and callable(getattr(torch.Tensor, name))
    ]


def has(torch: Any, name: str) -> bool:
    methods = CALLS[name].methods or (name,)
    return all(hasattr(torch.Tensor, method) for method in methods)


def available(torch: Any) -> list[str]:
    return [name for name in CALLS if has(torch, name)]


def differentiable(torch: Any) -> list[str]:
    """Those that change the history of a tensor that requires grad."""
    return [name for name in available(torch) if CALLS[name].kind != "ints" and name not in LAYOUT]
