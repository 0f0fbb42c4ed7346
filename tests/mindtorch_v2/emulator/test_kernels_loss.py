"""The emulator's losses against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, Refused, call, refused  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:reduction")]
F = torch.nn.functional
REDUCTIONS = ("none", "mean", "sum")


def gradient(f: Any, g: Any, *inputs: Any, of: int = 0) -> Any:
    """Of one input of f, computed in float64, in the dtype of the first."""
    wide = [x.detach().double() for x in inputs]
    wide[of].requires_grad_()
    result = f(*wide)
    return (
        torch.autograd.grad(result, wide[of], g.double().expand(result.shape) if g.dim() else g.double())[0]
        .to(inputs[0].dtype)
        .contiguous()
    )


def incoming(t: Maker, reduction: str, *shape: int) -> Any:
    """The gradient of the loss; documents give it a dimension even where the loss has none."""
    return t(*shape) if reduction == "none" else t(1)


def zero_dimensional(g: Any, reduction: str) -> Any:
    return g if reduction == "none" else g.reshape(())


def pointwise(
    name: str,
    f: Any,
    out: str = "out",
    grad: str = "gradOutput",
    grad_out: str = "out",
    target: Any = lambda t, *s: t(*s),
    one_element: bool = False,
    backward: str = "Backward",
    **attributes: Any,
) -> list[Case]:
    """A loss of (self, target) with its backward, for each reduction."""
    cases = []
    for code, reduction in enumerate(REDUCTIONS):

        def forward(t: Maker, code: int = code, reduction: str = reduction) -> Built:
            x, y = t(3, 4), target(t, 3, 4)
            want = f(x.double(), y.double(), reduction=reduction).to(x.dtype)
            if one_element and reduction != "none":
                want = want.reshape(1)
            return {"self": x, "target": y, "reduction": code, **attributes}, {out: want}

        def back(t: Maker, code: int = code, reduction: str = reduction) -> Built:
            x, y = t(3, 4), target(t, 3, 4)
            g = incoming(t, reduction, 3, 4)
            want = gradient(lambda x, y: f(x, y, reduction=reduction), zero_dimensional(g, reduction), x, y)
            return {grad: g, "self": x, "target": y, "reduction": code, **attributes}, {grad_out: want}

        cases.append(Case(name, FLOATS, forward))
        if backward:
            cases.append(Case(name + backward, FLOATS, back, 2))
    return cases


def probabilities(t: Maker, *shape: int) -> Any:
    return t(*shape).double().sigmoid().to(getattr(torch, t.dtype))


def binary() -> list[Case]:
    cases = []
    for code, reduction in enumerate(REDUCTIONS):

        def forward(t: Maker, code: int = code, reduction: str = reduction) -> Built:
            x, y, w = probabilities(t, 3, 4), probabilities(t, 3, 4), t(4)
            want = F.binary_cross_entropy(x.double(), y.double(), w.double(), reduction=reduction)
            return {"self": x, "target": y, "weight": w, "reduction": code}, {"out": want.to(x.dtype)}

        def backward(t: Maker, code: int = code, reduction: str = reduction) -> Built:
            x, y, g = probabilities(t, 3, 4), probabilities(t, 3, 4), incoming(t, reduction, 3, 4)
            want = gradient(
                lambda x, y: F.binary_cross_entropy(x, y, reduction=reduction), zero_dimensional(g, reduction), x, y
            )
            return ({"gradOutput": g, "self": x, "target": y, "weightOptional": None, "reduction": code}, {"out": want})

        def logits(x: Any, y: Any, w: Any, p: Any, reduction: str = reduction) -> Any:
            return F.binary_cross_entropy_with_logits(x, y, w, reduction=reduction, pos_weight=p)

        def with_logits(t: Maker, code: int = code, f: Any = logits) -> Built:
            x, y, w, p = t(3, 4), probabilities(t, 3, 4), t(3, 4), t(4)
            want = f(x.double(), y.double(), w.double(), p.double()).to(x.dtype)
            return (
                {"self": x, "target": y, "weightOptional": w, "posWeightOptional": p, "reduction": code},
                {"out": want},
            )

        def with_logits_backward(
            t: Maker, of: int, out: str, code: int = code, reduction: str = reduction, f: Any = logits
        ) -> Built:
            x, y, w, p = t(3, 4), probabilities(t, 3, 4), t(3, 4), t(4)
            g = incoming(t, reduction, 3, 4)
            want = gradient(f, zero_dimensional(g, reduction), x, y, w, p, of=of)
            return (
                {
                    "gradOutput": g,
                    "self": x,
                    "target": y,
                    "weightOptional": w,
                    "posWeightOptional": p,
                    "reduction": code,
                },
                {out: want},
            )

        name = "aclnnBinaryCrossEntropy"
        cases += [
            Case(name, FLOATS, forward),
            Case(name + "Backward", FLOATS, backward, 2),
            Case(name + "WithLogits", FLOATS, with_logits, 2),
            Case(name + "WithLogitsBackward", FLOATS, lambda t, f=with_logits_backward: f(t, 0, "out"), 2),
            Case(name + "WithLogitsTargetBackward", FLOATS, lambda t, f=with_logits_backward: f(t, 1, "gradTarget"), 2),
        ]
    return cases


def divergence() -> list[Case]:
    cases = []
    for code, reduction in enumerate((*REDUCTIONS, "batchmean")):
        for log in (False, True):

            def loss(x: Any, y: Any, reduction: str = reduction, log: bool = log) -> Any:
                return F.kl_div(x, y, reduction=reduction, log_target=log)

            def forward(t: Maker, code: int = code, log: bool = log, f: Any = loss) -> Built:
                x, y = t(3, 4), t(3, 4) if log else probabilities(t, 3, 4)
                want = f(x.double(), y.double()).to(x.dtype)
                return (
                    {"self": x, "target": y, "reduction": code, "logTarget": log},
                    {"out": want if code == 0 else want.reshape(1)},
                )

            def backward(t: Maker, of: int, out: str, code: int = code, log: bool = log, f: Any = loss) -> Built:
                x, y = t(3, 4), t(3, 4) if log else probabilities(t, 3, 4)
                g = t(3, 4) if code == 0 else t(1)
                want = gradient(f, g if code == 0 else g.reshape(()), x, y, of=of)
                return ({"gradOutput": g, "self": x, "target": y, "reduction": code, "logTarget": log}, {out: want})

            cases += [
                Case("aclnnKlDiv", FLOATS, forward, 2),
                Case("aclnnKlDivBackward", FLOATS, lambda t, f=backward: f(t, 0, "out"), 2),
                Case("aclnnKlDivTargetBackward", FLOATS, lambda t, f=backward: f(t, 1, "gradTarget"), 2),
            ]
    return cases


def likelihood(name: str, *shape: int) -> list[Case]:
    places = (shape[0], *shape[2:])
    cases = []
    for code, reduction in enumerate(REDUCTIONS):

        def build(t: Maker, backward: bool, code: int = code, reduction: str = reduction) -> Built:
            x, w = t(*shape), t(shape[1]).abs() + 0.5
            y = t.index(shape[1], *places, dtype="int64" if t.strided else "int32").clone()
            y.view(-1)[0] = -100 if backward else 1  # ignored
            given = {"self": x, "target": y, "weight": w, "reduction": code, "ignoreIndex": -100 if backward else 1}
            wide = [x.double(), y.long(), w.double(), code, given["ignoreIndex"]]
            forward = torch.ops.aten.nll_loss2d_forward if len(shape) == 4 else torch.ops.aten.nll_loss_forward
            loss, total = forward(*wide)
            if not backward:
                return given, {"out": loss.to(x.dtype), "totalWeightOut": total.to(x.dtype).reshape(1)}
            g, total = incoming(t, reduction, *places), total.to(x.dtype)
            kernel = torch.ops.aten.nll_loss2d_backward if len(shape) == 4 else torch.ops.aten.nll_loss_backward
            want = kernel(zero_dimensional(g, reduction).double(), *wide, total.double())
            return {**given, "gradOutput": g, "totalWeight": total.reshape(1)}, {"out": want.to(x.dtype)}

        cases += [
            Case(name, FLOATS, lambda t, f=build: f(t, False), 2),
            Case(name + "Backward", FLOATS, lambda t, f=build: f(t, True), 2),
        ]
    return cases


def cross_entropy() -> list[Case]:
    cases = []
    for reduction in REDUCTIONS:
        for smoothing in (0.0, 0.25):

            def loss(x: Any, y: Any, w: Any, reduction: str = reduction, smoothing: float = smoothing) -> Any:
                return F.cross_entropy(x, y.long(), w, ignore_index=2, reduction=reduction, label_smoothing=smoothing)

            def build(
                t: Maker, backward: bool, reduction: str = reduction, smoothing: float = smoothing, f: Any = loss
            ) -> Built:
                x, y, w = t(5, 4), t.index(4, 5), t(4, dtype="float32").abs() + 0.5
                logarithms = x.double().log_softmax(1)
                given = {
                    "target": y,
                    "weightOptional": w,
                    "reductionOptional": reduction,
                    "ignoreIndex": 2,
                    "labelSmoothing": smoothing,
                    "lseSquareScaleForZloss": 0.0,
                }
                if not backward:
                    want = f(x.double(), y, w.double()).to(x.dtype)
                    unused = torch.zeros(0, dtype=x.dtype)
                    return (
                        {**given, "input": x, "returnZloss": False},
                        {
                            "lossOut": want if reduction == "none" else want.reshape(1),
                            "logProbOut": logarithms.to(x.dtype),
                            "zlossOut": unused,
                            "lseForZlossOut": unused,
                        },
                    )
                g, saved = incoming(t, reduction, 5), logarithms.to(x.dtype)
                wide = saved.double().requires_grad_()  # log_softmax of it is itself
                result = f(wide, y, w.double())
                want = torch.autograd.grad(result, wide, zero_dimensional(g, reduction).double())[0]
                return {**given, "gradLoss": g, "logProb": saved}, {"out": want.to(x.dtype)}

            cases += [
                Case("aclnnCrossEntropyLoss", FLOATS, lambda t, f=build: f(t, False), 2),
                Case("aclnnCrossEntropyLossGrad", FLOATS, lambda t, f=build: f(t, True), 4),
            ]
    return cases


def multilabel(code: int) -> Case:
    def build(t: Maker) -> Built:
        x = t(3, 4)
        y = torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]])
        want, is_target = torch.ops.aten.multilabel_margin_loss_forward(x.double(), y, code)
        return (
            {"self": x, "target": y, "reduction": code},
            {"out": want.to(x.dtype), "isTarget": is_target.to(x.dtype)},
        )

    return Case("aclnnMultilabelMarginLoss", FLOATS, build)


CASES = [
    *pointwise("aclnnMseLoss", F.mse_loss),
    *pointwise("aclnnL1Loss", F.l1_loss, grad_out="gradInput"),
    *pointwise(
        "aclnnSmoothL1Loss",
        lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.75),
        out="result",
        grad="gradOut",
        grad_out="gradInput",
        beta=0.75,
    ),
    *pointwise("aclnnSoftMarginLoss", F.soft_margin_loss, target=lambda t, *s: t(*s).sign()),
    *binary(),
    *divergence(),
    *likelihood("aclnnNLLLoss", 5, 4),
    *likelihood("aclnnNLLLoss2d", 2, 4, 2, 3),
    *cross_entropy(),
    multilabel(0),
    multilabel(1),
    multilabel(2),
    *(
        Case(
            "aclnnL1Loss",
            ("int64",),
            lambda t, code=code: (
                {"self": (x := t(3, 4) + 2**60), "target": (y := t(3, 4)), "reduction": code},
                {"out": (x - y).abs() if code == 0 else (x - y).abs().sum()},
            ),
        )
        for code in (0, 2)
    ),
    Case(
        "aclnnMseLoss",
        FLOATS,
        lambda t: ({"self": (x := t(0, 4)), "target": t(0, 4), "reduction": 1}, {"out": F.mse_loss(x, x)}),
    ),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


X, WEIGHT = torch.ones(2, 3), torch.ones(3)


def test_a_class_out_of_range_is_a_fault_of_the_device() -> None:
    with pytest.raises(Refused, match="out of range") as caught:
        call(
            "aclnnNLLLoss",
            self=X,
            target=torch.tensor([0, 3]),
            weight=WEIGHT,
            reduction=1,
            ignoreIndex=-100,
            out=Out(()),
            totalWeightOut=Out((1,)),
        )
    assert caught.value.code == 507015


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("aclnnMseLoss", {"self": X, "target": X, "reduction": 3, "out": Out(())}, 161002),
        ("aclnnMseLoss", {"self": X, "target": X, "reduction": 1, "out": Out((2, 3))}, 161002),
        ("aclnnMseLoss", {"self": X, "target": torch.ones(4), "reduction": 0, "out": Out((2, 3))}, 161002),
        ("aclnnMseLoss", {"self": X, "target": None, "reduction": 0, "out": Out((2, 3))}, 161001),
        ("aclnnSmoothL1Loss", {"self": X, "target": X, "reduction": 0, "beta": -1.0, "result": Out((2, 3))}, 161002),
        (
            "aclnnNLLLoss",
            {
                "self": X,
                "target": torch.zeros(2).long(),
                "weight": torch.ones(4),
                "reduction": 0,
                "ignoreIndex": -100,
                "out": Out((2,)),
                "totalWeightOut": Out((1,)),
            },
            161002,
        ),
        (
            "aclnnNLLLoss",
            {
                "self": X,
                "target": torch.zeros(2).long(),
                "weight": None,
                "reduction": 0,
                "ignoreIndex": -100,
                "out": Out((2,)),
                "totalWeightOut": Out((1,)),
            },
            161001,
        ),
    ],
)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code
