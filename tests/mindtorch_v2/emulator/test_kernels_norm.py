"""The emulator's softmax and normalizations against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, Built, Case, Maker, each, run  # noqa: E402
from ._chips import on_chip  # noqa: E402
from ._kernels import In, Out, assert_same, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
F = torch.nn.functional
aten = torch.ops.aten
EPS = 1e-3


def like(x: Any, *values: Any) -> list[Any]:
    """PyTorch's answers, computed in float64, in the dtype of x."""
    return [v.to(x.dtype).contiguous() for v in values]


def gradients(f: Any, g: Any, *inputs: Any) -> list[Any]:
    """Of f, computed in float64, in the dtype of the first input."""
    wide = [x.detach().double().requires_grad_() for x in inputs]
    return like(inputs[0], *torch.autograd.grad(f(*wide), wide, g.double()))


# -- softmax ---------------------------------------------------------------------------------------------------------
def soft(name: str, f: Any, dim: int, shape: tuple[int, ...] = (3, 4, 5)) -> list[Case]:
    def forward(t: Maker) -> Built:
        x = t(*shape)
        return {"self": x, "dim": dim}, {"out": like(x, f(x.double(), dim))[0]}

    def backward(t: Maker) -> Built:
        x, g = t(*shape), t(*shape)
        y = like(x, f(x.double(), dim))[0]
        kernel = aten._softmax_backward_data if "Log" not in name else aten._log_softmax_backward_data
        want = kernel(g.double(), y.double(), dim, torch.float64)
        return {"gradOutput": g, "output": y, "dim": dim}, {"out": like(x, want)[0]}

    return [Case(name, (*FLOATS, "float64"), forward), Case(name + "Backward", FLOATS, backward)]


def masked(t: Maker) -> tuple[Any, Any, Any]:
    x, mask = t(2, 3, 4, 5), t(2, 1, 4, 5, dtype="bool")
    mask = mask & (torch.arange(5) > 0)  # no line is masked as a whole
    return x, mask, torch.where(mask, -torch.inf, x.double() * 0.5).softmax(-1)


def scaled(t: Maker) -> Built:
    x, mask, want = masked(t)
    return {"x": x, "mask": mask, "scale": 0.5, "fixedTriuMask": False}, {"y": like(x, want)[0]}


def scaled_backward(t: Maker) -> Built:
    x, mask, want = masked(t)
    y, g = like(x, want)[0], t(2, 3, 4, 5)
    wide = aten._softmax_backward_data(g.double(), y.double(), -1, torch.float64) * 0.5
    return (
        {"gradOutput": g, "y": y, "mask": mask, "scale": 0.5, "fixTriuMask": False},
        {"out": like(x, wide.masked_fill(mask, 0))[0]},
    )


# -- layer norm ------------------------------------------------------------------------------------------------------
def statistics(x: Any, dims: tuple[int, ...]) -> tuple[Any, Any]:
    wide = x.double()
    return wide.mean(dims, keepdim=True), (wide.var(dims, correction=0, keepdim=True) + EPS).rsqrt()


def layer(name: str, affine: bool, wide_statistics: bool) -> Case:
    def build(t: Maker) -> Built:
        x, w, b = t(3, 4, 5), t(4, 5), t(4, 5)
        mean, rstd = statistics(x, (1, 2))
        y = F.layer_norm(x.double(), (4, 5), w.double() if affine else None, b.double() if affine else None, EPS)
        kind = torch.float32 if wide_statistics else x.dtype
        return (
            {
                "input": x,
                "normalizedShape": [4, 5],
                "weightOptional": w if affine else None,
                "biasOptional": b if affine else None,
                "eps": EPS,
                **({"implMode": 1} if "Mode" in name else {}),
            },
            {"out": like(x, y)[0], "meanOutOptional": mean.to(kind), "rstdOutOptional": rstd.to(kind)},
        )

    return Case(name, FLOATS, build)


def layer_backward(mask: list[bool]) -> Case:
    def build(t: Maker) -> Built:
        x, w, b, g = t(3, 4, 5), t(5), t(5), t(3, 4, 5)
        mean, rstd = (v.float() for v in statistics(x, (2,)))
        want = gradients(lambda x, w, b: F.layer_norm(x, (5,), w, b, EPS), g, x, w, b)
        given = {
            "gradOut": g,
            "input": x,
            "normalizedShape": [5],
            "mean": mean,
            "rstd": rstd,
            "weightOptional": w,
            "biasOptional": b,
            "outputMask": mask,
        }
        names = ("gradInputOut", "gradWeightOut", "gradBiasOut")
        return given, {n: v for n, v, on in zip(names, want, mask) if on}

    return Case("aclnnLayerNormBackward", FLOATS, build, 4)


def add_layer(t: Maker) -> Built:
    a, b, gamma, beta, bias = t(3, 4), t(3, 4), t(4), t(4), t(4)
    x = a.double() + b.double() + bias.double()
    mean, rstd = statistics(x, (1,))
    y = F.layer_norm(x, (4,), gamma.double(), beta.double(), EPS)
    return (
        {
            "x1": a,
            "x2": b,
            "gamma": gamma,
            "beta": beta,
            "biasOptional": bias,
            "epsilon": EPS,
            "additionalOutput": True,
        },
        {"yOut": like(a, y)[0], "meanOut": mean.float(), "rstdOut": rstd.float(), "xOut": like(a, x)[0]},
    )


def add_layer_grad(t: Maker) -> Built:
    dy, a, b, gamma, extra = t(3, 4), t(3, 4), t(3, 4), t(4), t(3, 4)
    x = a.double() + b.double()
    mean, rstd = statistics(x, (1,))
    dx, dgamma, dbeta = gradients(lambda x, w, b: F.layer_norm(x, (4,), w, b, EPS), dy, x, gamma, torch.zeros(4))
    return (
        {"dy": dy, "x1": a, "x2": b, "rstd": rstd.float(), "mean": mean.float(), "gamma": gamma, "dsumOptional": extra},
        {"dxOut": like(a, dx + extra.double())[0], "dgammaOut": dgamma.float(), "dbetaOut": dbeta.float()},
    )


def deep(t: Maker) -> Built:
    a, b, beta, gamma = t(3, 4), t(3, 4), t(4), t(4)
    x = 0.5 * a.double() + b.double()
    mean, rstd = statistics(x, (1,))
    y = F.layer_norm(x, (4,), gamma.double(), beta.double(), EPS)
    return (
        {"x": a, "gx": b, "beta": beta, "gamma": gamma, "alpha": 0.5, "epsilon": EPS},
        {"meanOut": mean.float(), "rstdOut": rstd.float(), "yOut": like(a, y)[0]},
    )


def deep_grad(t: Maker) -> Built:
    dy, a, b, gamma = t(3, 4), t(3, 4), t(3, 4), t(4)
    x = 0.5 * a.double() + b.double()
    mean, rstd = statistics(x, (1,))
    dx, dgamma, dbeta = gradients(lambda x, w, b: F.layer_norm(x, (4,), w, b, EPS), dy, x, gamma, torch.zeros(4))
    return (
        {"dy": dy, "x": a, "gx": b, "gamma": gamma, "mean": mean.float(), "rstd": rstd.float(), "alpha": 0.5},
        {
            "dxOut": like(a, 0.5 * dx)[0],
            "dgxOut": like(a, dx)[0],
            "dbetaOut": dbeta.float(),
            "dgammaOut": dgamma.float(),
        },
    )


# -- root mean square ------------------------------------------------------------------------------------------------
def rms(x: Any, gamma: Any) -> tuple[Any, Any]:
    wide = x.double()
    rstd = (wide.square().mean(-1, keepdim=True) + EPS).rsqrt()
    return wide * rstd * gamma.double(), rstd


def rms_norm(name: str) -> Case:
    def build(t: Maker) -> Built:
        x, gamma = t(3, 4, 8), t(8)
        y, rstd = rms(x, gamma.double() + ("Gemma" in name))
        return ({"x": x, "gamma": gamma, "epsilon": EPS}, {"yOut": like(x, y)[0], "rstdOut": rstd.float()})

    return Case(name, FLOATS, build)


def rms_norm_grad(t: Maker) -> Built:
    dy, x, gamma = t(3, 4), t(3, 4), t(4)
    rstd = rms(x, gamma)[1].float()
    dx, dgamma = gradients(lambda x, w: rms(x, w)[0], dy, x.double(), gamma.double())
    return (
        {"dy": dy, "x": x, "rstd": rstd.reshape(3), "gamma": gamma},
        {"dxOut": like(x, dx)[0], "dgammaOut": dgamma.float()},
    )


def add_rms(name: str) -> Case:
    def build(t: Maker) -> Built:
        a, b, gamma = t(3, 4), t(3, 4), t(4)
        x = a.double() + b.double()
        y, rstd = rms(x, gamma)
        more = {"rstdOut": rstd.float(), "xOut": like(a, x)[0]}
        if name == "aclnnInplaceAddRmsNorm":
            return (
                {"x1Ref": a, "x2Ref": b, "gamma": gamma, "epsilon": EPS},
                {"x1Ref": like(a, y)[0], "x2Ref": like(a, x)[0], "rstdOut": rstd.float()},
            )
        out = {"y1Out": y.float(), "y2Out": like(a, y)[0]} if "Cast" in name else {"yOut": like(a, y)[0]}
        return {"x1": a, "x2": b, "gamma": gamma, "epsilon": EPS}, {**out, **more}

    dtypes = FLOATS[1:] if "Cast" in name else FLOATS
    return Case(name, dtypes, build, layouts=("dense",) if "Inplace" in name else ("dense", "strided"))


# -- groups ----------------------------------------------------------------------------------------------------------
def grouped(x: Any, groups: int) -> tuple[Any, Any]:
    mean, rstd = statistics(x.reshape(x.shape[0], groups, -1), (2,))
    return mean[..., 0], rstd[..., 0]


def group(name: str, names: dict[str, Any], activation: Any) -> Case:
    def build(t: Maker) -> Built:
        x, gamma, beta = t(2, 6, 4), t(6), t(6)
        mean, rstd = like(x, *grouped(x, 3))
        y = activation(F.group_norm(x.double(), 3, gamma.double(), beta.double(), EPS))
        first, out = ("x", "yOut") if "Swish" in name else ("self", "out")
        return (
            {first: x, "gamma": gamma, "beta": beta, "eps": EPS, **names},
            {out: like(x, y)[0], "meanOut": mean, "rstdOut": rstd},
        )

    return Case(name, FLOATS, build)


def group_backward(mask: list[bool]) -> Case:
    def build(t: Maker) -> Built:
        x, gamma, g = t(2, 6, 4), t(6), t(2, 6, 4)
        mean, rstd = like(x, *grouped(x, 3))
        want = gradients(lambda x, w, b: F.group_norm(x, 3, w, b, EPS), g, x, gamma, torch.zeros(6))
        names = ("gradInput", "gradGammaOut", "gradBetaOut")
        given = {
            "gradOut": g,
            "input": x,
            "mean": mean,
            "rstd": rstd,
            "gamma": gamma,
            "N": 2,
            "C": 6,
            "HxW": 4,
            "group": 3,
            "outputMask": mask,
        }
        return given, dict(zip(names, want))

    # The saved statistics are in the input's own dtype here.
    return Case("aclnnGroupNormBackward", FLOATS, build, 8)


def group_swish_grad(t: Maker) -> Built:
    x, gamma, beta, g = t(2, 6, 4), t(6), t(6), t(2, 6, 4)
    mean, rstd = like(x, *grouped(x, 3))

    def f(x: Any, w: Any, b: Any) -> Any:
        y = F.group_norm(x, 3, w, b, EPS)
        return y * torch.sigmoid(1.5 * y)

    want = gradients(f, g, x, gamma, beta)
    return (
        {
            "dy": g,
            "mean": mean,
            "rstd": rstd,
            "x": x,
            "gamma": gamma,
            "beta": beta,
            "numGroups": 3,
            "dataFormatOptional": "NCHW",
            "swishScale": 1.5,
            "dgammaIsRequire": True,
            "dbetaIsRequire": True,
        },
        dict(zip(("dxOut", "dgammaOut", "dbetaOut"), want)),
    )


GROUP = {"N": 2, "C": 6, "HxW": 4, "group": 3}
SWISH = {"numGroups": 3, "dataFormatOptional": "NCHW", "swishScale": 1.5}


# -- batch norm ------------------------------------------------------------------------------------------------------
def batch(training: bool, *shape: int) -> Case:
    def build(t: Maker) -> Built:
        x, w, b = t(*shape), t(shape[1]), t(shape[1])
        mean, var = t(shape[1], dtype="float32"), t(shape[1], dtype="float32").abs() + 0.5
        wide_mean, wide_var = mean.double(), var.double()
        y = F.batch_norm(x.double(), wide_mean, wide_var, w.double(), b.double(), training, 0.25, EPS)
        dims = tuple(d for d in range(len(shape)) if d != 1)
        saved = [v.reshape(-1).float() for v in statistics(x, dims)]
        given = {
            "input": x,
            "weight": w,
            "bias": b,
            "runningMean": mean,
            "runningVar": var,
            "training": training,
            "momentum": 0.25,
            "eps": EPS,
        }
        want = {"runningMean": wide_mean.float(), "runningVar": wide_var.float(), "output": like(x, y)[0]}
        if training:
            return given, want | {"saveMean": saved[0], "saveInvstd": saved[1]}
        untouched = torch.zeros(0)
        return given, want | {"saveMean": untouched, "saveInvstd": untouched}

    return Case("aclnnBatchNorm", FLOATS, build)


def batch_backward(training: bool, mask: list[bool]) -> Case:
    def build(t: Maker) -> Built:
        x, w, g = t(2, 3, 4, 5), t(3, dtype="float32"), t(2, 3, 4, 5)
        mean, var = t(3, dtype="float32"), t(3, dtype="float32").abs() + 0.5
        saved = [v.reshape(-1).float() for v in statistics(x, (0, 2, 3))]
        wide = gradients(
            lambda x, w, b: F.batch_norm(x, mean.double(), var.double(), w, b, training, 0.1, EPS),
            g,
            x.double(),
            w,
            torch.zeros(3),
        )
        given = {
            "gradOut": g,
            "input": x,
            "weight": w,
            "runningMean": mean,
            "runningVar": var,
            "saveMean": saved[0],
            "saveInvstd": saved[1],
            "training": training,
            "eps": EPS,
            "outputMask": mask,
        }
        want = [like(x, wide[0])[0], wide[1].float(), wide[2].float()]
        names = ("gradInput", "gradWeight", "gradBias")
        return given, {n: v for n, v, on in zip(names, want, mask) if on}

    return Case("aclnnBatchNormBackward", FLOATS, build, 4)


def stats(t: Maker) -> Built:
    x = t(2, 3, 4)
    mean, invstd = (v.reshape(-1).float() for v in statistics(x, (0, 2)))
    return {"input": x, "eps": EPS}, {"mean": mean, "invstd": invstd}


def column(v: Any) -> Any:
    return v.double()[:, None]


def elemt(t: Maker) -> Built:
    x, w, b, mean, invstd = t(2, 3, 4), t(3), t(3), t(3), t(3)
    y = (x.double() - column(mean)) * column(invstd) * column(w) + column(b)
    return ({"input": x, "weight": w, "bias": b, "mean": mean, "invstd": invstd, "eps": EPS}, {"output": like(x, y)[0]})


def elemt_backward(t: Maker) -> Built:
    x, g, mean, invstd, w, dy, dyx = t(2, 3, 4), t(2, 3, 4), t(3), t(3), t(3), t(3), t(3)
    count = torch.tensor([5, 3], dtype=torch.int32)
    slope = column(invstd) ** 2 * column(dyx) / 8
    y = (g.double() - column(dy) / 8 - (x.double() - column(mean)) * slope) * column(invstd) * column(w)
    return (
        {
            "gradOut": g,
            "input": x,
            "mean": mean,
            "invstd": invstd,
            "weight": w,
            "sumDy": dy,
            "sumDyXmu": dyx,
            "counter": count,
        },
        {"gradInput": like(x, y)[0]},
    )


def reduce_backward(t: Maker) -> Built:
    x, g, mean, invstd = t(2, 3, 4), t(2, 3, 4), t(3), t(3)
    dy = g.double().sum((0, 2))
    dyx = (g.double() * (x.double() - column(mean))).sum((0, 2))
    return (
        {
            "gradOut": g,
            "input": x,
            "mean": mean,
            "invstd": invstd,
            "weight": t(3),
            "inputG": True,
            "weightG": True,
            "biasG": True,
        },
        dict(zip(("sumDy", "sumDyXmu", "gradWeight", "gradBias"), like(x, dy, dyx, dyx * invstd.double(), dy))),
    )


def gather(t: Maker) -> Built:
    parts = [t(4, 3), t(6, 3)]
    everything = torch.cat(parts).double()
    mean = torch.stack([p.double().mean(0) for p in parts]).float()
    invstd = torch.stack([(p.double().var(0, correction=0) + EPS).rsqrt() for p in parts]).float()
    running, running_var = t(3, dtype="float32"), t(3, dtype="float32").abs()
    given = {
        "input": t(4, 3),
        "mean": mean,
        "invstd": invstd,
        "runningMean": running,
        "runningVar": running_var,
        "momentum": 0.25,
        "eps": EPS,
        "counts": torch.tensor([4.0, 6.0]),
    }
    return given, {
        "runningMean": (0.75 * running.double() + 0.25 * everything.mean(0)).float(),
        "runningVar": (0.75 * running_var.double() + 0.25 * everything.var(0)).float(),
        "meanAll": everything.mean(0).float(),
        "invstdAll": (everything.var(0, correction=0) + EPS).rsqrt().float(),
    }


def sync_gather(t: Maker) -> Built:
    parts = [t(4, 3), t(6, 3)]
    everything = torch.cat(parts).double()
    sums = torch.stack([p.double().sum(0) for p in parts]).float()
    squares = torch.stack([p.double().square().sum(0) for p in parts]).float()
    running, running_var = t(3, dtype="float32"), t(3, dtype="float32").abs()
    return (
        {
            "totalSum": sums,
            "totalSquareSum": squares,
            "sampleCount": torch.tensor([4, 6], dtype=torch.int32),
            "mean": running,
            "variance": running_var,
            "momentum": 0.25,
            "eps": EPS,
        },
        {
            "mean": (0.75 * running.double() + 0.25 * everything.mean(0)).float(),
            "variance": (0.75 * running_var.double() + 0.25 * everything.var(0)).float(),
            "batchMean": everything.mean(0).float(),
            "batchInvstd": (everything.var(0, correction=0) + EPS).rsqrt().float(),
        },
    )


CASES = [
    *soft("aclnnSoftmax", torch.softmax, -1),
    *soft("aclnnSoftmax", torch.softmax, 1),
    *soft("aclnnSoftmax", torch.softmax, 0, ()),
    *soft("aclnnSoftmax", torch.softmax, 1, (0, 4)),
    *soft("aclnnLogSoftmax", torch.log_softmax, 0),
    Case(
        "aclnnLayerNorm",
        FLOATS,
        lambda t: ({"input": (x := t(0, 4)), "normalizedShape": [4], "eps": EPS}, {"out": x.clone()}),
    ),
    Case("aclnnScaledMaskedSoftmax", FLOATS, scaled),
    Case("aclnnScaledMaskedSoftmaxBackward", FLOATS, scaled_backward),
    layer("aclnnLayerNorm", True, False),
    layer("aclnnLayerNorm", False, True),
    layer("aclnnFastLayerNorm", True, True),
    layer("aclnnLayerNormWithImplMode", True, False),
    layer_backward([True, True, True]),
    layer_backward([True, False, False]),
    Case("aclnnAddLayerNorm", FLOATS, add_layer),
    Case("aclnnAddLayerNormGrad", FLOATS, add_layer_grad, 4),
    Case("aclnnDeepNorm", FLOATS, deep),
    Case("aclnnDeepNormGrad", FLOATS, deep_grad, 4),
    rms_norm("aclnnRmsNorm"),
    rms_norm("aclnnGemmaRmsNorm"),
    Case("aclnnRmsNormGrad", FLOATS, rms_norm_grad, 4),
    add_rms("aclnnAddRmsNorm"),
    add_rms("aclnnAddRmsNormCast"),
    add_rms("aclnnInplaceAddRmsNorm"),
    group("aclnnGroupNorm", GROUP, lambda y: y),
    group("aclnnGroupNormSilu", {"group": 3}, F.silu),
    group("aclnnGroupNormSiluV2", {"group": 3, "activateSilu": True}, F.silu),
    group("aclnnGroupNormSiluV2", {"group": 3, "activateSilu": False}, lambda y: y),
    group("aclnnGroupNormSwish", SWISH | {"activateSwish": True}, lambda y: y * torch.sigmoid(1.5 * y)),
    group_backward([True, True, True]),
    Case("aclnnGroupNormSwishGrad", FLOATS, group_swish_grad, 8),
    batch(True, 2, 3, 4, 5),
    batch(False, 2, 3, 4, 5),
    batch(True, 6, 3),
    batch(True, 2, 3, 4),
    batch(False, 2, 3, 2, 2, 2),
    batch_backward(True, [True, True, True]),
    batch_backward(False, [True, True, True]),
    batch_backward(True, [True, False, False]),
    Case("aclnnBatchNormStats", FLOATS[:2], stats),
    Case("aclnnBatchNormElemt", FLOATS, elemt),
    Case("aclnnBatchNormElemtBackward", FLOATS, elemt_backward),
    Case(
        "aclnnBatchNormReduce",
        FLOATS,
        lambda t: (
            {"x": (x := t(2, 3, 4, 5))},
            {"sum": x.double().sum((0, 2, 3)).float(), "squareSum": x.double().square().sum((0, 2, 3)).float()},
        ),
    ),
    Case("aclnnBatchNormReduceBackward", FLOATS, reduce_backward),
    Case("aclnnBatchNormGatherStatsWithCounts", ("float32",), gather, 4),
    Case("aclnnSyncBatchNormGatherStats", ("float32",), sync_gather, 8),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


def instance_norm() -> None:
    x, gamma, beta = torch.randn(2, 3, 4, 5), torch.randn(3), torch.randn(3)
    mean, rstd = statistics(x, (2, 3))
    variance = x.double().var((2, 3), correction=0, keepdim=True)
    want = F.instance_norm(x.double(), weight=gamma.double(), bias=beta.double(), eps=EPS)
    got = call(
        "aclnnInstanceNorm",
        x=x,
        gamma=gamma,
        beta=beta,
        dataFormat="NCHW",
        eps=EPS,
        y=Out((2, 3, 4, 5)),
        mean=Out((2, 3, 1, 1)),
        variance=Out((2, 3, 1, 1)),
    )
    for g, w in zip(got, (want, mean, variance)):
        assert_same(g, w.float())
    got = call(
        "aclnnInstanceNorm",
        x=x.permute(0, 2, 3, 1),
        gamma=gamma,
        beta=beta,
        dataFormat="NHWC",
        eps=EPS,
        y=Out((2, 4, 5, 3)),
        mean=Out((2, 1, 1, 3)),
        variance=Out((2, 1, 1, 3)),
    )
    for g, w in zip(got, (want, mean, variance)):
        assert_same(g, w.float().permute(0, 2, 3, 1).contiguous())


def test_instance_norm_is_of_one_chip() -> None:
    on_chip("310P", instance_norm)
    x = torch.ones(2, 3, 4, 5)
    assert (
        refused(
            "aclnnInstanceNorm",
            x=x,
            gamma=torch.ones(3),
            beta=torch.ones(3),
            dataFormat="NCHW",
            eps=EPS,
            y=Out((2, 3, 4, 5)),
            mean=Out((2, 3, 1, 1)),
            variance=Out((2, 3, 1, 1)),
        )
        == 161002
    )


X = torch.ones(2, 3, 4, 5)


def batch_arguments(form: str) -> dict[str, Any]:
    return {
        "input": In(X, form),
        "training": True,
        "momentum": 0.1,
        "eps": EPS,
        "output": Out((2, 3, 4, 5), format=form),
        "saveMean": Out((3,)),
        "saveInvstd": Out((3,)),
    }


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("aclnnSoftmax", {"self": X, "dim": 4, "out": Out((2, 3, 4, 5))}, 161002),
        ("aclnnSoftmax", {"self": X, "dim": 0, "out": Out((2, 3))}, 161002),
        ("aclnnSoftmax", {"self": X.int(), "dim": 0, "out": Out((2, 3, 4, 5))}, 161002),
        ("aclnnSoftmax", {"self": None, "dim": 0, "out": Out((2, 3, 4, 5))}, 161001),
        ("aclnnLayerNorm", {"input": X, "normalizedShape": [4], "eps": EPS, "out": Out((2, 3, 4, 5))}, 161002),
        ("aclnnLayerNorm", {"input": X, "normalizedShape": None, "eps": EPS, "out": Out((2, 3, 4, 5))}, 161001),
        (
            "aclnnLayerNormBackward",
            {
                "gradOut": X,
                "input": X,
                "normalizedShape": [5],
                "mean": X[..., :1],
                "rstd": X[..., :1],
                "outputMask": [True, True, True],
                "gradInputOut": Out((2, 3, 4, 5)),
            },
            161001,
        ),
        (
            "aclnnGroupNormSilu",
            {
                "self": X,
                "gamma": torch.ones(3),
                "beta": torch.ones(3),
                "group": 2,
                "eps": EPS,
                "out": Out((2, 3, 4, 5)),
                "meanOut": Out((2, 2)),
                "rstdOut": Out((2, 2)),
            },
            161002,
        ),
        (
            "aclnnRmsNorm",
            {"x": X, "gamma": torch.ones(4), "epsilon": EPS, "yOut": Out((2, 3, 4, 5)), "rstdOut": Out((2, 3, 4, 1))},
            161002,
        ),
    ],
)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code


def test_batch_norm_takes_the_format_of_the_rank() -> None:
    output, mean, _ = call("aclnnBatchNorm", **batch_arguments("NCHW"))
    assert_same(output, torch.zeros(2, 3, 4, 5))
    assert_same(mean, torch.ones(3))
