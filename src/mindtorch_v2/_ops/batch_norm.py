"""Batch, group and instance normalization.

Invariant: both norms are one computation over a view of the input: statistics over some dimensions, parameters along
others. What is said here in terms of operators is right on every device and differentiable twice.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from .._backends.common.runtime import copy_same_device
from .._core_operators import CORE
from .._dispatch.keys import BATCHED, LAZY
from .._dispatch.op import Op, Spec
from .._dtype import uint8
from .._strides import CHANNELS_LAST, CHANNELS_LAST_3D, format_strides
from .._tensor_base import bump, is_contiguous, numel
from .composites.formulas import in_format, laid_out, wide
from .rules.base import KeptRule, like, size_at, spec
from .rules.layout import in_format_of, is_contiguous_as, suggested_format
from .rules.norm import check_parameters
from .table import composite, op

Ints = tuple[int, ...]


class Norm(NamedTuple):
    """How an input is seen: its shape, the dimensions of the statistics, those the parameters do not have."""

    shape: Ints
    statistics: Ints
    outside: Ints
    parameters: Ints
    size: int


def batch_view(x: Any) -> Norm:
    n, c = x._shape[:2]
    places = 1
    for s in x._shape[2:]:
        places *= s
    return Norm((n, c, places), (0, 2), (0, 2), (1, c, 1), n * places)


def group_view(n: int, c: int, places: int, group: int) -> Norm:
    each = c // group if group else 0
    return Norm((n, group, each, places), (2, 3), (0, 3), (1, group, each, 1), each * places)


def _shaped(t: Any, shape: Ints) -> Any:
    return None if t is None else wide(t).reshape(shape)


def _jacobian(v: Norm, t: Any, hat: Any, rstd: Any) -> Any:
    """What normalizing does to a small change of its input; symmetric, so also what it does to a gradient."""
    sums = t.sum(v.statistics, True)
    return (t * v.size - sums - hat * (t * hat).sum(v.statistics, True)) * (rstd / v.size)


def _gradients(v: Norm, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, fixed: bool, mask: Any) -> list[Any]:
    """Gradients of input, weight and bias as seen through the view; None where the mask says so."""
    hat = (x - mean) * rstd
    out: list[Any] = [None, None, None]
    if mask[0]:
        scaled = g if weight is None else g * weight
        out[0] = scaled * rstd if fixed else _jacobian(v, scaled, hat, rstd)
    if mask[1]:
        out[1] = (g * hat).sum(v.outside, True)
    if mask[2]:
        out[2] = g.sum(v.outside, True)
    return out


def _second(v: Norm, grads: Any, needs: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any,
            fixed: bool) -> list[Any]:
    """Gradients of the backward pass with respect to its gradient, its input and the weight."""
    d, dw, db = grads
    hat = (x - mean) * rstd
    into: list[Any] = [None, None, None]

    def add(i: int, part: Any) -> None:
        into[i] = part if into[i] is None else into[i] + part

    def total(t: Any) -> Any:
        return t.sum(v.statistics, True)

    if d is not None:
        passed = d * rstd if fixed else _jacobian(v, d, hat, rstd)
        add(0, passed if weight is None else passed * weight)
        if needs[2] and weight is not None:
            add(2, (g * passed).sum(v.outside, True))
        if needs[1] and not fixed:
            scaled = g if weight is None else g * weight
            ds, gs, dh, gh = total(d), total(scaled), total(d * hat), total(scaled * hat)
            n = v.size
            inner = ds * gs / n - total(d * scaled) + dh * gh * (3.0 / n)
            add(1, (hat * inner + dh * (gs / n - scaled) + gh * (ds / n - d)) * (rstd * rstd / n))
    if dw is not None:
        add(0, dw * hat)
        if needs[1]:
            add(1, g * dw * rstd if fixed else _jacobian(v, g * dw, hat, rstd))
    if db is not None:
        add(0, db.expand(g._shape))
    return into


def _back(t: Any, shape: Ints, dt: Any) -> Any:
    return None if t is None else t.reshape(shape).to(dt)


# -- batch norm -------------------------------------------------------------------------------------------------------
def _statistics_dtype(input: Any, *parameters: Any) -> Any:
    """Parameters wider than a two-byte input make its statistics as wide."""
    for p in parameters:
        if p is not None and p._dtype is not input._dtype:
            return p._dtype
    return input._dtype


def _check_batch(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool) -> None:
    if len(input._shape) < 2:
        raise RuntimeError("batch_norm: expected an input with at least 2 dimensions, got "
                           f"{len(input._shape)}")
    if not input._dtype.is_floating_point:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{input._dtype.scalar_name}'")
    c = input._shape[1]
    for t, name in ((running_mean, "running_mean"), (running_var, "running_var"), (weight, "weight"), (bias, "bias")):
        if t is not None and (len(t._shape) != 1 or t._shape[0] != c):
            count = 1
            for s in t._shape:
                count *= s
            raise RuntimeError(f"{name} should contain {c} elements not {count}")
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    if input._device.type == "cpu":  # PyTorch's other devices, and meta, leave that to their kernels
        check_parameters(input, (weight, bias, running_mean, running_var))


def _format(input: Any, *others: Any) -> Any:
    """The memory format of a result. Where everything lies in order, PyTorch asks which order it is (the plain one
    first), else what the strides look like."""
    n = len(input._shape)
    if not all(t is None or is_contiguous(t) or suggested_format(t) is not None for t in others):
        return suggested_format(input)
    if is_contiguous(input):
        return None
    form = CHANNELS_LAST if n == 4 else CHANNELS_LAST_3D
    return form if is_contiguous_as(input, form) else suggested_format(input)


def _formatted(input: Any, *others: Any) -> Spec:
    shape = input._shape
    stride = format_strides(shape, None if 0 in shape else _format(input, *others))
    return Spec(shape, stride, input._dtype, input._dtype, input._device)


def _batch_meta(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                momentum: float, eps: float) -> list[Spec]:
    _check_batch(input, weight, bias, running_mean, running_var, training)
    # PyTorch's meta device keeps statistics that the CPU does not compute.
    kept = spec((input._shape[1] if training or input._device.type == "meta" else 0,),
                _statistics_dtype(input, weight, bias, running_mean, running_var), input._device)
    return [_formatted(input, weight, bias, running_mean, running_var), kept, kept]


_RUNNING_SHARED = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap")


def write_running(running: Any, value: Any) -> None:
    """A new value of running statistics."""
    if not (running._keys | value._keys) & (BATCHED | LAZY):
        copy_same_device(running, value.to(running._dtype))
    elif running._keys & (BATCHED | LAZY):
        CORE.copy_.call((running, value, False))
    else:
        raise RuntimeError(_RUNNING_SHARED)


def update_running(running: Any, seen: Any, momentum: float) -> None:
    """Without a new version, as PyTorch's kernels: what was computed from the old value may still be differentiated."""
    old = wide(running)
    write_running(running, old * (1 - momentum) + seen.to(old._dtype) * momentum)


def batch_norm_in_parts(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                        momentum: float, eps: float) -> Any:
    v = batch_view(input)
    kept = _statistics_dtype(input, weight, bias, running_mean, running_var)
    x = wide(input).reshape(v.shape)
    if training:
        mean = x.mean(v.statistics, True)
        centred = x - mean
        var = centred.square().mean(v.statistics, True)
        if running_mean is not None:
            update_running(running_mean, mean.reshape(-1), momentum)
        if running_var is not None:
            update_running(running_var, var.reshape(-1) * (v.size / max(v.size - 1, 1)), momentum)
    else:
        mean, var = _shaped(running_mean, v.parameters), _shaped(running_var, v.parameters)
    rstd = (var + eps).rsqrt()
    scale = rstd if weight is None else rstd * _shaped(weight, v.parameters)
    if training:
        # The mean comes off before it is scaled: a large scale would magnify its rounding.
        factor = scale.to(x._dtype)
        out = centred * factor if bias is None else _shaped(bias, v.parameters).to(x._dtype).addcmul(centred, factor)
    else:
        shift = -mean * scale if bias is None else _shaped(bias, v.parameters) - mean * scale
        out = shift.to(x._dtype).addcmul(x, scale.to(x._dtype))
    out = laid_out(out.reshape(input._shape).to(input._dtype), input,
                   _format(input, weight, bias, running_mean, running_var))
    if not training:
        nothing = input.new_empty((0,), dtype=kept)
        return out, nothing, nothing
    return out, mean.reshape(-1).to(kept), rstd.reshape(-1).to(kept)


def _moments(v: Norm, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any, train: bool,
             eps: float) -> tuple[Any, Any]:
    if train:
        return _shaped(save_mean, v.parameters), _shaped(save_invstd, v.parameters)
    return _shaped(running_mean, v.parameters), (_shaped(running_var, v.parameters) + eps).rsqrt()


def _parameter_dtype(input: Any, weight: Any) -> Any:
    return input._dtype if weight is None else weight._dtype


def batch_backward_in_parts(grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                            save_mean: Any, save_invstd: Any, train: bool, eps: float, output_mask: Any) -> Any:
    v = batch_view(input)
    mean, rstd = _moments(v, running_mean, running_var, save_mean, save_invstd, train, eps)
    dx, dw, db = _gradients(v, wide(grad_out).reshape(v.shape), wide(input).reshape(v.shape), mean, rstd,
                            _shaped(weight, v.parameters), not train, output_mask)
    nothing, dt, c = input.new_empty((0,)), _parameter_dtype(input, weight), (input._shape[1],)
    return (nothing if dx is None else laid_out(_back(dx, input._shape, input._dtype), input, _format(input, grad_out)),
            nothing if dw is None else _back(dw, c, dt), nothing if db is None else _back(db, c, dt))


def _check_channels(operator: str, name: str, given: Any, channels: int) -> None:
    if numel(given) != channels:
        raise RuntimeError(f"{operator}: expected {name} of {channels} elements, one for each channel, got "
                           f"{list(given._shape)}")


def _batch_backward_meta(grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any,
                         save_invstd: Any, train: bool, eps: float, output_mask: Any) -> list[Spec]:
    size_at(input, 1)
    if grad_out._shape != input._shape:
        raise RuntimeError(f"native_batch_norm_backward: expected grad_out of shape {list(input._shape)}, got "
                           f"{list(grad_out._shape)}")
    needed = dict(save_mean=save_mean, save_invstd=save_invstd) if train else dict(
        running_mean=running_mean, running_var=running_var)
    for name, given in needed.items():
        if given is None:
            raise RuntimeError(f"native_batch_norm_backward: '{name}' must be given where train is {train}")
        _check_channels("native_batch_norm_backward", name, given, input._shape[1])
    if weight is not None:
        _check_channels("native_batch_norm_backward", "weight", weight, input._shape[1])
        check_parameters(input, (weight,))
    for t in (grad_out, input):
        if not t._dtype.is_floating_point:
            raise NotImplementedError(f"\"batch_norm_backward_cpu\" not implemented for '{t._dtype.scalar_name}'")
    nothing, dt = like(input, (0,)), _parameter_dtype(input, weight)
    parameter = like(input, (input._shape[1],), dt)
    return [_formatted(input, grad_out) if output_mask[0] else nothing, parameter if output_mask[1] else nothing,
            parameter if output_mask[2] else nothing]


def _batch_double(grads: Any, needs: Any, grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                  save_mean: Any, save_invstd: Any, train: bool, eps: float, output_mask: Any) -> Any:
    v = batch_view(input)
    mean, rstd = _moments(v, running_mean, running_var, save_mean, save_invstd, train, eps)
    given = [_shaped(g, s) if m else None
             for g, s, m in zip(grads, (v.shape, v.parameters, v.parameters), output_mask)]
    into = _second(v, given, needs, wide(grad_out).reshape(v.shape), wide(input).reshape(v.shape), mean, rstd,
                   _shaped(weight, v.parameters), not train)
    shapes = (grad_out._shape, input._shape, (input._shape[1],))
    return tuple(None if t is None else t.reshape(s) for t, s in zip(into, shapes))


BATCH_BACKWARD: Op = op(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)", meta=KeptRule(_batch_backward_meta), function=False, method=False,
    kernel=batch_backward_in_parts, grad={("grad_out", "input", "weight"): _batch_double})


def _batch_grad(g: Any, needs: Any, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                result1: Any, result2: Any, training: bool, eps: float) -> Any:
    return BATCH_BACKWARD.call((g, input, weight, running_mean, running_var, result1, result2, training, eps,
                                tuple(needs)))


NATIVE_BATCH: Op = op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor result0, Tensor result1, Tensor result2)",
    meta=KeptRule(_batch_meta), method=False, kernel=batch_norm_in_parts, out=True, nondiff=("result1", "result2"),
    grad={("input", "weight", "bias"): _batch_grad})


def _batch(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
           eps: float, cudnn_enabled: bool) -> Any:
    if 0 in input._shape:
        if len(input._shape) > 1:
            _check_batch(input, weight, bias, running_mean, running_var, training)
        # Nothing to normalize: the parameters still take part, with gradients of zero.
        out = input.clone()
        shape = (1, -1) + (1,) * (len(input._shape) - 2)
        out = out if weight is None else out * weight.reshape(shape)
        return out if bias is None else out + bias.reshape(shape)
    return NATIVE_BATCH.call((input, weight, bias, running_mean, running_var, training, momentum, eps))[0]


BATCH = composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor", _batch, method=False)


# The names under which programs that were traced ask for it.
_LEGIT = "Tensor input, Tensor? weight, Tensor? bias"
_RUNNING = "Tensor running_mean, Tensor running_var"
composite(f"_native_batch_norm_legit({_LEGIT}, {_RUNNING}, bool training, float momentum, float eps) "
          "-> (Tensor, Tensor, Tensor)",
          lambda input, weight, bias, running_mean, running_var, training, momentum, eps: NATIVE_BATCH.call(
              (input, weight, bias, running_mean, running_var, training, momentum, eps)), out=True, method=False)
composite(f"_native_batch_norm_legit.no_stats({_LEGIT}, bool training, float momentum, float eps) "
          "-> (Tensor, Tensor, Tensor)",
          lambda input, weight, bias, training, momentum, eps: NATIVE_BATCH.call(
              (input, weight, bias, None, None, training, momentum, eps)), out=True, method=False)


def _with_update(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float,
                 eps: float) -> Any:
    made = NATIVE_BATCH.call((input, weight, bias, running_mean, running_var, True, momentum, eps))
    return (*made, input.new_empty((0,), dtype=uint8))


composite(f"_batch_norm_with_update({_LEGIT}, {_RUNNING}, float momentum, float eps) "
          "-> (Tensor, Tensor, Tensor, Tensor)", _with_update, function=False, method=False)


def _instance(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
              momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if len(input._shape) < 2:
        at = len(input._shape)
        raise IndexError("Dimension specified as 0 but tensor has no dimensions" if at == 0 else
                         "Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    n, c = input._shape[:2]

    def each(t: Any) -> Any:
        return None if t is None else t.repeat((n,))

    mean, var = each(running_mean), each(running_var)
    seen = input.contiguous().reshape((1, n * c, *input._shape[2:]))
    out = BATCH.call((seen, each(weight), each(bias), mean, var, use_input_stats, momentum, eps, cudnn_enabled))
    for running, repeated in ((running_mean, mean), (running_var, var)):
        if running is not None and use_input_stats:
            write_running(running, repeated.detach().reshape((n, c)).mean((0,)))
            bump(running)
    return out.reshape(input._shape)


composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor", _instance, method=False)


# -- group norm -------------------------------------------------------------------------------------------------------
def _group_meta(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> list[Spec]:
    check_groups(input, group, weight, bias, C)
    if numel(input) != N * C * HxW:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")
    kept = spec((N, group), _statistics_dtype(input, weight, bias), input._device)
    return [in_format_of(input, input._shape), kept, kept]


def check_groups(input: Any, groups: int, weight: Any, bias: Any, channels: int) -> None:
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(input._shape)} and num_groups={groups}")
    for t, name in ((weight, "weight"), (bias, "bias")):
        if t is not None and t._shape != (channels,):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but "
                               f"got {name} of shape {list(t._shape)} and input of shape {list(input._shape)}")
    if not input._dtype.is_floating_point:
        raise NotImplementedError(f"\"GroupNormKernelImpl\" not implemented for '{input._dtype.scalar_name}'")
    if input._device.type == "cpu":
        check_parameters(input, (weight, bias))


def group_norm_in_parts(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    v = group_view(N, C, HxW, group)
    kept = _statistics_dtype(input, weight, bias)
    x = wide(input).reshape(v.shape)
    mean = x.mean(v.statistics, True)
    centred = x - mean
    rstd = (centred.square().mean(v.statistics, True) + eps).rsqrt()
    if HxW == 0:
        mean = mean.zero_()  # the sum of nothing, which PyTorch does not divide
    out = centred * rstd
    if weight is not None:
        out = out * _shaped(weight, v.parameters)
    if bias is not None:
        out = out + _shaped(bias, v.parameters)
    out = in_format(out.reshape(input._shape).to(input._dtype), input)
    return out, mean.reshape((N, group)).to(kept), rstd.reshape((N, group)).to(kept)


def group_backward_in_parts(grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
                            group: int, output_mask: Any) -> Any:
    v = group_view(N, C, HxW, group)
    dx, dw, db = _gradients(v, wide(grad_out).reshape(v.shape), wide(input).reshape(v.shape),
                            wide(mean).reshape((N, group, 1, 1)), wide(rstd).reshape((N, group, 1, 1)),
                            _shaped(weight, v.parameters), False, output_mask)
    nothing, dt = input.new_empty((0,)), _parameter_dtype(input, weight)
    return (nothing if dx is None else in_format(_back(dx, input._shape, input._dtype), input),
            nothing if dw is None else _back(dw, (C,), dt), nothing if db is None else _back(db, (C,), dt))


def _check_group_backward(grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
                          group: int) -> None:
    name = "native_group_norm_backward"
    if min(N, C, HxW) < 0 or group < 1 or C % group:
        raise RuntimeError(f"{name}: {C} channels of {N} samples with {HxW} elements each are not divisible into "
                           f"{group} groups")
    if numel(input) != N * C * HxW or grad_out._shape != input._shape:
        raise RuntimeError(f"{name}: expected grad_out and input of one shape with {N * C * HxW} elements, got "
                           f"{list(grad_out._shape)} and {list(input._shape)}")
    for which, given in (("mean", mean), ("rstd", rstd)):
        if numel(given) != N * group:
            raise RuntimeError(f"{name}: expected {which} of {N * group} elements, one for each group, got "
                               f"{list(given._shape)}")
    if weight is not None and numel(weight) != C:
        raise RuntimeError("Expected !gamma.defined() || gamma.numel() == C to be true, but got false.  (Could this "
                           "error message be improved?  If so, please report an enhancement request to PyTorch.)")


def _group_backward_meta(grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
                         group: int, output_mask: Any) -> list[Spec]:
    _check_group_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group)
    nothing, parameter = like(input, (0,)), like(input, (C,), _parameter_dtype(input, weight))
    return [in_format_of(input, input._shape) if output_mask[0] else nothing, parameter if output_mask[1] else nothing,
            parameter if output_mask[2] else nothing]


def _group_double(grads: Any, needs: Any, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int,
                  HxW: int, group: int, output_mask: Any) -> Any:
    v = group_view(N, C, HxW, group)
    given = [_shaped(g, s) if m else None
             for g, s, m in zip(grads, (v.shape, v.parameters, v.parameters), output_mask)]
    into = _second(v, given, needs, wide(grad_out).reshape(v.shape), wide(input).reshape(v.shape),
                   wide(mean).reshape((N, group, 1, 1)), wide(rstd).reshape((N, group, 1, 1)),
                   _shaped(weight, v.parameters), False)
    return tuple(None if t is None else t.reshape(s) for t, s in zip(into, (grad_out._shape, input._shape, (C,))))


GROUP_BACKWARD: Op = op(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
    "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    meta=KeptRule(_group_backward_meta), function=False, method=False, kernel=group_backward_in_parts,
    grad={("grad_out", "input", "weight"): _group_double, "mean": None, "rstd": None})


def _group_grad(arrived: Any, needs: Any, input: Any, weight: Any, bias: Any, result1: Any, result2: Any, N: int,
                C: int, HxW: int, group: int) -> Any:
    g, of_mean, of_rstd = arrived
    into: list[Any] = [None, None, None]
    if g is not None:
        into = list(GROUP_BACKWARD.call((g, input, result1, result2, weight, N, C, HxW, group, tuple(needs))))
    if needs[0] and (of_mean is not None or of_rstd is not None):
        v = group_view(N, C, HxW, group)
        shape = (N, group, 1, 1)
        x = wide(input).reshape(v.shape)
        part = x.new_zeros(v.shape)
        if of_mean is not None:
            part = part + of_mean.reshape(shape) / v.size
        if of_rstd is not None:
            centred, rstd = x - result1.reshape(shape), result2.reshape(shape)
            part = part - of_rstd.reshape(shape) * rstd * rstd * rstd * centred / v.size
        part = part.reshape(input._shape)
        into[0] = part if into[0] is None else into[0] + part
    return tuple(into)


NATIVE_GROUP: Op = op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
    "float eps) -> (Tensor result0, Tensor result1, Tensor result2)", meta=KeptRule(_group_meta), method=False,
    kernel=group_norm_in_parts, grad={("input", "weight", "bias"): _group_grad})


def _group(input: Any, num_groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool) -> Any:
    if len(input._shape) < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received "
                           f"{len(input._shape)}")
    n, c = input._shape[:2]
    check_groups(input, num_groups, weight, bias, c)
    places = 1
    for s in input._shape[2:]:
        places *= s
    return NATIVE_GROUP.call((input, weight, bias, n, c, places, num_groups, eps))[0]


composite("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
          "bool cudnn_enabled=True) -> Tensor", _group, method=False)
