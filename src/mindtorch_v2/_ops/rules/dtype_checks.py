"""Which dtypes and numbers pointwise operators refuse, and the rules of those that are not plain broadcasts.

Invariant: a refusal is PyTorch's, and it happens in the rule: on every device, before any memory is touched. A call
that is accepted pays a bit test for it.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._device import device
from ..._dispatch.op import Rule, Spec, type_name
from ..._dtype import bool as bool_
from ..._dtype import dtype, float32, uint8
from ..._dtype_names import c_name, cpp_name
from ..._mypyc import i64
from ..._promotion import can_cast, number_dtype, result_type_of
from ..._strides import contiguous_strides, strides_in_order
from ..._tensor_base import TensorBase, is_contiguous
from ..._warn import warn
from .layout import expand_strides, is_recast, ordered_strides, recast
from .pointwise import broadcast, broadcast_shapes, promoted

# Sets of dtypes, one bit per dtype code.
INTS: Final = 0b11111
FLOATS: Final = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 12
# float32 and float64: what is computed in no narrower type.
WIDE_FLOATS: Final = 1 << 6 | 1 << 7
COMPLEX: Final = 1 << 9 | 1 << 10
BOOL: Final = 1 << 11
FLOAT8: Final = 1 << 13 | 1 << 14 | 1 << 18 | 1 << 19
# Powers of two: fewer operators take them than other float8 types.
EXPONENTS: Final = 1 << 20
COMPLEX_HALF: Final = 1 << 21
UNSIGNED: Final = 1 << 15 | 1 << 16 | 1 << 17
ARITHMETIC: Final = INTS | FLOATS | COMPLEX | BOOL

LARGEST: Final[dict[str, float]] = {
    "float16": 65504.0, "float32": 3.4028234663852886e38, "bfloat16": 3.3895313892515355e38,
}


def not_implemented(kernel: str, dt: dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def check_number(x: Any, dt: dtype) -> None:
    """Refuse a Python number that the dtype cannot hold (rounding is allowed, overflow is not)."""
    if isinstance(x, float):
        if dt.is_floating_point:
            if -3.0e38 < x < 3.0e38 and dt.itemsize > 2:
                return
            largest = LARGEST.get(dt.name)
            if largest is None or x != x or -largest <= x <= largest or x - x != 0:
                return
        elif dt.is_integer:
            low, high = limits(dt)
            if low <= x <= high:
                return
        else:
            return
    elif isinstance(x, int):
        if not dt.is_integer:
            return
        low, high = limits(dt)
        if dt.is_signed:
            if low <= x <= high:
                return
        elif -high <= x <= high:
            return
    elif not isinstance(x, complex) or dt.is_complex or dt is bool_:
        return
    raise RuntimeError(f"value cannot be converted to type {c_name(dt)} without overflow")


def check_factor(x: Any, dt: dtype, where: device) -> None:
    """A number that a kernel of the dtype computes with: kernels of two-byte floats compute in float, and without data
    there is no kernel that would look at it."""
    if where.type != "meta":
        check_number(x, float32 if dt.is_floating_point and dt.itemsize < 4 else dt)


def limits(dt: dtype) -> tuple[int, int]:
    bits = int(dt.itemsize) * 8
    if dt.is_signed:
        half = 1 << (bits - 1)
        return -half, half - 1
    return 0, (1 << bits) - 1


def no_tensor(name: str, args: tuple[Any, ...], second: str) -> TypeError:
    """Numbers alone: one of the first two arguments must be a tensor."""
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({type_name(args[0])}, {type_name(args[1])}), "
        f"but expected one of:\n * (Tensor input, Tensor {second}, *, Tensor out = None)\n"
        f" * (Number self, Tensor {second})\n * (Tensor input, Number {second}, *, Tensor out = None)\n")


@final
class Accept(Rule):
    """Another rule, for the dtypes in `mask` only.

    `kernel` is PyTorch's name of the kernel that refuses; `texts` are exceptions for whole categories (0 bool,
    3 complex). `real` gives the real dtype of a complex result. `pair`: two operands, and numbers alone are refused.
    The arguments at `numbers` are of the result's dtype.
    """

    overlap_first = True

    def __init__(self, inner: Rule, mask: int, kernel: str, texts: dict[int, tuple[Any, str]], real: bool, pair: str,
                 name: str, numbers: tuple[int, ...]) -> None:
        self.inner: Final = inner
        self.numbers: Final = numbers
        self.mask: Final[i64] = mask
        self.kernel: Final = kernel
        self.texts: Final = texts
        self.real: Final = real
        self.pair: Final = pair
        self.name: Final = name

    def infer(self, args: tuple[Any, ...]) -> Any:
        if self.pair and not isinstance(args[0], TensorBase) and not isinstance(args[1], TensorBase):
            raise no_tensor(self.name, args, self.pair)
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        dt = s.compute
        if (self.mask >> dt.code) & 1:
            if self.real and dt.is_complex:
                return Spec(s.shape, s.stride, dt.to_real(), dt, s.device)
            for i in self.numbers:
                if isinstance(args[i], complex):
                    check_number(args[i], dt)
                check_factor(args[i], dt, s.device)
            return s
        found = self.texts.get(int(dt.category))
        if found is not None:
            raise found[0](found[1])
        raise not_implemented(self.kernel, dt)

    def infer_inplace(self, args: tuple[Any, ...]) -> Any:
        """What is written must have the shape and take the dtype before the kernel looks at dtypes."""
        try:
            return self.infer(args)
        except NotImplementedError:
            s, target = self.inner.infer(args), args[0]
            assert isinstance(s, Spec) and isinstance(target, TensorBase)
            if s.shape != target._shape:
                raise RuntimeError(f"output with shape {list(target._shape)} doesn't match the broadcast shape "
                                   f"{list(s.shape)}") from None
            if not can_cast(s.dtype, target._dtype):
                raise RuntimeError(f"result type {s.dtype.scalar_name} can't be cast to the desired output type "
                                   f"{target._dtype.scalar_name}") from None
            raise


@final
class Additive(Rule):
    """add, sub and rsub: `alpha` must suit the result, and subtraction refuses bool."""

    overlap_first = True

    def __init__(self, inner: Rule, subtracts: bool) -> None:
        self.inner: Final = inner
        self.subtracts: Final = subtracts

    def infer(self, args: tuple[Any, ...]) -> Any:
        if self.subtracts and (is_bool(args[0]) or is_bool(args[1])):
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                "operator instead." if is_bool(args[0]) and is_bool(args[1]) else
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                "mask, use the `~` or `logical_not()` operator instead.")
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        alpha = args[2]
        if isinstance(alpha, bool) or not isinstance(alpha, int) or alpha != 1:
            check_alpha(alpha, s.dtype)
        if ((ARITHMETIC | COMPLEX_HALF) >> s.dtype.code) & 1 == 0:
            raise not_implemented("add_stub", s.dtype)
        return s


def is_bool(x: Any) -> bool:
    if isinstance(x, TensorBase):
        return x._dtype is bool_
    return isinstance(x, bool)


def check_alpha(alpha: Any, dt: dtype) -> None:
    if isinstance(alpha, bool):
        if dt is not bool_:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
    elif isinstance(alpha, float):
        if not dt.is_inexact:
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    elif isinstance(alpha, complex) and not dt.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    check_number(alpha, dt)


@final
class Power(Rule):
    overlap_first = True

    def __init__(self, inner: Rule) -> None:
        self.inner: Final = inner

    def infer(self, args: tuple[Any, ...]) -> Any:
        base = args[0]
        exponent = args[1]
        if not isinstance(base, TensorBase) and not isinstance(exponent, TensorBase):
            raise no_tensor("pow", args, "exponent")
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        if not isinstance(base, TensorBase):
            s = Spec(s.shape, contiguous_strides(s.shape), s.dtype, s.compute, s.device)
        if not isinstance(exponent, TensorBase):
            if isinstance(base, TensorBase) and 1 in s.shape:
                # The exponent is no operand, so it does not decide the layout.
                s = Spec(s.shape, ordered_strides(s.shape, [base], s.compute), s.dtype, s.compute, s.device)
            if s.dtype.is_integer:
                if exponent < 0:
                    raise RuntimeError("Integers to negative integer powers are not allowed.")
                check_number(exponent, s.dtype)
            if exponent == 0 or exponent == 1:
                # A copy or a fill: every dtype has those.
                return s
        if ((ARITHMETIC & ~BOOL) >> s.dtype.code) & 1 == 0:
            if not isinstance(base, (TensorBase, bool)) and base == 1:
                return s  # a fill
            raise not_implemented("pow", s.dtype)
        return s


@final
class Clamp(Rule):
    """clamp, clamp_min and clamp_max: bounds are all tensors or all numbers, at `low` and `high` in the arguments."""

    overlap_first = True

    def __init__(self, inner: Rule, name: str, low: int, high: int) -> None:
        self.inner: Final = inner
        self.name: Final = name
        self.low: Final = low
        self.high: Final = high

    def infer(self, args: tuple[Any, ...]) -> Any:
        low = args[self.low] if self.low >= 0 else None
        high = args[self.high] if self.high >= 0 else None
        if low is None and high is None:
            raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        if isinstance(low, TensorBase) or isinstance(high, TensorBase):
            return self.of_tensors(args, low, high)
        if isinstance(low, complex) or isinstance(high, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        dt = s.dtype
        if ((INTS | FLOATS) >> dt.code) & 1 == 0:
            if dt.is_complex:
                raise NotImplementedError("clamp is not supported for complex types")
            raise not_implemented("clamp_max_scalar_cpu" if low is None else
                                  "clamp_min_scalar_cpu" if high is None else "clamp_scalar_cpu", dt)
        if low is not None:
            check_number(low, dt)
        if high is not None:
            check_number(high, dt)
        return s

    def of_tensors(self, args: tuple[Any, ...], low: Any, high: Any) -> Any:
        if not (passes(low, high) and passes(high, low)):
            types = [type_name(a) for a in args[1:]]
            shown = ", ".join([f"!{t}!" for t in types])
            why = f"      didn't match because some of the arguments have invalid types: ({shown})\n"
            raise TypeError(
                f"{self.name}() received an invalid combination of arguments - got ({', '.join(types)}), but expected "
                f"one of:\n * (Tensor min = None, Tensor max = None)\n{why}"
                f" * (Number min = None, Number max = None)\n{why}")
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        dt = s.dtype
        one = low is None or high is None
        if ((INTS | FLOATS | BOOL if one else INTS | FLOATS) >> dt.code) & 1 == 0:
            if args[0]._dtype.is_complex and self.name == "clamp":
                raise NotImplementedError("clamp is not supported for complex types")
            raise not_implemented("minimum_cpu" if low is None else "maximum_cpu" if high is None else "clamp_cpu", dt)
        return s


def passes(bound: Any, other: Any) -> bool:
    """Beside a number only a tensor without dimensions is taken, as if it were a number."""
    return other is None or isinstance(other, TensorBase) or not isinstance(bound, TensorBase) or len(bound._shape) == 0


@final
class Where(Rule):
    """The condition takes part in the shape, not in the dtype."""

    overlap_first = True

    def infer(self, args: tuple[Any, ...]) -> Any:
        c = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(c, TensorBase)
        if c._dtype is not bool_:
            check_condition(c._dtype)
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            if (a._dtype is b._dtype and a._shape == b._shape and c._shape == a._shape and is_contiguous(a)
                    and is_contiguous(b) and is_contiguous(c)):
                return Spec(a._shape, contiguous_strides(a._shape), a._dtype, a._dtype, a._device)
        tensors: list[TensorBase] = [c]
        dim_dt: dtype | None = None
        zero_dt: dtype | None = None
        wrapped: dtype | None = None
        for i in range(1, 3):
            x = args[i]
            if isinstance(x, TensorBase):
                tensors.append(x)
                if len(x._shape) > 0:
                    dim_dt = x._dtype if dim_dt is None else promoted(dim_dt, x._dtype)
                else:
                    zero_dt = x._dtype if zero_dt is None else promoted(zero_dt, x._dtype)
            else:
                d = number_dtype(x)
                wrapped = d if wrapped is None else promoted(wrapped, d)
        dt = result_type_of(dim_dt, zero_dt, wrapped)
        if dt.itemsize != 2 or dt.is_integer:
            for i in range(1, 3):
                if not isinstance(args[i], TensorBase):
                    check_number(args[i], dt)
        shape = broadcast(tensors)
        return Spec(shape, self.strides(shape, tensors, dt, wrapped is not None), dt, dt, c._device)

    def strides(self, shape: tuple[int, ...], tensors: list[TensorBase], dt: dtype, number: bool) -> tuple[int, ...]:
        """The alternatives are cast first; a number is taken for a tensor of another shape."""
        if 1 not in shape:
            return ordered_strides(shape, tensors)
        cast = tensors[:1] + [recast(t) if is_recast(t, dt) else t for t in tensors[1:]]
        if number:
            return strides_in_order(shape, [expand_strides(t, shape) for t in cast])
        return ordered_strides(shape, cast)


def check_condition(dt: dtype) -> None:
    if dt is uint8:
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.")
    else:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {dt.scalar_name}")


@final
class MaskedFill(Rule):
    """A row-major result of self's dtype."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        mask = args[1]
        value = args[2]
        assert isinstance(t, TensorBase) and isinstance(mask, TensorBase)
        shape = t._shape if t._shape == mask._shape else broadcast_shapes(mask._shape, t._shape)
        if mask._dtype is not bool_:
            raise RuntimeError(
                f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_name(mask._dtype)}")
        dt = t._dtype
        if isinstance(value, TensorBase):
            if len(value._shape) != 0:
                raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                                   f"{len(value._shape)} dimension(s).")
            if value._dtype.is_complex:
                check_number(1j, dt)
        else:
            check_number(value, dt)
        if ((ARITHMETIC | COMPLEX_HALF) >> dt.code) & 1 == 0:
            raise not_implemented("masked_fill", dt)
        return Spec(shape, contiguous_strides(shape), dt, dt, t._device)

    def infer_inplace(self, args: tuple[Any, ...]) -> Any:
        """Of two shapes that do not fit, the written tensor's comes first; a new result names the mask first."""
        t = args[0]
        mask = args[1]
        assert isinstance(t, TensorBase) and isinstance(mask, TensorBase)
        if t._shape != mask._shape and mask._dtype is bool_:
            broadcast_shapes(t._shape, mask._shape)
        return self.infer(args)


@final
class Lerp(Rule):
    """No promotion: the operands must have one dtype."""

    overlap_first = True

    def __init__(self, inner: Rule) -> None:
        self.inner: Final = inner

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        end = args[1]
        weight = args[2]
        assert isinstance(t, TensorBase) and isinstance(end, TensorBase)
        dt = t._dtype
        if end._dtype is not dt:
            raise RuntimeError(f"expected dtype {cpp_name(dt)} for `end` but got dtype {cpp_name(end._dtype)}")
        kernel = "lerp_kernel_scalar"
        if isinstance(weight, TensorBase):
            kernel = "lerp_kernel_tensor"
            if weight._dtype is not dt and len(weight._shape) > 0:
                raise RuntimeError(
                    f"expected dtype {cpp_name(dt)} for `weight` but got dtype {cpp_name(weight._dtype)}")
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        if ((FLOATS | COMPLEX) >> dt.code) & 1 == 0:
            raise not_implemented(kernel, dt)
        if isinstance(weight, complex):
            check_number(weight, dt)
        if not isinstance(weight, TensorBase):
            check_factor(weight, dt, s.device)
        return Spec(s.shape, s.stride, dt, dt, s.device)


_ADDCDIV: Final = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for "
    "float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), "
    "for all dtypes.")


@final
class AddScaled(Rule):
    """addcmul and addcdiv."""

    overlap_first = True

    def __init__(self, inner: Rule, divides: bool) -> None:
        self.inner: Final = inner
        self.divides: Final = divides

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[1]
        b = args[2]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if self.divides and not a._dtype.is_inexact and not b._dtype.is_inexact:
            raise RuntimeError(_ADDCDIV)
        s = self.inner.infer(args)
        assert isinstance(s, Spec)
        mask = ARITHMETIC & ~BOOL if self.divides else (ARITHMETIC & ~BOOL) | COMPLEX_HALF
        if (mask >> s.dtype.code) & 1 == 0:
            raise not_implemented("addcdiv_cpu_out" if self.divides else "addcmul_cpu_out", s.dtype)
        check_number(args[3], s.dtype)
        return s


@final
class Choose(Rule):
    """One of several rules, by the value of an argument; `text` refuses other values, with {} for the value."""

    def __init__(self, position: int, rules: dict[Any, Rule], text: str) -> None:
        self.position: Final = position
        self.rules: Final = rules
        self.text: Final = text

    def infer(self, args: tuple[Any, ...]) -> Any:
        rule = self.rules.get(args[self.position])
        if rule is None:
            raise RuntimeError(self.text.replace("{}", str(args[self.position])))
        return rule.infer(args)
