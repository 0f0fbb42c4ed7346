"""What chips and CANN versions do differently, and what is done about it on the device.

Invariant: a quirk is one line with its evidence; it is looked up once per line or per process, never per call.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Kernel
from . import runtime


@final
class Quirk:
    """`function` for `operator` (empty: any) on `chips`, in CANN versions `since` <= v < `until` (empty: any), is not
    to be used. `replacement`: what serves instead on the device, in the words of `lines.py`; "absent" where the lines
    of the function say what; empty where nothing does, and then the error gives the evidence."""

    def __init__(self, function: str, operator: str, chips: tuple[str, ...], replacement: str, evidence: str,
                 since: str = "", until: str = "") -> None:
        self.function: Final = function
        self.operator: Final = operator
        self.chips: Final = chips
        self.replacement: Final = replacement
        self.evidence: Final = evidence
        self.since: Final = since
        self.until: Final = until


ABSENT: Final = "absent"
_NOT_910A: Final = "the documents name 910B and later, not 910A, which refuses it with 161002"
QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk("aclnnRelu", "relu", ("310P", "310B"), "aclnnThreshold(self, 0, 0, out)",
          "documented for 910A, 910B and A3 only"),
    Quirk("aclnnAdd", "add", ("310P",), "",
          "documented as unsupported on 310P, though clients run it there: the vendor's answer decides"),
    *[Quirk(f, "", ("910A",), ABSENT, _NOT_910A) for f in (
        "aclnnGather", "aclnnScatter", "aclnnScatterAdd", "aclnnScatterValue", "aclnnScatterReduce", "aclnnIndexAdd",
        "aclnnInplaceIndexCopy", "aclnnInplaceMaskedScatter", "aclnnFlip", "aclnnUnfoldGrad", "aclnnMseLossBackward",
        "aclnnSign", "aclnnIsInf", "aclnnLeftShift", "aclnnRightShift", "aclnnNanToNum", "aclnnAngleV2",
        "aclnnReduceNansum", "aclnnExp", "aclnnLog", "aclnnLog2", "aclnnLog10", "aclnnPolar",
        "aclnnCumprod", "aclnnMaxPool2dWithIndices", "aclnnMaxPool3dWithArgmax", "aclnnAdaptiveMaxPool3d",
        "aclnnAdaptiveAvgPool3d", "aclnnAvgPool3d", "aclnnAvgPool3dBackward", "aclnnIm2col",
        "aclnnIm2colBackward", "aclnnIsPosInf", "aclnnIsNegInf", "aclnnHeaviside", "aclnnLogit",
        "aclnnMaxPool2dWithIndicesBackward", "aclnnMaxPool3dWithArgmaxBackward", "aclnnAdaptiveMaxPool2dBackward",
        "aclnnAdaptiveMaxPool3dBackward", "aclnnMaxUnpool2d", "aclnnMaxUnpool3d",
        *(f"aclnnUpsampleNearestExact{rank}d{back}" for rank in (1, 2, 3) for back in ("", "Backward")),
        "aclnnUpsampleBilinear2dAA", "aclnnUpsampleBilinear2dAABackward", "aclnnUpsampleBicubic2dAA",
        "aclnnUpsampleBicubic2dAAGrad", "aclnnCdist", "aclnnCdistBackward", "aclnnChunkCat", "aclnnCircularPad2d",
        "aclnnCircularPad2dBackward", "aclnnCircularPad3d", "aclnnCircularPad3dBackward", "aclnnFlashAttentionScore",
        "aclnnFlashAttentionScoreGrad", "aclnnKlDivBackward", "aclnnKlDivTargetBackward", "aclnnRmsNorm",
        "aclnnRmsNormGrad", "aclnnRepeatInterleaveTensor", "aclnnRepeatInterleaveWithDim", "aclnnUnique2",
        "aclnnUniqueConsecutive", "aclnnUniqueDim", "aclnnInverse", "aclnnLinalgCholesky", "aclnnSvd",
        "aclnnAmpUpdateScale", "aclnnApplyAdamWV2", "aclnnForeachNonFiniteCheckAndUnscale", "aclnnFusedSgd",
        "aclnnThnnFusedLstmCell", "aclnnThnnFusedLstmCellBackward",
        *(f"aclnnForeach{name}" for name in (
            "Abs Acos AddcdivScalarList AddcdivScalarV2 AddcmulScalarList AddcmulScalarV2 AddListV2 AddScalar "
            "AddScalarList AddScalarV2 Asin Atan Copy Cos Cosh DivList DivScalar DivScalarList DivScalarV2 Erf Erfc "
            "Exp Expm1 LerpList LerpScalar Log Log10 Log1p Log2 MaximumList MaximumScalarList MaximumScalarV2 "
            "MinimumList MinimumScalarList MinimumScalarV2 MulList MulScalar MulScalarList MulScalarV2 Neg Norm "
            "PowList PowScalarAndTensor PowScalarList PowScalarV2 Reciprocal RoundOffNumberV2 Sigmoid Sign Sin Sinh "
            "Sqrt SubListV2 SubScalarList SubScalarV2 Tan Tanh ZeroInplace").split()))],
    Quirk("aclnnUpsampleNearest1dBackward", "", ("910A", "310P"), ABSENT, "documented for FLOAT16 alone there"),
)

# How the matrix unit treats float32, by chip: 0 keeps it, 1 lets it be computed in less.
_CUBE: Final[dict[str, int]] = {"910B": 0, "910A": 1, "310P": 1, "310B": 1}
_CUBE_EVIDENCE: Final = ("910A, 310P and 310B have no float32 in the matrix unit: KEEP_DTYPE is refused with 161002 "
                         "there; on 910B anything but KEEP_DTYPE computes float32 in HF32")


# How many bytes a row must have to be normalized by aclnnRmsNorm, by chip.
_SHORTEST_ROW: Final[dict[str, int]] = {"310P": 32}
_SHORTEST_ROW_EVIDENCE: Final = "on 310P the last dimension must be 32 bytes or more, or 161002"


def shortest_row() -> int:
    """The smallest size in bytes of what RMS norm normalizes on this chip."""
    return _SHORTEST_ROW.get(runtime.chip(), 0)


# USE_HF32
HALF_FLOATS: Final = 3


def has_half_floats() -> bool:
    """Whether the matrix unit can round float32 to HF32: cubeMathType 3 is refused on chips without float32 in it."""
    return runtime.chip() not in ("910A", "310P", "310B")


def cube_math_type() -> int:
    """The value of every cubeMathType parameter on this chip."""
    return _CUBE.get(runtime.chip(), 0)


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.replace("RC", ".").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def applies(q: Quirk, operator: str, function: str, chip: str, cann: str) -> bool:
    if q.function != function or (q.operator and q.operator != operator) or chip not in q.chips:
        return False
    if not cann or not (q.since or q.until):
        return True
    version = _version(cann)
    return (not q.since or version >= _version(q.since)) and (not q.until or version < _version(q.until))


def lacks(function: str) -> bool:
    """Whether this chip has no such function, and lines are to do without it."""
    for q in QUIRKS:
        if q.function == function and q.replacement == ABSENT:
            return applies(q, "", function, runtime.chip(), runtime.cann_version() if q.since or q.until else "")
    return False


def replacement(operator: str, function: str) -> Kernel | None:
    """What serves an operator on this chip instead of its line; None where the line is right."""
    chip = ""
    for q in QUIRKS:
        if q.function == function and q.replacement and q.replacement != ABSENT:
            if not chip:
                chip = runtime.chip()
            if applies(q, operator, function, chip, runtime.cann_version() if q.since or q.until else ""):
                return _bound(q, operator)
    return None


def _bound(q: Quirk, operator: str) -> Kernel:
    from ..._dispatch import registry
    from .lines import bound

    kernel: Any = bound(q.replacement, registry.get(operator))
    assert isinstance(kernel, Kernel)
    return kernel
