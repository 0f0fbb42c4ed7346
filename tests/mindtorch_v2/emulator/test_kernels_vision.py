"""The emulator's convolutions, pooling, resampling and grid sampling against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, Built, Case, Maker, each, run  # noqa: E402
from ._chips import on_chip  # noqa: E402
from ._kernels import In, Out, Refused, assert_same, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
F = torch.nn.functional
KEEP, DOWN = 0, 1
REALS = (*FLOATS, "float64")


def like(x: Any, *values: Any) -> list[Any]:
    """PyTorch's answers, computed in float64, in the dtype of x."""
    return [v.to(x.dtype).contiguous() for v in values]


def gradients(f: Any, g: Any, *inputs: Any) -> list[Any]:
    wide = [x.detach().double().requires_grad_() for x in inputs]
    return like(inputs[0], *torch.autograd.grad(f(*wide), wide, g.double()))


# -- convolutions ----------------------------------------------------------------------------------------------------
def convolution(
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    transposed: bool = False,
    output_padding: int = 0,
    bias: bool = True,
    mask: tuple[bool, bool, bool] = (True, True, True),
) -> list[Case]:
    n = len(x) - 2
    lists = {
        "stride": [stride] * n,
        "padding": [padding] * n,
        "dilation": [dilation] * n,
        "transposed": transposed,
        "outputPadding": [output_padding] * n,
        "groups": groups,
        "cubeMathType": KEEP,
    }
    channels = w[1] * groups if transposed else w[0]

    def f(a: Any, k: Any, b: Any) -> Any:
        return torch.convolution(
            a, k, b, [stride] * n, [padding] * n, [dilation] * n, transposed, [output_padding] * n, groups
        )

    def forward(t: Maker) -> Built:
        a, k = t(*x), t(*w)
        b: Any = t(channels) if bias else None
        want = f(a.double(), k.double(), b.double() if bias else None)
        return {"input": a, "weight": k, "bias": b, **lists}, {"output": like(a, want)[0]}

    def backward(t: Maker) -> Built:
        a, k, b = t(*x), t(*w), t(channels)
        g = t(*f(a.double(), k.double(), b.double()).shape)
        want = zip(("gradInput", "gradWeight", "gradBias"), gradients(f, g, a, k, b), mask)
        return (
            {"gradOutput": g, "input": a, "weight": k, "biasSizes": [channels], "outputMask": list(mask), **lists},
            {name: value for name, value, on in want if on},
        )

    return [Case("aclnnConvolution", FLOATS, forward, 4), Case("aclnnConvolutionBackward", FLOATS, backward, 8)]


def one_sided(t: Maker) -> Built:
    x, w = t(2, 3, 5, 6), t(4, 3, 3, 3)
    want = F.conv2d(F.pad(x.double(), (2, 1, 1, 0)), w.double())
    return (
        {
            "input": x,
            "weight": w,
            "bias": None,
            "stride": [1, 1],
            "padding": [1, 0, 2, 1],
            "dilation": [1, 1],
            "transposed": False,
            "outputPadding": [0, 0],
            "groups": 1,
            "cubeMathType": KEEP,
        },
        {"output": like(x, want)[0]},
    )


def depthwise(t: Maker) -> Built:
    x, w, b = t(2, 3, 6, 7), t(6, 1, 3, 2), t(6)
    want = F.conv2d(x.double(), w.double(), b.double(), stride=(2, 1), padding=1, groups=3)
    return (
        {
            "self": x,
            "weight": w,
            "kernelSize": [3, 2],
            "bias": b,
            "stride": [2, 1],
            "padding": [1, 1],
            "dilation": [1, 1],
            "cubeMathType": KEEP,
        },
        {"out": like(x, want)[0]},
    )


def tbc(t: Maker) -> Built:
    x, w, b = t(5, 2, 3), t(3, 3, 4), t(4)
    return (
        {"self": x, "weight": w, "bias": b, "pad": 1, "cubeMathType": KEEP},
        {"output": like(x, torch.conv_tbc(x.double(), w.double(), b.double(), 1))[0]},
    )


def tbc_backward(t: Maker) -> Built:
    x, w, b, g = t(5, 2, 3), t(3, 3, 4), t(4), t(5, 2, 4)
    want = gradients(lambda x, w, b: torch.conv_tbc(x, w, b, 1), g, x, w, b)
    return (
        {"self": g, "input": x, "weight": w, "bias": b, "pad": 1, "cubeMathType": KEEP},
        dict(zip(("gradInput", "gradWeight", "gradBias"), want)),
    )


# -- pooling ---------------------------------------------------------------------------------------------------------
def average(n: int, ceil: bool, counts: bool, divisor: int, *shape: int) -> list[Case]:
    kernel, stride, padding = [3, 2, 2][:n], [2, 1, 2][:n], [1, 1, 0][:n]
    plural = "s" if n == 2 else ""
    f = F.avg_pool2d if n == 2 else F.avg_pool3d

    def pool(x: Any) -> Any:
        return f(x, kernel, stride, padding, ceil, counts, divisor or None)

    def forward(t: Maker) -> Built:
        x = t(*shape)
        return (
            {"self": x, "kernelSize": kernel, f"stride{plural}": stride, f"padding{plural}": padding, **flags},
            {"out": like(x, pool(x.double()))[0]},
        )

    def backward(t: Maker) -> Built:
        x = t(*shape)
        g = t(*pool(x.double()).shape)
        return (
            {"gradOutput": g, "self": x, "kernelSize": kernel, "stride": stride, "padding": padding, **flags},
            {"gradInput" if n == 2 else "output": gradients(pool, g, x)[0]},
        )

    flags = {"ceilMode": ceil, "countIncludePad": counts, "divisorOverride": divisor}
    if n == 2:
        flags["cubeMathType"] = KEEP
    return [Case(f"aclnnAvgPool{n}d", FLOATS, forward), Case(f"aclnnAvgPool{n}dBackward", FLOATS, backward)]


def adaptive(n: int, size: list[int], *shape: int) -> list[Case]:
    f = F.adaptive_avg_pool2d if n == 2 else F.adaptive_avg_pool3d

    def backward(t: Maker) -> Built:
        x = t(*shape)
        g = t(*shape[:-n], *size)
        return {"gradOutput": g, "self": x}, {"out": gradients(lambda x: f(x, size), g, x)[0]}

    return [
        Case(
            f"aclnnAdaptiveAvgPool{n}d",
            FLOATS,
            lambda t: ({"self": (x := t(*shape)), "outputSize": size}, {"out": like(x, f(x.double(), size))[0]}),
        ),
        Case(f"aclnnAdaptiveAvgPool{n}dBackward", FLOATS, backward),
    ]


def adaptive_max(n: int, size: list[int], index: str, *shape: int) -> list[Case]:
    f = F.adaptive_max_pool2d_with_indices if n == 2 else F.adaptive_max_pool3d_with_indices

    def forward(t: Maker) -> Built:
        x = t(*shape)
        y, i = f(x.double(), size)
        return {"self": x, "outputSize": size}, {"outputOut": like(x, y)[0], "indicesOut": i.to(getattr(torch, index))}

    def backward(t: Maker) -> Built:
        x, g = t(*shape), t(*shape[:-n], *size)
        i = f(x.double(), size)[1].to(torch.int32)
        return ({"gradOutput": g, "self": x, "indices": i}, {"gradInput": gradients(lambda x: f(x, size)[0], g, x)[0]})

    dtypes = (*FLOATS, "float64") if n == 2 else FLOATS
    return [
        Case(f"aclnnAdaptiveMaxPool{n}d", dtypes, forward),
        Case(f"aclnnAdaptiveMaxPool{n}dBackward", FLOATS, backward),
    ]


def maximum(n: int, ceil: bool, *shape: int) -> list[Case]:
    kernel, stride, padding, dilation = [3, 2, 3][:n], [2, 1, 2][:n], [1, 1, 0][:n], [1, 2, 1][:n]
    name = "aclnnMaxPool2dWithIndices" if n == 2 else "aclnnMaxPool3dWithArgmax"
    f = F.max_pool2d_with_indices if n == 2 else F.max_pool3d_with_indices
    given = {"kernelSize": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceilMode": ceil}

    def pool(x: Any) -> Any:
        return f(x, kernel, stride, padding, dilation, ceil)

    def forward(t: Maker) -> Built:
        x = t(*shape)
        y, i = pool(x.double())
        return {"self": x, **given}, {"out": like(x, y)[0], "indices": i.int()}

    def backward(t: Maker) -> Built:
        x = t(*shape)
        y, i = pool(x.double())
        g = t(*y.shape)
        return (
            {"gradOutput": g, "self": x, "indices": i.int(), **given},
            {"gradInput": gradients(lambda x: pool(x)[0], g, x)[0]},
        )

    return [Case(name, FLOATS, forward), Case(name + "Backward", FLOATS, backward)]


def plain(t: Maker) -> Built:
    x = t(2, 3, 6, 7)
    return (
        {
            "self": x,
            "kernelShape": [3, 2],
            "strides": [2, 2],
            "autoPad": 0,
            "pads": [1, 1],
            "dilations": [1, 1],
            "ceilMode": 1,
        },
        {"out": F.max_pool2d(x, (3, 2), 2, 1, 1, True)},
    )


def unpool(n: int) -> list[Case]:
    small, size = (2, 3, *[2, 3, 2][:n]), [4, 5, 3][:n]
    more = {"stride": [2] * n, "padding": [0] * n} if n == 3 else {}

    def places(t: Maker) -> Any:
        count, room = 1, 1
        for a, b in zip(small[2:], size):
            count, room = count * a, room * b
        order = torch.stack([torch.randperm(room, generator=t.generator)[:count] for _ in range(6)])
        return order.reshape(small)

    def unpooled(x: Any, i: Any) -> Any:
        flat = torch.zeros(6, *size, dtype=x.dtype).reshape(6, -1).scatter(1, i.reshape(6, -1), x.reshape(6, -1))
        return flat.reshape(2, 3, *size)

    def forward(t: Maker) -> Built:
        x, i = t(*small), places(t)
        want = unpooled(x, i)
        out = "out" if n == 2 else "outRef"
        given = {"self": x, "indices": i, "outputSize": size, **more}
        return (given if n == 2 else given | {out: torch.ones_like(want)}), {out: want}

    def backward(t: Maker) -> Built:
        i, g = places(t), t(2, 3, *size)
        want = g.reshape(6, -1).gather(1, i.reshape(6, -1)).reshape(small)
        return {"gradOutput": g, "self": t(*small), "indices": i, "outputSize": size, **more}, {"out": want}

    return [
        Case(f"aclnnMaxUnpool{n}d", ("float32", "float16", "int32", "int64", "uint8"), forward),
        Case(f"aclnnMaxUnpool{n}dBackward", ("float32", "float16", "int32", "int64", "uint8"), backward),
    ]


# -- resampling ------------------------------------------------------------------------------------------------------
def resampled(
    name: str,
    mode: str,
    shape: tuple[int, ...],
    size: list[int],
    align: bool | None = None,
    scales: tuple[str, ...] = (),
    back: str = "",
    back_scales: tuple[str, ...] = (),
    smooth: bool = False,
    names: tuple[str, str, str, str] = ("self", "out", "gradOut", "out"),
    dtypes: tuple[str, ...] = FLOATS,
) -> list[Case]:
    """Without scale factors: they are passed as 0."""
    more: dict[str, Any] = {} if align is None else {"alignCorners": align}
    first, out, grad, grad_out = names

    def f(x: Any) -> Any:
        return F.interpolate(x, size=size, mode=mode, align_corners=align, antialias=smooth)

    def forward(t: Maker) -> Built:
        x = t(*shape)
        want = f(x if t.dtype == "uint8" else x.double())
        return {first: x, "outputSize": size, **more, **dict.fromkeys(scales, 0.0)}, {out: like(x, want)[0]}

    def backward(t: Maker) -> Built:
        g = t(*shape[:2], *size)
        want = gradients(f, g, torch.zeros(shape, dtype=g.dtype))[0]
        return (
            {grad: g, "outputSize": size, "inputSize": list(shape), **more, **dict.fromkeys(back_scales, 0.0)},
            {grad_out: want},
        )

    cases = [Case(f"aclnnUpsample{name}", dtypes, forward, 2)] if name else []
    return cases + ([Case(f"aclnnUpsample{back}", FLOATS, backward, 2)] if back else [])


LINE, PLANE, SPACE = (2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)
HW, DHW = ("scalesH", "scalesW"), ("scalesD", "scalesH", "scalesW")
BYTES = (*REALS, "uint8")
INPUT_GRAD = ("self", "out", "gradOut", "gradInput")
OUTPUT_GRAD = ("self", "out", "gradOutput", "out")


def scaled(t: Maker) -> Built:
    x = t(2, 3, 4, 5)
    want = F.interpolate(
        x.double(), scale_factor=(1.7, 2.3), mode="bilinear", align_corners=False, recompute_scale_factor=False
    )
    return (
        {"self": x, "outputSize": list(want.shape[2:]), "alignCorners": False, "scalesH": 1.7, "scalesW": 2.3},
        {"out": like(x, want)[0]},
    )


def nearest() -> list[Case]:
    return [
        *resampled("Nearest1d", "nearest", LINE, [8], back="Nearest1dBackward", back_scales=("scales",), dtypes=REALS),
        *resampled("Nearest1dV2", "nearest", LINE, [3], scales=("scaleL",), dtypes=BYTES),
        *resampled(
            "Nearest2d",
            "nearest",
            PLANE,
            [7, 3],
            back="Nearest2dBackward",
            back_scales=HW,
            names=INPUT_GRAD,
            dtypes=BYTES,
        ),
        *resampled("Nearest2dV2", "nearest", PLANE, [7, 3], scales=HW, dtypes=BYTES),
        *resampled(
            "Nearest3d",
            "nearest",
            SPACE,
            [2, 6, 7],
            scales=DHW,
            back="Nearest3dBackward",
            back_scales=DHW,
            names=INPUT_GRAD,
            dtypes=REALS,
        ),
        *resampled(
            "NearestExact1d",
            "nearest-exact",
            LINE,
            [8],
            scales=("scales",),
            back="NearestExact1dBackward",
            back_scales=("scales",),
            names=OUTPUT_GRAD,
        ),
        *resampled(
            "NearestExact2d",
            "nearest-exact",
            PLANE,
            [7, 3],
            scales=HW,
            back="NearestExact2dBackward",
            back_scales=HW,
            names=OUTPUT_GRAD,
        ),
        *resampled(
            "NearestExact3d",
            "nearest-exact",
            SPACE,
            [2, 6, 7],
            scales=DHW,
            back="NearestExact3dBackward",
            back_scales=DHW,
            names=INPUT_GRAD,
        ),
        Case("aclnnUpsampleBilinear2d", FLOATS, scaled, 2),
    ]


def smooth(align: bool) -> list[Case]:
    return [
        *resampled("Linear1d", "linear", LINE, [8], align, ("scale",), "Linear1dBackward", ("scales",)),
        *resampled("Bilinear2d", "bilinear", PLANE, [7, 3], align, HW, "Bilinear2dBackward", HW, dtypes=REALS),
        *resampled("", "bilinear", PLANE, [7, 3], align, HW, "Bilinear2dBackwardV2", HW),
        *resampled(
            "Trilinear3d", "trilinear", SPACE, [2, 6, 7], align, DHW, "Trilinear3dBackward", DHW, names=INPUT_GRAD
        ),
        *resampled("Bicubic2d", "bicubic", PLANE, [7, 3], align, HW, "Bicubic2dBackward", HW, names=INPUT_GRAD),
        *resampled(
            "Bilinear2dAA",
            "bilinear",
            PLANE,
            [7, 3],
            align,
            HW,
            "Bilinear2dAABackward",
            HW,
            True,
            ("input", "out", "gradOutput", "out"),
        ),
        *resampled(
            "Bicubic2dAA",
            "bicubic",
            PLANE,
            [7, 2],
            align,
            HW,
            "Bicubic2dAAGrad",
            HW,
            True,
            ("x", "out", "gradOutput", "out"),
        ),
    ]


def resampling() -> list[Case]:
    return [*nearest(), *smooth(False), *smooth(True)]


# -- grids -----------------------------------------------------------------------------------------------------------
def sampled(n: int, mode: str, padding: str, align: bool) -> list[Case]:
    shape, points = (2, 3, *[4, 5, 3][:n]), (2, *[2, 6, 2][:n], n)
    given = {
        "interpolationMode": ("bilinear", "nearest", "bicubic").index(mode),
        "paddingMode": ("zeros", "border", "reflection").index(padding),
        "alignCorners": align,
    }

    def f(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, mode, padding, align)

    def forward(t: Maker) -> Built:
        x, grid = t(*shape), t(*points)
        return {"input": x, "grid": grid, **given}, {"out": like(x, f(x.double(), grid.double()))[0]}

    def backward(t: Maker) -> Built:
        x, grid = t(*shape), t(*points)
        g = t(2, 3, *points[1:-1])
        want = gradients(f, g, x, grid)
        return (
            {"gradOutput": g, "input": x, "grid": grid, "outputMask": [True, True], **given},
            dict(zip(("inputGrad", "gridGrad"), want)),
        )

    name = f"aclnnGridSampler{n}D"
    return [Case(name, REALS, forward, 4)] + ([Case(name + "Backward", REALS, backward, 8)] if n == 2 else [])


def affine(align: bool, *size: int) -> Case:
    n = len(size) - 2
    return Case(
        "aclnnAffineGrid",
        FLOATS,
        lambda t: (
            {"theta": (x := t(size[0], n, n + 1)), "size": list(size), "alignCorners": align},
            {"out": like(x, F.affine_grid(x.double(), list(size), align))[0]},
        ),
        2,
    )


CASES = [
    *convolution((2, 3, 9), (4, 3, 3), stride=2, padding=1),
    *convolution((2, 4, 6, 7), (6, 2, 3, 3), padding=1, groups=2),
    *convolution((2, 3, 6, 7), (4, 3, 3, 2), stride=2, dilation=2, padding=2, bias=False, mask=(True, False, False)),
    *convolution((1, 2, 4, 5, 5), (3, 2, 2, 3, 2), stride=2, padding=1),
    *convolution((2, 3, 5), (3, 2, 3), stride=2, padding=1, transposed=True, output_padding=1),
    *convolution((2, 4, 3, 4), (4, 3, 3, 3), stride=2, padding=1, groups=2, transposed=True, mask=(False, True, True)),
    *convolution((1, 2, 3, 2, 3), (2, 3, 2, 2, 2), stride=2, transposed=True),
    *convolution((0, 3, 6, 7), (4, 3, 3, 3), padding=1),
    Case("aclnnConvolution", FLOATS, one_sided, 4),
    Case("aclnnConvDepthwise2d", FLOATS, depthwise, 4),
    Case("aclnnConvTbc", FLOATS, tbc, 4),
    Case("aclnnConvTbcBackward", FLOATS, tbc_backward, 8),
    *average(2, False, True, 0, 2, 3, 7, 6),
    *average(2, True, False, 0, 2, 3, 7, 6),
    *average(2, True, True, 0, 3, 7, 6),
    *average(2, False, True, 5, 2, 3, 7, 6),
    *average(3, True, False, 0, 1, 2, 5, 4, 5),
    *adaptive(2, [3, 4], 2, 3, 7, 6),
    *adaptive(2, [1, 1], 3, 7, 6),
    *adaptive(3, [2, 3, 4], 1, 2, 5, 4, 6),
    Case(
        "aclnnGlobalAveragePool",
        REALS,
        lambda t: ({"self": (x := t(2, 3, 4, 5))}, {"out": like(x, x.double().mean((2, 3), keepdim=True))[0]}),
    ),
    Case(
        "aclnnGlobalMaxPool",
        ("float32", "float16", "float64"),
        lambda t: ({"self": (x := t(2, 3, 2, 4, 5))}, {"out": x.amax((2, 3, 4), keepdim=True)}),
    ),
    *adaptive_max(2, [3, 4], "int64", 2, 3, 7, 6),
    *adaptive_max(3, [2, 3, 4], "int32", 1, 2, 5, 4, 6),
    *maximum(2, False, 2, 3, 7, 6),
    *maximum(2, True, 3, 8, 7),
    *maximum(3, True, 1, 2, 6, 5, 7),
    Case("aclnnMaxPool", ("float32", "float16"), plain),
    *unpool(2),
    *unpool(3),
    *resampling(),
    *(
        case
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for case in sampled(2, mode, padding, mode == "bilinear")
    ),
    *(
        case
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
        for case in sampled(3, mode, padding, mode == "nearest")
    ),
    *sampled(2, "bilinear", "reflection", False),
    *sampled(2, "bicubic", "reflection", True),
    affine(True, 2, 3, 4, 5),
    affine(False, 2, 3, 4, 5),
    affine(False, 2, 3, 2, 4, 5),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


@pytest.mark.parametrize("align", [False, True])
def test_gradients_of_space_grids(align: bool) -> None:
    """Every tensor of this function must say its format."""
    x, grid, g = torch.randn(2, 3, 4, 5, 3), torch.randn(2, 2, 6, 2, 3), torch.randn(2, 3, 2, 6, 2)
    want = gradients(lambda x, p: F.grid_sample(x, p, "bilinear", "zeros", align), g, x, grid)
    got = call(
        "aclnnGridSampler3DBackward",
        gradOutput=In(g, "NCDHW"),
        input=In(x, "NCDHW"),
        grid=In(grid, "NDHWC"),
        interpolationMode=0,
        paddingMode=0,
        alignCorners=align,
        outputMask=[True, True],
        inputGrad=Out((2, 3, 4, 5, 3), format="NCDHW"),
        gridGrad=Out((2, 2, 6, 2, 3), format="NDHWC"),
    )
    for a, b in zip(got, want):
        assert_same(a, b, 8)


def test_the_mask_of_a_maximum_goes_back() -> None:
    x = torch.randn(2, 3, 7, 6)
    attributes = {"kernelSize": [3, 2], "stride": [2, 1], "padding": [1, 1], "dilation": [1, 1], "ceilMode": False}
    want = F.max_pool2d(x, (3, 2), (2, 1), 1)
    positions = want.shape[2] * want.shape[3]
    shape = (2, 3, 6, (-(-positions // 16) + 1) * 32)
    y, mask = call(
        "aclnnMaxPool2dWithMask",
        self=In(x, "NCHW"),
        **attributes,
        out=Out(tuple(want.shape), format="NCHW"),
        indices=Out(shape, "int8", format="NCHW"),
    )
    assert_same(y, want)
    g = torch.randn(want.shape)
    back = call(
        "aclnnMaxPool2dWithMaskBackward",
        gradOutput=In(g, "NCHW"),
        self=In(x, "NCHW"),
        indices=In(mask, "NCHW"),
        **attributes,
        gradInput=Out((2, 3, 7, 6), format="NCHW"),
    )
    assert_same(back, gradients(lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1), g, x)[0])


def test_channels_may_be_last() -> None:
    x = torch.randn(2, 3, 7, 6)
    y, i = F.max_pool2d_with_indices(x, 2)
    got = call(
        "aclnnMaxPool2dWithIndices",
        self=In(x.permute(0, 2, 3, 1).contiguous(), "NHWC"),
        kernelSize=[2],
        stride=[],
        padding=[0],
        dilation=[1],
        ceilMode=False,
        out=Out((2, 3, 3, 3), format="NHWC"),
        indices=Out((2, 3, 3, 3), "int32", format="NHWC"),
    )
    assert_same(got[0], y.permute(0, 2, 3, 1).contiguous())
    assert_same(got[1], i.int().permute(0, 2, 3, 1).contiguous())


def convolution_arguments(form: str, math: int, bias: int = 4) -> dict[str, Any]:
    return {
        "input": In(torch.ones(1, 2, 3, 3), form),
        "weight": In(torch.ones(4, 2, 2, 2), form),
        "bias": torch.ones(bias),
        "stride": [1, 1],
        "padding": [0, 0],
        "dilation": [1, 1],
        "transposed": False,
        "outputPadding": [0, 0],
        "groups": 1,
        "output": Out((1, 4, 2, 2), format=form),
        "cubeMathType": math,
    }


def without_float_unit() -> None:
    assert refused("aclnnConvolution", **convolution_arguments("NCHW", KEEP)) == 161002
    assert_same(call("aclnnConvolution", **convolution_arguments("NCHW", DOWN)), torch.full((1, 4, 2, 2), 9.0))


def test_chips_without_a_float_unit() -> None:
    on_chip("310P", without_float_unit)


X = torch.ones(2, 3, 7, 6)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("aclnnConvolution", convolution_arguments("ND", KEEP), 161002),
        ("aclnnConvolution", convolution_arguments("NCHW", KEEP, bias=3), 161002),
        ("aclnnConvolution", convolution_arguments("NCHW", KEEP) | {"groups": 3}, 161002),
        ("aclnnConvolution", convolution_arguments("NCHW", KEEP) | {"stride": [0, 1]}, 161002),
        ("aclnnConvolution", convolution_arguments("NCHW", KEEP) | {"input": None}, 161001),
        (
            "aclnnAdaptiveAvgPool2d",
            {"self": In(X, "NCHW"), "outputSize": [3], "out": Out((2, 3, 3, 3), format="NCHW")},
            161002,
        ),
        (
            "aclnnMaxPool2dWithIndices",
            {
                "self": X,
                "kernelSize": [2, 2],
                "stride": [1, 1],
                "padding": [2, 0],
                "dilation": [1, 1],
                "ceilMode": False,
                "out": Out((2, 3, 10, 5)),
                "indices": Out((2, 3, 10, 5), "int32"),
            },
            161002,
        ),
        (
            "aclnnUpsampleBilinear2d",
            {
                "self": In(X, "NCHW"),
                "outputSize": [3, 3],
                "alignCorners": False,
                "scalesH": -1.0,
                "scalesW": 0.0,
                "out": Out((2, 3, 3, 3), format="NCHW"),
            },
            161002,
        ),
        (
            "aclnnGridSampler2D",
            {
                "input": X,
                "grid": torch.ones(2, 2, 2, 2),
                "interpolationMode": 3,
                "paddingMode": 0,
                "alignCorners": False,
                "out": Out((2, 3, 2, 2)),
            },
            161002,
        ),
    ],
)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code


def test_an_index_out_of_the_plane_is_a_fault_of_the_device() -> None:
    with pytest.raises(Refused, match="out of range") as caught:
        call(
            "aclnnMaxUnpool2d",
            self=torch.ones(1, 1, 1),
            indices=torch.full((1, 1, 1), 4),
            outputSize=[2, 2],
            out=Out((1, 2, 2)),
        )
    assert caught.value.code == 507015
