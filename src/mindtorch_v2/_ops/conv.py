"""Convolutions.

Invariant: one row, `convolution`, serves every rank, plain and transposed; its backward row is written in terms of the
two rows themselves, because a convolution is linear in its input and in its weight.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype_names import cpp_name, tensor_type
from .._strides import contiguous_strides, format_strides
from .composites.conv import ConvOf, check_weight, expand, is_batch
from .rules.base import KeptRule, like
from .rules.layout import suggested_format
from .table import composite, op

Ints = tuple[int, ...]
_PAD = registry.get("constant_pad_nd")


def _by(values: Ints) -> str:
    return " x ".join(map(str, values))


def _empty_kernel(weight: list[int], transposed: bool, dilated: bool) -> str:
    """Each of PyTorch's kernels has words of its own."""
    size = weight[2:]
    if transposed and len(size) == 3:
        return ("non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor "
                f"expected for weight, but got: {weight}")
    if len(size) == 3 and not dilated:
        return f"kernel size should be greater than zero, but got: {size[0]} x {size[1]} x {size[2]} (TxHxW)"
    height, width = size if len(size) == 2 else (1, size[-1])
    if dilated and not transposed:
        return f"kernel size should be greater than zero, but got {size if len(size) > 1 else [height, width]}"
    return f"kernel size should be greater than zero, but got kernel_height: {height} kernel_width: {width}"


def _check(x: Any, w: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
           output_padding: Ints, groups: int) -> None:
    """What PyTorch refuses, in its order and words."""
    check_weight(w)
    shape, kernel = list(x._shape), list(w._shape)
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d < 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if 0 in dilation:
        raise RuntimeError("dilation should be greater than zero" + _dilations(dilation, transposed))
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(shape) != len(kernel):
        raise RuntimeError(f"Expected {len(kernel)}-dimensional input for {len(kernel)}-dimensional weight {kernel}, "
                           f"but got {len(shape)}-dimensional input of size {shape} instead")
    if kernel[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           f"weight of size {kernel} instead")
    if kernel[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           f"got weight of size [{kernel}] instead")
    given = f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {kernel}"
    wanted = kernel[0] if transposed else kernel[1] * groups
    if shape[1] != wanted:
        raise RuntimeError(f"{given}, expected input{shape} to have {wanted} channels, but got {shape[1]} channels "
                           "instead")
    results = kernel[1] * groups if transposed else kernel[0]
    if bias is not None and bias._shape != (results,):
        head = given if transposed else f"Given weight of size {kernel}"
        raise RuntimeError(f"{head}, expected bias to be 1-dimensional with {results} elements, but got bias of size "
                           f"{list(bias._shape)} instead")
    if 0 in kernel[2:] and x._device.type != "meta":  # which PyTorch's meta device computes
        raise RuntimeError(_empty_kernel(kernel, transposed, any(d != 1 for d in dilation)))
    if not transposed:
        padded = tuple(s + 2 * p for s, p in zip(shape[2:], padding))
        reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel[2:]))
        if any(s < k for s, k in zip(padded, reach)):
            raise RuntimeError(f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
                               f"({_by(reach)}). Kernel size can't be greater than actual input size")
    if w._dtype is not x._dtype:
        if x._dtype.is_complex or x._dtype.name == "bfloat16":
            rest = "" if x._dtype.is_complex else " or input should be a MKLDNN tensor and weight is a dense tensor"
            found, given = tensor_type(x._dtype, x._device), tensor_type(w._dtype, w._device)
            raise RuntimeError(f"Input type ({found}) and weight type ({given}) should be the same{rest}")
        raise RuntimeError(f"expected scalar type {x._dtype.scalar_name} but found {w._dtype.scalar_name}")
    if bias is not None and bias._dtype is not x._dtype:
        raise RuntimeError(f"Input type ({cpp_name(x._dtype)}) and bias type ({cpp_name(bias._dtype)}) "
                           "should be the same")
    if transposed and any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        given = " ".join(_sides(name, values) for name, values in (
            ("output_padding", output_padding), ("stride", stride), ("dilation", dilation)))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {given}")


def _sides(name: str, values: Ints, join: str = " ") -> str:
    """`stride_height: 1 stride_width: 2`; one dimension is a plane that is one high."""
    values = values if len(values) > 1 else (0 if name == "output_padding" else 1, *values)
    return join.join(f"{name}_{side}: {v}" for side, v in zip(("depth", "height", "width")[3 - len(values):], values))


def _dilations(values: Ints, transposed: bool) -> str:
    if transposed:
        return f", but got {_sides('dilation', values, ', ')}"
    return f", but got {[1, *values] if len(values) == 1 else list(values)}"


def _strides(shape: Ints, x: Any, w: Any) -> Ints:
    """Channels move fastest in the result if they do in the input or in the weight."""
    if 0 in shape:
        return contiguous_strides(shape)
    found = suggested_format(x)
    return format_strides(shape, suggested_format(w) if found is None else found)


def _convolution_meta(input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints,
                      transposed: bool, output_padding: Ints, groups: int) -> Spec:
    _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    kernel, places = weight._shape[2:], []
    rank = len(kernel)
    stride, padding = expand(stride, rank, "stride"), expand(padding, rank, "padding")
    dilation, output_padding = expand(dilation, rank, "dilation"), expand(output_padding, rank, "output_padding")
    for i, n in enumerate(input._shape[2:]):
        reach = dilation[i] * (kernel[i] - 1) + 1
        if transposed:
            places.append((n - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i])
        else:
            places.append((n + 2 * padding[i] - reach) // stride[i] + 1)
    channels = weight._shape[1] * groups if transposed else weight._shape[0]
    if input._shape[1] == 0 and not transposed:
        channels = 0  # PyTorch computes nothing from nothing, and leaves the bias out too
    shape = (input._shape[0], channels, *places)
    if any(n <= 0 for n in places):
        raise RuntimeError(f"Given input size per channel: ({_by(input._shape[2:])}). Calculated output size per "
                           f"channel: ({_by(tuple(places))}). Output size is too small")
    return Spec(shape, _strides(shape, input, weight), input._dtype, input._dtype, input._device)


def _check_gradient(grad_output: Any, shape: Ints) -> None:
    """PyTorch computes sequences as images of one row, and names their dimensions so."""
    got = grad_output._shape
    if got == shape:
        return
    shift = len(shape) == 3
    for i, n in enumerate(shape):
        if len(got) != len(shape) or got[i] != n:
            at, rank = i + (shift and i > 1), len(shape) + shift
            raise RuntimeError(
                f"Expected a tensor of dimension {rank} and tensor.size[{at}] == {n} but got: dimension "
                f"{len(got) + shift} and tensor.size[{at}] = {got[i] if i < len(got) else 0}")


def _backward_meta(grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Ints, padding: Ints,
                   dilation: Ints, transposed: bool, output_padding: Ints, groups: int, output_mask: Any) -> list[Spec]:
    check_weight(weight)
    if groups <= 0:
        raise RuntimeError(f"expected groups to be greater than 0, but got groups={groups}")
    rank = len(weight._shape) - 2
    _check(input, weight, None, expand(stride, rank, "stride"), expand(padding, rank, "padding"),
           expand(dilation, rank, "dilation"), transposed, expand(output_padding, rank, "output_padding"), groups)
    _check_gradient(grad_output, _convolution_meta(input, weight, None, stride, padding, dilation, transposed,
                                                   output_padding, groups).shape)
    nothing = like(input, (0,))
    return [
        Spec(input._shape, _strides(input._shape, input, weight), input._dtype, input._dtype, input._device)
        if output_mask[0] else nothing,
        Spec(weight._shape, _strides(weight._shape, input, weight), weight._dtype, weight._dtype, weight._device)
        if output_mask[1] else nothing,
        like(grad_output, bias_sizes or (grad_output._shape[1],)) if output_mask[2] else nothing]


def _double_backward(grads: Any, needs: Any, grad_output: Any, input: Any, weight: Any, stride: Ints, padding: Ints,
                     dilation: Ints, transposed: bool, output_padding: Ints, groups: int, output_mask: Any) -> Any:
    """The backward pass is linear in each of its operands: the same three products with one operand exchanged."""
    how = (stride, padding, dilation, transposed, output_padding, groups)
    into_input, into_weight, into_bias = (g if m else None for g, m in zip(grads, output_mask))
    grad: Any = None
    if needs[0]:
        parts = []
        if into_input is not None:
            parts.append(CONVOLUTION.call((into_input, weight, None, *how)))
        if into_weight is not None:
            parts.append(CONVOLUTION.call((input, into_weight, None, *how)))
        if into_bias is not None:
            parts.append(into_bias.reshape((1, -1) + (1,) * (len(input._shape) - 2)).expand(grad_output._shape))
        for part in parts:
            grad = part if grad is None else grad + part
    to_input = to_weight = None
    if needs[1] and into_weight is not None:
        to_input = BACKWARD.call((grad_output, input, into_weight, None, *how, (True, False, False)))[0]
    if needs[2] and into_input is not None:
        to_weight = BACKWARD.call((grad_output, into_input, weight, None, *how, (False, True, False)))[1]
    return grad, to_input, to_weight


BACKWARD: Op = op(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)", meta=_backward_meta, function=False, method=False,
    grad={("grad_output", "input", "weight"): _double_backward})


def _backward(g: Any, needs: Any, input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints,
              transposed: bool, output_padding: Ints, groups: int) -> Any:
    sizes = None if bias is None else tuple(bias._shape)
    return BACKWARD.call((g, input, weight, sizes, stride, padding, dilation, transposed, output_padding, groups,
                          tuple(needs)))


CONVOLUTION: Op = op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    meta=KeptRule(_convolution_meta), method=False, grad={("input", "weight", "bias"): _backward})


# -- one function for each rank ---------------------------------------------------------------------------------------
def _same(plain: Op, name: str, rank: int, x: Any, w: Any, bias: Any, stride: Ints, padding: str, dilation: Ints,
          groups: int) -> Any:
    if padding == "valid":
        return plain.call((x, w, bias, stride, (0,), dilation, groups))
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    batched = is_batch(name, rank, x)
    if len(w._shape) != rank + 2:
        check_weight(w)
        raise RuntimeError(f"Expected {len(w._shape)}-dimensional input for {len(w._shape)}-dimensional weight"
                           f"{list(w._shape)}, but got {rank + 2}-dimensional input of size "
                           f"{list(x._shape if batched else (1, *x._shape))} instead")
    reach = tuple(d * (k - 1) for d, k in zip(expand(dilation, rank, "dilation"), w._shape[2:]))
    # Where the padding cannot be shared out evenly, the one more is at the end.
    if any(r % 2 for r in reach):
        extra: list[int] = []
        for r in reversed(reach):
            extra += [0, r % 2]
        x = _PAD.call((x, tuple(extra), 0))
    return plain.call((x, w, bias, stride, tuple(r // 2 for r in reach), dilation, groups))


def _declare(rank: int) -> None:
    name, across = f"conv{rank}d", f"conv_transpose{rank}d"
    head = "Tensor input, Tensor weight, Tensor? bias=None"

    def named(input: Any, weight: Any, bias: Any, stride: Ints, padding: str, dilation: Ints, groups: int) -> Any:
        return _same(plain, name, rank, input, weight, bias, stride, padding, dilation, groups)

    plain = composite(
        f"{name}({head}, SymInt[{rank}] stride=1, SymInt[{rank}] padding=0, SymInt[{rank}] dilation=1, "
        "SymInt groups=1) -> Tensor", ConvOf(CONVOLUTION, name, rank, False))
    composite(f"{name}.padding({head}, SymInt[{rank}] stride=1, str padding='valid', SymInt[{rank}] dilation=1, "
              "SymInt groups=1) -> Tensor", named)
    composite(f"{across}({head}, SymInt[{rank}] stride=1, SymInt[{rank}] padding=0, SymInt[{rank}] output_padding=0, "
              f"SymInt groups=1, SymInt[{rank}] dilation=1) -> Tensor", ConvOf(CONVOLUTION, across, rank, True))


for _rank in (1, 2, 3):
    _declare(_rank)
