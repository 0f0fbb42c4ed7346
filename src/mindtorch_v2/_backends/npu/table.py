"""The vendor's functions: one line each, our own statement of the phase-1 signature.

    Adds(T self:fhbd1248u?FD, S other:fhbd1248u?FD, S alpha:fhbd1248u?FD, T> out:fhbd1248u?FD)

A line is the name without `aclnn`, then the parameters in the vendor's order; an indented line continues the one
before. A parameter is a kind, marks, a name, and after a colon the dtypes the documents accept on Ascend 910B.

    T tensor   S scalar   I int array   F float array   B bool array   TL tensor list   SL scalar list
    i64 i32 i8 u64 u32 f64 f32 b (bool) by value with exactly that C width, dt aclDataType, s char*
    ?  may be null     >  written     !  read and written     +  has at least one dimension     =  must be row-major
    f float32 h float16 b bfloat16 d float64, 1 2 4 8 signed integers by bytes, u uint8, ? bool, U V W uint16/32/64,
    F complex64 D complex128; no colon: not documented, or the dtype of another parameter

    @channels  tensors carry a channels-first format by rank (NC, NCL, NCHW, NCDHW) instead of ND
    @last      tensors carry a channels-last format by rank (NHWC, NDHWC)
    @dynamic   the function synchronises and rewrites its outputs' shapes, which depend on data

Invariant: order, kinds and widths are the vendor's, which a test compares with the vendor facts kept as data; a line is
read when its function is first asked for.
"""
from __future__ import annotations

from typing import Final, final

from ..._dtype import ALL, dtype

# Kinds of parameters.
TENSOR: Final = 0
SCALAR: Final = 1
INTS: Final = 2
FLOATS: Final = 3
BOOLS: Final = 4
TENSORS: Final = 5
SCALARS: Final = 6
I64: Final = 7
I32: Final = 8
I8: Final = 9
U64: Final = 10
U32: Final = 11
F64: Final = 12
F32: Final = 13
BOOL: Final = 14
DTYPE: Final = 15
STRING: Final = 16

KINDS: Final[dict[str, int]] = {
    "T": TENSOR, "S": SCALAR, "I": INTS, "F": FLOATS, "B": BOOLS, "TL": TENSORS, "SL": SCALARS, "i64": I64, "i32": I32,
    "i8": I8, "u64": U64, "u32": U32, "f64": F64, "f32": F32, "b": BOOL, "dt": DTYPE, "s": STRING,
}

_LETTERS: Final[dict[str, str]] = {
    "f": "float32", "h": "float16", "b": "bfloat16", "d": "float64", "1": "int8", "2": "int16", "4": "int32",
    "8": "int64", "u": "uint8", "?": "bool", "U": "uint16", "V": "uint32", "W": "uint64", "F": "complex64",
    "D": "complex128",
}
_BY_NAME: Final[dict[str, dtype]] = {d.name: d for d in ALL}


def mask_of(letters: str) -> int:
    """A set of dtypes as bits by dtype code."""
    mask = 0
    for c in letters:
        mask |= 1 << int(_BY_NAME[_LETTERS[c]].code)
    return mask


def dtypes_of(mask: int) -> list[dtype]:
    """The dtypes in a set, in the order of the legend above."""
    found = [_BY_NAME[n] for n in _LETTERS.values()]
    return [d for d in found if mask >> int(d.code) & 1]


@final
class Param:
    """One parameter of a vendor function. `mask` is 0 where the documents name no dtypes; `lifted`: a 0-dim tensor is
    passed as one element of one dimension; `dense`: strides are not accepted."""

    def __init__(self, kind: int, name: str, optional: bool, written: bool, read: bool, lifted: bool,
                 dense: bool, letters: str) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self.optional: Final = optional
        self.written: Final = written
        self.read: Final = read
        self.lifted: Final = lifted
        self.dense: Final = dense
        self.mask: Final = mask_of(letters)


@final
class Signature:
    """A vendor function's phase-1 parameters, without the two at the end that every function has."""

    def __init__(self, name: str, params: list[Param], channels: bool, last: bool, dynamic: bool) -> None:
        self.name: Final = name
        self.params: Final = params
        self.channels: Final = channels
        self.last: Final = last
        self.dynamic: Final = dynamic

    def index(self, name: str) -> int:
        for i, p in enumerate(self.params):
            if p.name == name:
                return i
        return -1


def parse(text: str) -> Signature:
    """Read one line of the table."""
    head, _, tail = text.partition("(")
    inside, _, marks = tail.rpartition(")")
    params = [_param(p.strip(), text) for p in inside.split(",") if p.strip()]
    for mark in marks.split():
        if mark not in ("@channels", "@last", "@dynamic"):
            raise ValueError(f"table line {text!r}: unknown mark {mark!r}")
    return Signature("aclnn" + head, params, "@channels" in marks, "@last" in marks, "@dynamic" in marks)


def _param(text: str, line: str) -> Param:
    declared, _, name = text.partition(" ")
    name, _, letters = name.partition(":")
    plain = declared.rstrip("?>!+=")
    kind = KINDS.get(plain)
    if kind is None or not name:
        raise ValueError(f"table line {line!r}: cannot read parameter {text!r}; kinds: {' '.join(KINDS)}")
    marks = declared[len(plain):]
    return Param(kind, name, "?" in marks, ">" in marks or "!" in marks, ">" not in marks, "+" in marks,
                 "=" in marks, letters)


@final
class Table:
    """Lines by function name, and what has been read of them."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.read: dict[str, Signature] = {}


_TABLE: Final = Table()


def _index() -> dict[str, str]:
    lines = _TABLE.lines
    if not lines:
        for line in LINES.replace("\n    ", " ").splitlines():
            if line:
                name = "aclnn" + line[:line.index("(")]
                if name in lines:
                    raise ValueError(f"{name} has two lines in the table")
                lines[name] = line
    return lines


def names() -> list[str]:
    """Every function with a line."""
    return list(_index())


def has(name: str) -> bool:
    return name in _index()


def signature(name: str) -> Signature:
    """The parameters of a function; KeyError names it when it has no line."""
    found = _TABLE.read.get(name)
    if found is None:
        line = _index().get(name)
        if line is None:
            raise KeyError(f"{name} has no line in the table of vendor functions (_backends/npu/table.py)")
        found = parse(line)
        _TABLE.read[name] = found
    return found


LINES: Final = """\
Abs(T self:fhbd1248u?F, T> out:fhbd1248u?)
Acos(T input:fhd1248u?, T> out:fhd)
Acosh(T self:fhd, T> out:fhd)
AcoshGrad(T y:fhb, T dy:fhb, T> dx:fhb)
AdaptiveAvgPool2d(T self:fhb, I outputSize, T> out:fhb) @channels
AdaptiveAvgPool2dBackward(T gradOutput:fhb, T self:fhb, T> out:fhb)
AdaptiveAvgPool3d(T self:fhb, I outputSize, T> out:fhb)
AdaptiveAvgPool3dBackward(T gradOutput:fhb, T self:fhb, T> out:fhb)
AdaptiveMaxPool2d(T self:fhbd, I outputSize, T> outputOut:fhbd, T> indicesOut:8) @channels
AdaptiveMaxPool2dBackward(T gradOutput:fhb, T self:fhb, T indices:48, T> gradInput:fhb)
AdaptiveMaxPool3d(T self:fhb, I outputSize, T> outputOut:fhb, T> indicesOut:4) @channels
AdaptiveMaxPool3dBackward(T gradOutput:fhb, T self:fhb, T indices:4, T> gradInput:fhb)
Add(T self:fhbd1248u?FD, T other:fhbd1248u?FD, S alpha:fhbd1248u?FD, T> out:fhbd1248u?FD)
Addbmm(T+ self:fhb, T batch1:fhb, T batch2:fhb, S beta:fhd1248u?, S alpha:fhd1248u?, T> out:fhb, i8 cubeMathType)
Addcdiv(T self:fhbd8, T tensor1:fhbd8, T tensor2:fhbd8, S value:fhbd8, T> out:fhbd8)
Addcmul(T self:fhbd148u, T tensor1:fhbd148u, T tensor2:fhbd148u, S value:fhbd148u, T> out:fhbd148u)
Addmm(T+ self:fhb, T mat1:fhb, T mat2:fhb, S beta:fhd1248u, S alpha:fhd1248u, T> out:fhb, i8 cubeMathType)
Addmv(T self:fhbd1248u?, T mat:fhbd1248u?, T vec:fhbd1248u?, S alpha:fhd1248u, S beta:fhd1248u, T> out:fhbd1248u,
    i8 cubeMathType)
AddN(TL tensors:fhb48, T>+ out)
Addr(T self:fhbd1248u?, T vec1:fhbd1248u?, T vec2:fhbd1248u?, S? betaOptional:fhbd1248u?, S? alphaOptional:fhbd1248u?,
    T> out:fhbd1248u?)
AddRelu(T self:fhb1248u, T other:fhb1248u, S alpha:fhb1248u, T> out:fhb1248u)
AddrV2(T self:fhbd1248u?, T vec1:fhbd1248u?, T vec2:fhbd1248u?, S? betaOptional:fhbd1248u?,
    S? alphaOptional:fhbd1248u?, T> out:fhbd1248u?)
Adds(T self:fhbd1248u?FD, S other:fhbd1248u?FD, S alpha:fhbd1248u?FD, T> out:fhbd1248u?FD)
AffineGrid(T theta:fhb, I size, b alignCorners, T> out)
All(T self:fhbd1248u?, I dim, b keepdim, T> out:u?)
Amax(T self:fhbd1248u?, I dim, b keepDim, T> out:fhbd1248u?)
Amin(T self:fhbd1248u?, I dim, b keepDim, T> out:fhbd1248u?)
Aminmax(T self:fhbd1248u?, I dim, b keepDim, T> minOut:fhbd1248u?, T> maxOut:fhbd1248u?)
AminmaxAll(T self:fhbd1248u?, T> minOut:fhbd1248u?, T> maxOut:fhbd1248u?)
AminmaxDim(T self:fhbd1248u?, i64 dim, b keepDim, T> minOut:fhbd1248u?, T> maxOut:fhbd1248u?)
AmpUpdateScale(T= currentScale:fhb, T= growthTracker:4, T= foundInf:fhb, f64 growthFactor, f64 backoffFactor,
    i64 growthInterval, T>= updatedScale:fhb, T>= updatedGrowthTracker:4)
AngleV2(T x:fhb1248u?F, T> out:fhb)
Any(T self:fhbd1248u?, I dim, b keepdim, T> out:?)
ApplyAdamWV2(T!+ varRef:fhb, T!+ mRef, T!+ vRef, T!?+ maxGradNormOptionalRef, T+ grad, T= step:f8, f32 lr, f32 beta1,
    f32 beta2, f32 weightDecay, f32 eps, b amsgrad, b maximize)
ApplyGradientDescent(T!+ var:fhb, T alpha:fhb, T+ delta:fhb)
Arange(S start:fhbd1248u?, S end:fhbd1248u?, S step:fhbd1248u?, T> out:fhbd48)
ArgMax(T self:fhbd1248u, i64 dim, b keepdim, T> out:48)
ArgMin(T self:fhbd1248u, i64 dim, b keepdim, T> out:48)
Argsort(T self:fhb1248uUVW, i64 dim, b descending, T> out:8)
Asin(T self:fhd1248u?, T> out:fhd)
AsinGrad(T y:fhb, T dy, T> z)
Asinh(T input:fhd1248u?, T> out:fhd)
AsStrided(T x:fhb1248u?UVWF, I size, I stride, I storageOffset, T> out:fhb1248u?UVWF)
Atan(T input:fhbd1248u?, T> out:fhbd)
Atan2(T self:fhbd1248u?, T other:fhbd1248u?, T> out:fhbd)
Atanh(T input:fhd1248u?, T> out:fhd)
AvgPool2d(T self:fhb, I kernelSize, I strides, I paddings, b ceilMode, b countIncludePad, i64 divisorOverride,
    i8 cubeMathType, T> out:fhb) @channels
AvgPool2dBackward(T gradOutput:fhb, T self:fhb, I kernelSize, I stride, I padding, b ceilMode, b countIncludePad,
    i64 divisorOverride, i8 cubeMathType, T> gradInput:fhb) @channels
AvgPool3d(T self:fhb, I kernelSize, I stride, I padding, b ceilMode, b countIncludePad, i64 divisorOverride,
    T> out:fhb)
AvgPool3dBackward(T gradOutput:fhb, T self:fhb, I kernelSize, I stride, I padding, b ceilMode, b countIncludePad,
    i64 divisorOverride, T> output:fhb)
AxpyV2(T self:fhb4, T other:fhb4, T alpha:fhb4, T> out:fhb4)
Baddbmm(T+ self:fhb, T batch1:fhb, T batch2:fhb, S beta:fhd1248u?, S alpha:fhd1248u?, T> out:fhb, i8 cubeMathType)
BatchMatMul(T self:fhb, T mat2:fhb, T> out:fhb, i8 cubeMathType)
BatchNorm(T input:fhb, T? weight:fhb, T? bias:fhb, T!? runningMean:fhb, T!? runningVar:fhb, b training, f64 momentum,
    f64 eps, T> output:fhb, T> saveMean:fhb, T> saveInvstd:fhb) @channels
BatchNormBackward(T gradOut:fhb, T input:fhb, T weight:fhb, T runningMean:fhb, T runningVar:fhb, T saveMean:fhb,
    T saveInvstd:fhb, b training, f64 eps, B outputMask, T>? gradInput:fhb, T>? gradWeight:fhb,
    T>? gradBias:fhb) @channels
BatchNormElemt(T input:fhb, T weight:fhb, T bias:fhb, T mean:fhb, T invstd:fhb, f64 eps, T> output:fhb)
BatchNormElemtBackward(T gradOut:fhb, T input:fhb, T mean:fhb, T invstd:fhb, T? weight:fhb, T sumDy:fhb,
    T sumDyXmu:fhb, T+ counter:fh4, T> gradInput:fhb)
BatchNormGatherStatsWithCounts(T input:fhb, T mean:fhb, T invstd:fhb, T!? runningMean:fhb, T!? runningVar:fhb,
    f64 momentum, f64 eps, T counts:fhb, T> meanAll:fhb, T> invstdAll:fhb)
BatchNormReduce(T x:fhb, T> sum:f, T> squareSum:f) @channels
BatchNormReduceBackward(T gradOut:fhb, T input:fhb, T mean:fhb, T invstd:fhb, T weight:fhb, b inputG, b weightG,
    b biasG, T>? sumDy:fhb, T>? sumDyXmu:fhb, T>? gradWeight:fhb, T>? gradBias:fhb)
BatchNormStats(T input:fh, f64 eps, T> mean:f, T> invstd:f)
Bernoulli(T self:fhbd1248u?, S prob:fhbd, i64 seed, i64 offset, T> out:fhbd1248u?)
BernoulliTensor(T self:fhbd, T prob:fhd, i64 seed, i64 offset, T> out:fhbd)
BiasAdd(T x:fhb4, T bias, s? dataFormatOptional, T> out)
BinaryCrossEntropy(T self, T target, T? weight, i64 reduction, T> out)
BinaryCrossEntropyBackward(T gradOutput:fhb, T self:fhb, T target:fhb, T? weightOptional:fhb, i64 reduction,
    T> out:fhb)
BinaryCrossEntropyWithLogits(T+ self:fhb, T+ target, T?+ weightOptional, T?+ posWeightOptional, i64 reduction, T> out)
BinaryCrossEntropyWithLogitsBackward(T gradOutput:fhb, T+ self:fhb, T target, T? weightOptional, T? posWeightOptional,
    i64 reduction, T> out)
BinaryCrossEntropyWithLogitsTargetBackward(T+ gradOutput:fhb, T+ self:fhb, T target:fhb, T?+ weightOptional:fhb,
    T?+ posWeightOptional:fhb, i64 reduction, T> gradTarget:fhb)
Bincount(T self:1248u, T? weights:fhd1248u?, i64 minlength, T> out:fd48)
BitwiseAndScalar(T self:1248u?U, S other:1248u?U, T> out:fhbd1248u?U)
BitwiseAndTensor(T self:1248u?U, T other:1248u?U, T> out:1248u?UVW)
BitwiseNot(T self:1248u?, T> out:1248u?)
BitwiseOrScalar(T self:1248u?UVW, S other:1248u?UVW, T> out:fhbd1248u?UVWFD)
BitwiseOrTensor(T self:1248u?UVW, T other:1248u?UVW, T> out:1248u?UVW)
BitwiseXorScalar(T self:1248u?UVW, S other:1248u?UVW, T> out:fhbd1248u?UVWFD)
BitwiseXorTensor(T self:1248u?UVW, T other:1248u?UVW, T> out:fhbd1248u?UVWFD)
Cast(T self:fhbd1248u?UVWFD, dt dtype, T> out:fhbd1248u?UVWFD)
Cat(TL tensors:fhbd1248u?F, i64 dim, T> out:fhbd1248u?F)
Cdist(T x1:fhb, T x2, f32 p, i64 compute_mode, T> out:fhb)
CdistBackward(T grad:fhb, T x1:fhb, T x2:fhb, T cdist:fhb, f32 p, T> out:fhb)
Ceil(T self:fhbd, T> out:fhbd)
Celu(T self:fhb, S alpha, T> out:fhb)
ChannelShuffle(T self:fhd1248u?FD, i64 groups, T> out:fhbd1248u?FD)
ChunkCat(TL tensors:fhb, i64 dim, i64 numChunks, T> out:fhb)
CircularPad2d(T self:fhb14, I padding, T> out:fhb14)
CircularPad2dBackward(T gradOutput, T self:fhb, I padding, T> gradInput)
CircularPad3d(T self:fhb14, I padding, T> out:fhb14)
CircularPad3dBackward(T gradOutput, T self:fhb, I padding, T> gradInput)
Clamp(T+ self:fhbd1248u, S clipValueMin:fhbd1248u, S clipValueMax:fhbd1248u, T>+ out:fhbd1248u)
ClampMax(T+ self:fhbd1248u, S clipValueMax:fhbd1248u?, T>+ out:fhbd1248u)
ClampMaxTensor(T+ self:fhbd1248u, T+ max:fhbd1248u, T>+ out:fhbd1248u)
ClampMin(T+ self:fhbd1248u, S clipValueMin:fhbd1248u, T>+ out:fhbd1248u)
ClampMinTensor(T+ self:fhbd1248u, T+ clipValueMin:fhbd1248u, T>+ out:fhbd1248u)
ClampTensor(T+ self:fhbd1248u, T+ clipValueMin:fhbd1248u?, T+ clipValueMax:fhbd1248u?, T>+ out:fhbd1248u)
Complex(T real:fhd, T imag:fhd, T> out:FD)
ConstantPadNd(T self:fhbd1248u?UVWFD, I pad, S value:fhbd1248u?UVWFD, T> out)
ConvDepthwise2d(T self:fhb, T weight:fhb, I kernelSize, T bias:fhb, I stride, I padding, I dilation, T> out:fhb,
    i8 cubeMathType) @channels
Convolution(T input:fhb, T weight:fhb, T?+ bias:fhb, I stride, I padding, I dilation, b transposed, I outputPadding,
    i64 groups, T> output:fhb, i8 cubeMathType) @channels
ConvolutionBackward(T gradOutput:fhb, T input:fhb, T weight:fhb, I biasSizes, I stride, I padding, I dilation,
    b transposed, I outputPadding, i32 groups, B outputMask, i8 cubeMathType, T>?= gradInput:fhb, T>?= gradWeight:fhb,
    T>?= gradBias:fhb) @channels
ConvTbc(T self:fhb, T weight:fhb, T? bias:fhb, i64 pad, T> output, i8 cubeMathType)
ConvTbcBackward(T self:fhb, T input:fhb, T weight:fhb, T? bias:fhb, i64 pad, i8 cubeMathType, T>= gradInput:fhb,
    T>= gradWeight:fhb, T>= gradBias:fhb)
Cos(T input:fhbd1248u?FD, T> out:fhbdFD)
Cosh(T self:fhd, T> out:fhd)
CrossEntropyLoss(T input:fhb, T target:48, T? weightOptional:f, s? reductionOptional, i64 ignoreIndex,
    f64 labelSmoothing, f64 lseSquareScaleForZloss, b returnZloss, T> lossOut, T> logProbOut, T> zlossOut,
    T> lseForZlossOut)
CrossEntropyLossGrad(T gradLoss:fhb, T logProb:fhb, T target:8, T? weightOptional:f, T? gradZlossOptional:fhb,
    T? lseForZlossOptional:fhb, s? reductionOptional, i64 ignoreIndex, f64 labelSmoothing, f64 lseSquareScaleForZloss,
    T> out)
CtcLoss(T logProbs:fhbd, T targets:fh48?, I inputLengths, I targetlengths, i64 blank, b zeroInfinity,
    T> negLogLikelihoodOut, T> logAlphaOut)
CtcLossBackward(T gradOut:fhbd, T logProbs:fhbd, T targets:48, I inputLengths, I targetLengths, T negLogLikelihood,
    T logAlpha, i64 blank, b zeroInfinity, T> out)
Cummax(T self:fhbd1248u?, i64 dim, T> valuesOut:fhbd1248u?, T> indicesOut:48)
Cummin(T self:fhbd1248u?, i64 dim, T> valuesOut:fhbd1248u?, T> indicesOut:48)
Cumprod(T input:fhbd1248uUVW, S dim:4, dt dtype, T> out:fhbd1248uUVW)
Cumsum(T self:fhbd1248uFD, i64 dim, dt dtype, T> out:fhbd1248uFD)
CumsumV2(T self:fhbd1248uFD, i64 dim, b exclusive, b reverse, T> out:fhbd1248uFD)
Diag(T self:fhbd1248u?F, i64 diagonal, T> out)
DiagFlat(T+ self:fhbd1248u?F, i64 diagonal, T>+ out)
DiagPart(T x, T> y)
Digamma(T self, T> out)
Div(T self:fhbd1248u?FD, T other:fhbd1248u?FD, T> out:fhbd1248u?FD)
DivMod(T self:fhbd1248u?FD, T other:fhbd1248u?FD, i32 mode, T> out:fhbd1248u?FD)
DivMods(T self:fhbd1248u?FD, S other:fhbd1248u?FD, i32 mode, T> out:fhd1248u?FD)
Divs(T self:fhbd1248u?FD, S other:fhbd1248u?FD, T> out:fhbd1248u?FD)
Dot(T self:fhb14u, T tensor:fhb14u, T> out:fhb14u)
Dropout(T+ input:fhb, f64 p, b train, i64 seed, i64 offset, T>+ out:fhb, T> maskOut:u)
DropoutBackward(T+ gradOutput:fhb, T+ mask:u, f64 scale, T>+ out:fhb)
DropoutDoMask(T self:fhb, T mask:u, f64 prob, T> out:fhb)
DropoutGenMask(I shape, f64 prob, i64 seed, i64 offset, T> out:u)
DropoutGenMaskV2(I shape, f64 prob, i64 seed, i64 offset, dt probDataType, T> out:u)
DropoutGenMaskV2Tensor(I shape, f64 prob, T seedTensor:8, T offsetTensor:8, i64 offset, dt probDataType, T> out:u)
Einsum(TL tensors:fh248UVW, s equation, T> output:fh248UVW)
Elu(T self:fhb, S alpha, S scale, S inputScale, T> out:fhb)
EluBackward(T gradOutput:fhb, S alpha, S scale, S inputScale, b isResult, T selfOrResult:fhb, T> gradInput:fhb)
Embedding(T weight:fhbd1248u?FD, T indices:48, T> out:fhbd1248u?FD)
EmbeddingBag(T weight:fhb, T indices:48, T offsets:48, b scaleGradByFreq, i64 mode, b sparse, T perSampleWeights:fhb,
    b includeLastOffset, i64 paddingIdx, T> output, T> offset2bag:48, T> bagSize:48, T> maxIndices:48)
EmbeddingDenseBackward(T grad:fhb, T+ indices:fhd1248u?, u64 numWeights, u64 paddingIdx, b scaleGradByFreq, T> out)
EmbeddingRenorm(T! selfRef:fhb, T indices:48, f64 maxNorm, f64 normType)
EqScalar(T self:fhbd1248u?VWFD, S other:fhbd1248u?VWFD, T> out:fhbd1248u?UVWFD)
EqTensor(T self:fhbd1248u?VWFD, T other:fhbd1248u?VWFD, T> out:fhbd1248u?UVWFD)
Equal(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out)
Erf(T self:fhd8?, T> out:fhd)
Erfc(T self:fhd8?, T> out:fhd)
Erfinv(T self:fhb1248u?, T> out:fhb)
Exp(T self:fhbd8?FD, T> out:fhbdFD)
Exp2(T self:fhbd1248u?, T> out:fhbd)
Expand(T self:fhb148u?, I size, T> out)
Expm1(T self:fhb8?, T> out:fhbd)
Eye(i64 n, i64 m, T> out:fhb1248u?)
FastBatchNormBackward(T gradOut:fhb, T input:fhb, T weight:fhb, T runningMean:fhb, T runningVar:fhb, T saveMean:fhb,
    T saveInvstd:fhb, b training, f64 eps, B outputMask, i32 version, T>? gradInput:fhb, T>? gradWeight:fhb,
    T>? gradBias:fhb)
FastGelu(T self:fhb, T> out:fhb)
FastGeluBackward(T gradOutput:fhb, T self:fhb, T> gradInput:fhb)
FastLayerNorm(T+ input:fhb, I normalizedShape, T?+ weightOptional:fhb, T?+ biasOptional:fhb, f64 eps, T>+ out:fhb,
    T>?+ meanOutOptional:fhb, T>?+ rstdOutOptional:fhb)
FatreluMul(T input:fhb, T threshold:fhb, T> out:fhb)
FlashAttentionScore(T query:fhb, T key:fhb, T value:fhb, T? realShiftOptional:fhb, T? dropMaskOptional:u,
    T? paddingMaskOptional, T? attenMaskOptional:u?, I? prefixOptional, f64 scaleValue, f64 keepProb, i64 preTokens,
    i64 nextTokens, i64 headNum, s inputLayout, i64 innerPrecise, i64 sparseMode, T> softmaxMaxOut:f,
    T> softmaxSumOut:f, T> softmaxOutOut, T> attentionOutOut:fhb)
FlashAttentionScoreGrad(T query:fhb, T keyIn:fhb, T value:fhb, T dy:fhb, T? pseShiftOptional:fhb,
    T? dropMaskOptional:u, T? paddingMaskOptional, T? attenMaskOptional:u?, T? softmaxMaxOptional:f,
    T? softmaxSumOptional:f, T? softmaxInOptional, T? attentionInOptional:fhb, I? prefixOptional, f64 scaleValue,
    f64 keepProb, i64 preTokens, i64 nextTokens, i64 headNum, s inputLayout, i64 innerPrecise, i64 sparseMode,
    T> dqOut:fhb, T> dkOut:fhb, T> dvOut:fhb, T> dpseOut)
Flatten(T self:fhb1248u?UVW, i64 axis, T> out)
Flip(T+ self:fhbd1248u?FD, I dims, T>+ out)
Floor(T self:fhd1248uUVW, T> out:fhd1248uUVW)
FloorDiv(T self_x:fhb14u, T self_y:fhb14u, T> out:fhb14u)
FloorDivide(T self:fhd1248u?, T other:fhd1248u?, T> out:fhd1248uFD)
FloorDivides(T self:fhd1248u?, S other:fhd1248u?, T> out:fhd1248u?)
FmodScalar(T self:fhbd148u, S other:fhbd148u, T> out:fhbd148u)
FmodTensor(T self:fhbd148u, T other:fhbd148u, T> out:fhbd148u)
ForeachAbs(TL x:fhb, TL>= out:fhb)
ForeachAcos(TL x:fhb, TL>= out:fhb)
ForeachAddcdivList(TL x1:fhb, TL x2:fhb, TL x3:fhb, T scalars:fhb, TL>= out:fhb)
ForeachAddcdivScalar(TL x1:fhb, TL x2:fhb, TL x3:fhb, T scalar:fh, TL> out:fhb)
ForeachAddcdivScalarList(TL x1:fhb, TL x2:fhb, TL x3:fhb, T scalars:fhb, TL> out:fhb)
ForeachAddcdivScalarV2(TL= x1:fhb, TL= x2:fhb, TL= x3:fhb, S scalar:fhd, TL>= out:fhb)
ForeachAddcmulList(TL x1:fhb4, TL x2:fhb4, TL x3:fhb4, T scalars:fhb4, TL>= out:fhb4)
ForeachAddcmulScalar(TL x1:fhb4, TL x2:fhb4, TL x3:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachAddcmulScalarList(TL x1:fhb4, TL x2:fhb4, TL x3:fhb4, T scalars:fhb4, TL>= out:fhb4)
ForeachAddcmulScalarV2(TL= x1:fhb4, TL= x2:fhb4, TL= x3:fhb4, S scalar:fhd48, TL>= out:fhb4)
ForeachAddList(TL x1:fhb124u, TL x2:fhb124u, T alpha:fh4, TL> out:fhb124u)
ForeachAddListV2(TL x1:fhb124u, TL x2:fhb124u, S alpha:fhd48, TL> out:fhb124u)
ForeachAddScalar(TL x:fhb124u, T scalar:fh4, TL>= out:fhb124u)
ForeachAddScalarList(TL x:fhb4, SL scalars:f8, TL>= out:fhb4)
ForeachAddScalarV2(TL= x:fhb124u, S scalar:fhd48, TL>= out:fhb124u)
ForeachAsin(TL x:fhb, TL>= out:fhb)
ForeachAtan(TL x:fhb, TL>= out:fhb)
ForeachCopy(TL x:fhbd1248u?UV, TL> out:fhbd1248u?UV)
ForeachCos(TL x:fhb, TL>= out:fhb)
ForeachCosh(TL x:fhb, TL>= out:fhb)
ForeachDivList(TL x1:fhb, TL x2:fhb, TL> out:fhb)
ForeachDivScalar(TL x:fhb, T scalar:fh, TL> out:fhb)
ForeachDivScalarList(TL x:fhb, SL scalars:f, TL>= out:fhb)
ForeachDivScalarV2(TL x:fhb, S scalar:fhd, TL> out:fhb)
ForeachErf(TL x:fhb, TL>= out:fhb)
ForeachErfc(TL x:fhb, TL>= out:fhb)
ForeachExp(TL x:fhb12u, TL> out:fhb12u)
ForeachExpm1(TL x:fhb12u, TL> out:fhb12u)
ForeachLerpList(TL x1:fhb, TL x2:fhb, TL weight:fhb, TL> out:fhb)
ForeachLerpScalar(TL x1:fhb, TL x2:fhb, S weight:fd, TL> out:fhb)
ForeachLog(TL x:fhb, TL>= out:fhb)
ForeachLog10(TL x:fhb, TL>= out:fhb)
ForeachLog1p(TL x:fhb, TL>= out:fhb)
ForeachLog2(TL x:fhb, TL>= out:fhb)
ForeachMaximumList(TL x1:fhb4, TL x2:fhb4, TL>= out:fhb4)
ForeachMaximumScalar(TL x:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachMaximumScalarList(TL x:fhb4, SL scalars:fd8, TL>= out:fhb4)
ForeachMaximumScalarV2(TL= x:fhb4, S scalar:fhd48, TL>= out:fhb4)
ForeachMinimumList(TL x1:fhb4, TL x2:fhb4, TL>= out:fhb4)
ForeachMinimumScalar(TL x:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachMinimumScalarList(TL x:fhb4, SL scalars:fd8, TL>= out:fhb4)
ForeachMinimumScalarV2(TL= x:fhb4, S scalar:fhd48, TL>= out:fhb4)
ForeachMulList(TL x1:fhb124u, TL x2:fhb124u, TL> out:fhb124u)
ForeachMulScalar(TL x:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachMulScalarList(TL x:fhb4, SL scalars:fd8, TL>= out:fhb4)
ForeachMulScalarV2(TL= x:fhb4, S scalar:fhd48, TL>= out:fhb4)
ForeachNeg(TL x:fhb124u, TL>= out:fhb124u)
ForeachNonFiniteCheckAndUnscale(TL!= scaledGrads:fhb, T!= foundInf:f, T invScale:f)
ForeachNorm(TL x:fhb, S scalar:fd8, TL>= out:fhb)
ForeachPowList(TL x1:fhb4, TL x2:fhb4, TL>= out:fhb4)
ForeachPowScalar(TL x:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachPowScalarAndTensor(S scalar:fd8, TL x:fhb4, TL>= out:fhb4)
ForeachPowScalarList(TL x:fhb4, SL scalars:f8, TL>= out:fhb4)
ForeachPowScalarV2(TL= x:fhb, S scalar:fhd, TL>= out:fhb)
ForeachReciprocal(TL x:fhb, TL>= out:fhb)
ForeachRoundOffNumber(TL x:fhb2, T roundMode:1, TL>= out:fhb2)
ForeachRoundOffNumberV2(TL= x:fhb2, S roundMode:18, TL>= out:fhb2)
ForeachSigmoid(TL x:fhb, TL>= out:fhb)
ForeachSign(TL x:fhb148, TL>= out:fhb148)
ForeachSin(TL x:fhb, TL>= out:fhb)
ForeachSinh(TL x:fhb, TL>= out:fhb)
ForeachSqrt(TL x:fhb, TL> out:fhb)
ForeachSubList(TL x1:fhb124u, TL x2:fhb124u, T alpha:fh4, TL>= out:fhb124u)
ForeachSubListV2(TL= x1:fhb124u, TL= x2:fhb124u, S alpha:fhd48, TL>= out:fhb124u)
ForeachSubScalar(TL x:fhb4, T scalar:fh4, TL>= out:fhb4)
ForeachSubScalarList(TL x:fhb4, SL scalars:f8, TL>= out:fhb4)
ForeachSubScalarV2(TL= x:fhb4, S scalar:fhd48, TL>= out:fhb4)
ForeachTan(TL x:fhb, TL>= out:fhb)
ForeachTanh(TL x:fhb, TL>= out:fhb)
ForeachZeroInplace(TL!= x:fhb24)
Frac(T input:fhb1248u, T> out:fhb1248u)
FusedAdamw(TL!+ paramsRef:fhb, TL+ grads, TL!+ expAvgsRef, TL!+ expAvgSqsRef, TL!?+ maxExpAvgSqsRef, TL= stateSteps:f8,
    T?= gradScaleOptional:f, T?= foundInfOptional:f, f64 lr, f64 beta1, f64 beta2, f64 weightDecay, f64 eps,
    b amsgrad, b maximize)
FusedSgd(TL! paramsRef:fhb, TL! gradsRef:fhb, TL!? momentumBufferListOptionalRef:fhb, T? gradScaleOptional:fhb,
    f32 weightDecay, f32 momentum, f32 lr, f32 dampening, b nesterov, b maximize, b isFirstStep)
Gather(T+ self:fhbd1248u?UVW, i64 dim, T+ index:48, T>+ out)
GatherNd(T+ self:fhb148u?, T indices:48, b negativeIndexSupport, T> out)
GatherV2(T+ self:fhbd1248u?FD, i64 dim, T+ index:48, T>+ out)
GatherV3(T+ self:fhd1248u?F, i64 dim, T+ index:48, i64 batchDims, i64 mode, T>+ out)
Gcd(T+ self:1248u, T+ other:1248u, T>+ out:1248uUVW)
Gelu(T self:fhb, T> out:fhb)
GeluBackward(T gradOutput:fhb, T self:fhb, T> gradInput:fhb)
GeluBackwardV2(T gradOutput:fhb, T self:fhb, s approximate, T> gradInput:fhb)
GeluMul(T input:fhb, s? approximateOptional, T> out:fhb)
GeluV2(T x:fhb, i64 approximate, T> y:fhb)
Gemm(T A:fhb, T B:fhb, T C:fhb, f32 alpha, f32 beta, i64 transA, i64 transB, T> out:fhb, i8 cubeMathType)
GemmaRmsNorm(T+ x:fhb, T+ gamma:fhb, f64 epsilon, T>+ yOut:fhb, T>+ rstdOut:f)
Ger(T self:fhd1248u?FD, T vec2:fhd1248u?FD, T> out:fhd1248u?FD)
GeScalar(T self:fhbd1248u?UVW, S other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
GeTensor(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
GlobalAveragePool(T self:fhbd, T> out:fhbd)
GlobalMaxPool(T self:fhd, T> out:fhd)
Glu(T+ self:fhbd, i64 dim, T>+ out:fhbd)
GluBackward(T gradOut:fhbd, T self:fhbd, i64 dim, T> out:fhbd)
GridSampler2D(T input:fhbd, T grid:fhbd, i64 interpolationMode, i64 paddingMode, b alignCorners, T> out:fhbd)
GridSampler2DBackward(T gradOutput:fhbd, T input:fhbd, T grid:fhbd, i64 interpolationMode, i64 paddingMode,
    b alignCorners, B outputMask, T> inputGrad:fhbd, T> gridGrad:fhbd)
GridSampler3D(T input:fhbd, T grid:fhbd, i64 interpolationMode, i64 paddingMode, b alignCorners, T> out:fhbd)
GridSampler3DBackward(T gradOutput:fhbd, T input:fhbd, T grid:fhbd, i64 interpolationMode, i64 paddingMode,
    b alignCorners, B outputMask, T> inputGrad:fhbd, T> gridGrad:fhbd) @last
GroupNorm(T self:fhb, T gamma:fhb, T beta:fhb, i64 N, i64 C, i64 HxW, i64 group, f64 eps, T> out:fhb, T> meanOut:fhb,
    T> rstdOut:fhb)
GroupNormBackward(T gradOut:fhb, T input:fhb, T mean:fhb, T rstd:fhb, T gamma:fhb, i64 N, i64 C, i64 HxW, i64 group,
    B outputMask, T> gradInput:fhb, T> gradGammaOut:fhb, T> gradBetaOut:fhb)
GtScalar(T self:fhbd1248u?UVW, S other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
GtTensor(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
Hardshrink(T self:fhb, S lambd:f, T> out:fhb)
HardshrinkBackward(T gradOutput:fhb, T self:fhb, S lambd:f, T> gradInput:fhb)
Hardsigmoid(T self:fhb4, T> out:fhb4)
HardsigmoidBackward(T gradOutput:fhb, T self:fhb, T> out:fhb)
HardsigmoidV2(T self:fhb4, T> out:fhb4)
Hardswish(T self:fhb, T> out:fhb)
HardswishBackward(T gradOutput:fhb, T self:fhb, T> out:fhb)
HardswishBackwardV2(T+ gradOutput:fhb, T+ self:fhb, T>+ out:fhb)
Hardtanh(T+ self:fhbd1248u, S clipValueMin:fhbd1248u?, S clipValueMax:fhbd1248u?, T>+ out:fhbd1248u)
HardtanhBackward(T gradOutput:fhb, T self:fhb, S min:fhb, S max:fhb, T> out:fhb)
Heaviside(T input:fhb, T values:fhb, T> out:fhb)
HingeEmbeddingLoss(T input:fhb, T target:fhb, f64 margin, s reduction, T> loss:fhb)
Histc(T self:fh1248u, i64 bins, S min, S max, T> out:fh1248u)
HuberLoss(T predictions:fhb, T targets:fhb, f32 delta, T> loss:fhb)
Im2col(T self:fhbd1248u?UVWF, I kernelSize, I dilation, I padding, I stride, T> out:fhbd1248u?UVWF)
Im2colBackward(T gradOutput:fhb, I inputSize, I kernelSize, I dilation, I padding, I stride, T> out:fhb)
Index(T+ self:fhbd1248u?, TL indices:48?, T>+ out)
IndexAdd(T+ self:fhbd1248u?, i64 dim, T+ index:48, T+ source, S alpha, T>+ out)
IndexAddV2(T self:fhbd1248u?, i64 dim, T index:48, T source, S alpha, i64 mode, T> out)
IndexCopy(T! selfRef:fhbd1248u?FD, i64 dim, T index:48, T source, T> outRef)
IndexFill(T self:fhb48?, i64 dim, T index:48, S value, T> out)
IndexFillTensor(T self:fhb48?, i64 dim, I index, S value, T> out)
IndexPutImpl(T!+ selfRef:fhbd1248u?, TL indices:48?, T+ values, b accumulate, b unsafe)
IndexSelect(T+ self:fhbd1248u?UVWFD, i64 dim, T+ index:48, T>+ out)
InplaceAcos(T! inputRef:fhd)
InplaceAcosh(T! selfRef:fhd)
InplaceAdd(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD, S alpha:fhbd1248u?FD)
InplaceAddbmm(T! selfRef:fhb, T batch1:fhb, T batch2:fhb, S beta:fhd1248u?, S alpha:fhd1248u?, i8 cubeMathType)
InplaceAddcdiv(T! selfRef:fhbd8, T tensor1:fhbd8, T tensor2:fhbd8, S value:fhbd8)
InplaceAddcmul(T! selfRef:fhbd148u, T tensor1:fhbd148u, T tensor2:fhbd148u, S value:fhbd148u)
InplaceAddmm(T! selfRef:fhb, T mat1:fhb, T mat2:fhb, S beta:fhd1248u, S alpha:fhd1248u, i8 cubeMathType)
InplaceAddr(T! selfRef:fhbd1248u?, T vec1:fhbd1248u?, T vec2:fhbd1248u?, S? betaOptional:fhbd1248u?,
    S? alphaOptional:fhbd1248u?)
InplaceAddRelu(T! selfRef:fhb1248u, T other:fhb1248u, S alpha:fhb1248u)
InplaceAddrV2(T! selfRef:fhbd1248u?, T vec1:fhbd1248u?, T vec2:fhbd1248u?, S? betaOptional:fhbd1248u?,
    S? alphaOptional:fhbd1248u?)
InplaceAdds(T! selfRef:fhbd1248u?, S other:fhbd1248u?, S alpha:fhbd1248u?)
InplaceAsin(T! selfRef:fhd)
InplaceAsinh(T! inputRef:fhd)
InplaceAtan(T! inputRef:fhbd)
InplaceAtan2(T! selfRef:fhbd1248u?, T other:fhbd1248u?)
InplaceAtanh(T! inputRef:fhd)
InplaceBaddbmm(T! selfRef:fhb, T batch1:fhb, T batch2:fhb, S beta:fhd1248u?, S alpha:fhd1248u?, i8 cubeMathType)
InplaceBernoulli(T! selfRef:fhbd1248u?, S prob:fhbd, i64 seed, i64 offset)
InplaceBernoulliTensor(T! selfRef:fhd1248u?, T prob:fhd, i64 seed, i64 offset)
InplaceBitwiseAndScalar(T! selfRef:1248u?U, S other:1248u?U)
InplaceBitwiseAndTensor(T! selfRef:1248u?U, T other:1248u?U)
InplaceBitwiseOrScalar(T! selfRef:1248u?U, S other:1248u?U)
InplaceBitwiseOrTensor(T! selfRef:1248u?UVW, T other:1248u?UVW)
InplaceBitwiseXorScalar(T! selfRef:1248u?, S other:1248u?)
InplaceBitwiseXorTensor(T! selfRef:1248u?, T other:1248u?)
InplaceCeil(T! selfRef:fhbd)
InplaceCelu(T! selfRef:fhb, S alpha)
InplaceClampMax(T!+ selfRef:fhbd1248u, S clipValueMax:fhbd1248u?)
InplaceClampMaxTensor(T!+ selfRef:fhbd1248u, T+ max:fhbd1248u?)
InplaceClampMinTensor(T!+ selfRef:fhbd1248u, T+ clipValueMin:fhbd1248u?)
InplaceCopy(T!+ selfRef:fhbd1248u?UVWFD, T+ src:fhbd1248u?UVWFD)
InplaceCos(T! inputRef:fhbdFD)
InplaceCosh(T! selfRef:fhd)
InplaceCumprod(T! input:fhbd1248uUVW, S dim:4)
InplaceDiv(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD)
InplaceDivMod(T! selfRef:fhd1248u?FD, T other:fhd1248u?, i32 mode)
InplaceDivMods(T! selfRef:fhbd1248u?FD, S other:fhbd1248u?FD, i32 mode)
InplaceDivs(T! selfRef:fhbd1248u?FD, S other:fhbd1248u?FD)
InplaceElu(T! selfRef:fhbd, S alpha, S scale, S inputScale)
InplaceEqScalar(T! selfRef:fhbd1248u?VWFD, S other:fhbd1248u?VWFD)
InplaceEqTensor(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD)
InplaceErf(T! selfRef:fhd)
InplaceErfc(T! selfRef:fhd)
InplaceErfinv(T! selfRef:fhb)
InplaceExp(T! selfRef:fhbdFD)
InplaceExp2(T! selfRef:fhbd)
InplaceExpm1(T! selfRef:fhb)
InplaceFillDiagonal(T! selfRef:fhbd1248u?F, S fillValue:8, b wrap)
InplaceFillScalar(T! selfRef:fhbd1248u?UVWFD, S value:fhbd1248u?UVWFD)
InplaceFillTensor(T! selfRef:fhb1248u?UVW, T value)
InplaceFloor(T! selfRef:fhd1248uUVW)
InplaceFloorDivide(T! selfRef:fhd1248u?, T other:fhd1248u?)
InplaceFloorDivides(T! selfRef:fhd1248u?, S other:fhd1248u?)
InplaceFmodScalar(T! selfRef:fhbd148u, S other:fhbd148u)
InplaceFmodTensor(T! selfRef:fhbd148u, T other:fhbd148u)
InplaceFrac(T! inputRef:fhb1248u)
InplaceGeScalar(T! selfRef:fhbd1248u?UVW, S other:fhbd1248u?UVW)
InplaceGeTensor(T! selfRef:fhbd1248u?UVW, T other:fhbd1248u?UVW)
InplaceGtScalar(T! selfRef:fhbd1248u?UVW, S other:fhbd1248u?UVW)
InplaceGtTensor(T! selfRef:fhbd1248u?UVW, T other:fhbd1248u?UVW)
InplaceHardsigmoid(T! self:fhb4)
InplaceHardsigmoidV2(T! self:fhb4)
InplaceHardswish(T! self:fhb)
InplaceHardtanh(T! selfRef, S clipValueMin:fhbd1248u?, S clipValueMax:fhbd1248u?)
InplaceIndexCopy(T!+ selfRef:fhbd1248u?FD, i64 dim, T+ index:48, T+ source)
InplaceIndexFill(T! selfRef:fhb48?, i64 dim, T index:48, S value)
InplaceIndexFillTensor(T! selfRef:fhb48?, i64 dim, I index, S value)
InplaceLeakyRelu(T! selfRef:fhbd, S negativeSlope:f)
InplaceLerp(T! selfRef:fhb, T end:fhb, T weight:fhb)
InplaceLerps(T! selfRef:fhb, T end:fhb, S weight)
InplaceLeScalar(T! selfRef:fhbd1248u?U, S other:fhbd1248u?U)
InplaceLeTensor(T! selfRef:fhbd1248u?U, T other:fhbd1248u?U)
InplaceLog(T!+ selfRef:fhbdFD)
InplaceLog10(T! selfRef:fhbdFD)
InplaceLog1p(T! selfRef:fhbd)
InplaceLog2(T!+ selfRef:fhbdFD)
InplaceLogicalAnd(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD)
InplaceLogicalNot(T! selfRef:fhbd1248u?)
InplaceLogicalOr(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD)
InplaceLtScalar(T! selfRef:fhbd1248u?UVW, S other:fhbd1248u?UVW)
InplaceLtTensor(T! selfRef:fhbd1248u?UVW, T other:fhbd1248u?UVW)
InplaceMaskedFillScalar(T! selfRef:fhb148?, T mask:?, S value:fhb148?)
InplaceMaskedFillTensor(T! selfRef:fhb148?, T mask:?, T value:fhb148?)
InplaceMaskedScatter(T! selfRef:fhbd1248u?, T mask:u?, T source)
InplaceMish(T! selfRef:fhb)
InplaceMul(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD)
InplaceMuls(T! selfRef:fhbd1248u?FD, S other:fhbd1248u?FD)
InplaceNanToNum(T! selfRef:fhb1248u?, f32 nan, f32 posinf, f32 neginf)
InplaceNeg(T! selfRef:fhbd148FD)
InplaceNeScalar(T! selfRef:fhbd1248u?FD, S other:fhbd1248u?FD)
InplaceNeTensor(T! selfRef, T other)
InplaceNormal(T! selfRef:fhbd, f32 mean, f32 std, i64 seed, i64 offset)
InplaceNormalTensor(T! selfRef:fhbd1248u?, f32 mean, f32 std, T seedTensor:8, T offsetTensor:8, i64 offset)
InplaceOne(T> selfRef:fhbd1248u?U)
InplacePowTensorScalar(T! self:fhbd1248uFD, S exponent:fhbd1248uFD)
InplacePowTensorTensor(T! self:fhbd1248uFD, T exponent:fhbd1248uFD)
InplacePut(T! selfRef:fhbd1248u?FD, T index:48, T source, b accumulate)
InplaceRandom(T! selfRef:fhbd1248u?FD, i64 from, i64 to, i64 seed, i64 offset)
InplaceRandomTensor(T! selfRef:fhbd1248u?FD, i64 from, i64 to, T= seedTensor:8, T= offsetTensor:8, i64 offset)
InplaceReciprocal(T! selfRef:fhbdFD)
InplaceRelu(T! selfRef:fhb148u)
InplaceRemainderTensorScalar(T! selfRef:fhbd48, S other:fhbd48)
InplaceRemainderTensorTensor(T! selfRef:fhbd48, T other:fhbd48)
InplaceRenorm(T! selfRef:fhb, S p:f, i64 dim, S maxNorm:f)
InplaceRound(T! selfRef:fhbd48)
InplaceRoundDecimals(T! selfRef:fhbd48, i64 decimals)
InplaceRReluWithNoise(T! self:fhb, T noise:fhb, S lower:fhb, S upper:fhb, b training, i64 seed, i64 offset)
InplaceRsqrt(T! selfRef:fhbdFD)
InplaceScatter(T!+ selfRef:fhbd1248u?FD, i64 dim, T+ index:48, T+ src:fhbd1248u?FD, i64 reduce)
InplaceScatterReduce(T!+ selfRef:fhbd1248u?FD, i64 dim, T+ index:48, T+ src:fhbd1248u?FD, i64 reduce, b includeSelf)
InplaceScatterUpdate(T! data:fhb14u, T indices:48, T updates:fhb14u, i64 axis)
InplaceScatterValue(T!+ selfRef:fhbd1248u?FD, i64 dim, T+ index:48, S value, i64 reduce)
InplaceSelu(T!+ selfRef:fhb14)
InplaceSigmoid(T!+ selfRef:fhbdFD)
InplaceSin(T! selfRef:fhb)
InplaceSinc(T! selfRef:fhbd)
InplaceSinh(T! selfRef:fhbdFD)
InplaceSqrt(T! self:fhbdFD)
InplaceSub(T! selfRef:fhbd1248u?FD, T other:fhbd1248u?FD, S alpha:fhbd1248u?FD)
InplaceSubs(T! selfRef:fhbd1248u?FD, S other:fhbd1248u?FD, S alpha:fhbd1248u?FD)
InplaceTan(T! selfRef:fhbdFD)
InplaceTanh(T! selfRef:fhb)
InplaceThreshold(T! selfRef:fhb1248u, S threshold:fhb1248u, S value:fhb1248u)
InplaceTril(T! selfRef:fhbd1248u?UVWF, i64 diagonal)
InplaceTriu(T! selfRef:fhbd1248u?UVWF, i64 diagonal)
InplaceTrunc(T! selfRef:fhb)
InplaceUniform(T! selfRef:fhbd1248u, f64 from, f64 to, u64 seed, u64 offset)
InplaceUniformTensor(T! selfRef:fhbd1248u, f64 from, f64 to, T= seedTensor:W, T= offsetTensor:W, u64 offset)
InplaceXLogYScalarOther(T! selfRef, S other)
InplaceXLogYTensor(T! selfRef, T other)
InplaceZero(T! selfRef:fhbd1248u?UFD)
Inverse(T self:fh, T> out:fh)
IsClose(T self:fhbd1248u?, T other:fhbd1248u?, f64 rtol, f64 atol, b equalNan, T> out:?)
IsFinite(T self:fhbd, T> out:?)
IsInf(T x:fhbd1248u?, T>= out:?)
IsInScalarTensor(S element:fhbd1248u?UFD, T testElements:fhbd1248u?UFD, b assumeUnique, b invert, T> out:?)
IsInTensorScalar(T element:fhbd1248u?UFD, S testElement:fhbd1248u?UFD, b assumeUnique, b invert, T> out:?)
IsNegInf(T self:fhbd, T> out:?)
IsPosInf(T self:fhbd, T> out:?)
KlDiv(T self:fhb, T target:fhb, i64 reduction, b logTarget, T> out:fhb)
KlDivBackward(T+ gradOutput:fhb, T+ self:fhb, T+ target:fhb, i64 reduction, b logTarget, T>+ out)
KlDivTargetBackward(T+ gradOutput:fhb, T+ self:fhb, T+ target:fhb, i64 reduction, b logTarget, T>+ gradTarget)
Kthvalue(T+ self:fhb1248u, i64 k, i64 dim, b keepdim, T>+ valuesOut, T>+ indicesOut:8)
L1Loss(T+ self:fhb8, T+ target:fhb8, i64 reduction, T> out:fhb8)
L1LossBackward(T+ gradOutput:fhb, T+ self:fhb, T+ target:fhb, i64 reduction, T>+ gradInput:fhb)
LayerNorm(T+ input:fhb, I normalizedShape, T?+ weightOptional:fhb, T?+ biasOptional:fhb, f64 eps, T>+ out:fhb,
    T>?+ meanOutOptional:fhb, T>?+ rstdOutOptional:fhb)
LayerNormBackward(T+ gradOut:fhb, T+ input:fhb, I normalizedShape, T+ mean:fhb, T+ rstd:fhb, T?+ weightOptional:fhb,
    T?+ biasOptional:fhb, B outputMask, T>?+ gradInputOut:fhb, T>?+ gradWeightOut:fhb, T>?+ gradBiasOut:fhb)
LayerNormWithImplMode(T+ input:fhb, I normalizedShape, T?+ weightOptional:fhb, T?+ biasOptional:fhb, f64 eps,
    T>+ out:fhb, T>?+ meanOutOptional:fhb, T>?+ rstdOutOptional:fhb, i32 implMode)
LeakyRelu(T self:fhb, S negativeSlope:f, T> out:fhb)
LeakyReluBackward(T gradOutput:fhbd, T self:fhbd, S negativeSlope:fhbd1248u?, b selfIsResult, T> out:fhbd)
LeftShift(T self:1248uUVW, T shiftBits:1248uUVW, T> out:1248uUVW)
LeftShifts(T self:1248uUVW, S shiftBits:1248uUVW, T> out:1248uUVW)
Lerp(T self:fhb, T end:fhb, T weight:fhb, T> out:fhb)
Lerps(T self:fhb, T end:fhb, S weight, T> out:fhbd)
LeScalar(T self:fhbd1248u?U, S other:fhbd1248u?U, T> out:fhbd1248u?UVFD)
LeTensor(T self:fhbd1248u?U, T other:fhbd1248u?U, T> out:fhbd1248u?UVFD)
Lgamma(T self:fhd, T> out:fhd)
LinalgCholesky(T self:fb, b upper, T> out:fb)
LinalgCross(T self:fhbd1248uFD, T other:fhbd1248uFD, i64 dim, T> out:fhbd1248uFD)
LinalgQr(T self:fhdFD, i64 mode, T> Q:fhdFD, T> R:fhdFD)
LinalgVectorNorm(T self:fhb, S ord:f, I dims, b keepDims, dt dtype, T> out:fhb)
Linspace(S start:fhbd1248u?, S end:fhbd1248u?, i64 steps, T> out:fhbd124u)
Log(T+ self:fhbd1248u?FD, T>+ out:fhbdFD)
Log10(T self:fhbd1248u?FD, T> out:fhbFD)
Log1p(T self:fhbd1248u?, T> out:fhbd)
Log2(T+ self:fhbd1248u?FD, T>+ out:fhbdFD)
LogAddExp(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out:fhb)
LogAddExp2(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out:fhb)
Logdet(T self:fdFD, T> out:fdFD)
LogicalAnd(T self:fhbd1248u?FD, T other:fhbd1248u?FD, T> out:fhbd1248u?FD)
LogicalNot(T self:fhbd1248u?, T> out:fhbd1248u?)
LogicalOr(T self:fhbd1248u?FD, T other:fhbd1248u?FD, T> out:fhbd1248u?FD)
LogicalXor(T self:fhbd1248u?FD, T other:fhbd1248u?FD, T> out:fhbd1248u?FD)
Logit(T input:fhb, f64 eps, T> out:fhb)
LogitGrad(T x:fhb, T dy:fhb, f64 eps, T> out:fhb)
LogSigmoid(T+ self:fhb, T>+ out:fhb)
LogSigmoidBackward(T+ gradOutput:fhb, T+ self:fhb, T+ buffer:fhb, T>+ gradInput:fhb)
LogSigmoidForward(T+ self:fhb, T>+ out:fhb, T>+ buffer)
LogSoftmax(T+ self:fhbd, i64 dim, T>+ out:fhbd)
LogSoftmaxBackward(T+ gradOutput:fhb, T+ output:fhb, i64 dim, T>+ out:fhb)
LogSpace(S start:fhbd1248u?UVW, S end:fhbd1248u?UVW, i64 steps, f64 base, T> result:fhb)
LogSumExp(T self:fhb1248u?, I dim, b keepDim, T> out:fhb)
LpLoss(T predict:fhb, T label:fhb, i64 p, s reduction, T> out:fhb)
LtScalar(T self:fhbd1248u?UVW, S other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
LtTensor(T self:fhbd1248u?UVW, T other:fhbd1248u?UVW, T> out:fhbd1248u?UVWFD)
MaskedSelect(T self:fhbd1248u?, T mask:u?, T>= out:fhbd1248u?) @dynamic
Matmul(T+ self:fhb, T+ mat2:fhb, T>+ out:fhb, i8 cubeMathType)
Max(T self:fhbd1248u?, T> out:fhbd1248u?)
MaxDim(T+ self:fhb8?, i64 dim, b keepdim, T> out:fhb8?, T> indices:8)
Maximum(T self:fhbd1248u?, T other:fhbd1248u?, T> out:fhbd1248u?)
MaxN(TL tensors, T> out:fhb148)
MaxPool(T self:fh, I kernelShape, I strides, i64 autoPad, I pads, I dilations, i64 ceilMode, T> out:fh)
MaxPool2dWithIndices(T self:fhb, I kernelSize, I stride, I padding, I dilation, b ceilMode, T> out:fhb, T> indices:48)
MaxPool2dWithIndicesBackward(T gradOutput:fhb, T self:fhb, T indices:48, I kernelSize, I stride, I padding,
    I dilation, b ceilMode, T> gradInput:fhb)
MaxPool2dWithMask(T self:fhb, I kernelSize, I stride, I padding, I dilation, b ceilMode, T> out:fhb, T> indices:1)
MaxPool2dWithMaskBackward(T gradOutput:fhb, T self:fhb, T indices:1, I kernelSize, I stride, I padding, I dilation,
    b ceilMode, T> gradInput:fhb) @channels
MaxPool3D(T x, I ksize, I strides, s padding, I padsOptional, I dilationOptional, i64 ceilMode, s dataFormatOptional,
    T> out)
MaxPool3dWithArgmax(T self:fhb, I kernelSize, I stride, I padding, I dilation, b ceilMode, T> out:fhb, T> indices:4)
MaxPool3dWithArgmaxBackward(T gradOutput:fhb, T self:fhb, T indices:4, I kernelSize, I stride, I padding, I dilation,
    b ceilMode, T> gradInput:fhb)
MaxPoolingGrad(T+ dy:fh, T+ x:fh, T+ y:fh, T>+ dx:fh)
MaxPoolV3(T x:fhb, I ksize, I strides, I pads, S ceilMode, T> out:fhb)
MaxUnpool2d(T self:fhd1248u, T indices:48, I outputSize, T> out:fhd1248u)
MaxUnpool2dBackward(T gradOutput:fh1248u?, T self:fh1248u?, T indices:48, I outputSize, T> out:fh1248u?)
MaxUnpool3d(T self:fhd1248u, T indices:48, I outputSize, I stride, I padding, T> outRef:fhd1248u)
MaxUnpool3dBackward(T gradOutput:fhd1248u, T self:fhd1248u, T indices:8, I outputSize, I stride, I padding,
    T>= out:fhd1248u)
MaxV2(T self:fhbd1248u?, I dims, b keepDims, b noopWithEmptyDims, T> out:fhbd1248u?)
Mean(T self:fhbd1248uFD, I dim, b keepDim, dt dtype, T> out:fhbd1248uFD)
MeanV2(T self:fhbd1248uFD, I dim, b keepDim, b noopWithEmptyAxes, T> out:fhbd1248uFD)
Median(T self:fhb1248u, T> valuesOut)
MedianDim(T self:fhb1248u, i64 dim, b keepDim, T> valuesOut:fhb1248u, T> indicesOut:8)
Min(T self:fhbd1248u?, T> out:fhbd1248u?)
MinDim(T+ self:fhb8?, i64 dim, b keepdim, T> out:fhb8?, T> indices)
Minimum(T self:fhbd1248u?, T other:fhbd1248u?, T> out:fhbd1248u?)
MinN(TL tensors:fhb148, T> out:fhb148)
Mish(T self:fhb, T> out:fhb)
MishBackward(T gradOutput:fhb, T self:fhb, T> gradInput:fhb)
Mm(T self:fhb, T mat2:fhb, T> out:fhb, i8 cubeMathType)
MseLoss(T+ self:fhb, T+ target:fhb, i64 reduction, T> out:fhb)
MseLossBackward(T+ gradOutput, T+ self:fhb, T+ target, i64 reduction, T>+ out:fhb)
MseLossGrad(T+ gradOutput, T self, T+ target, s? reduction, T>+ out:fhb)
MseLossOut(T+ self:fhb, T+ target:fhb, i64 reduction, T>+ out:fhb)
Mul(T self:fhbd1248u?FD, T other:fhbd1248u?FD, T> out:fhbd1248u?FD)
Muls(T self:fhbd1248u?FD, S other:fhbd1248u?FD, T> out:fhbd1248u?FD)
MultilabelMarginLoss(T self:fhb, T target:48, i64 reduction, T> out, T> isTarget:fhb)
Multinomial(T self:fhbd, i64 numsamples, b replacement, i64 seed, i64 offset, T> out:8)
MultinomialTensor(T self:fhbd, i64 numsamples, b replacement, T seedTensor:8, T offsetTensor:8, i64 offset, T> out:8)
Mv(T self:fhb, T vec:fhb, T> out:fhb, i8 cubeMathType)
NanMedian(T self:fhb1248u, T> out:fhb1248u)
NanMedianDim(T self:fhb1248u, i64 dim, b keepDim, T> valuesOut:fhb1248u, T> indicesOut:8)
NanToNum(T self:fhb1248u?, f32 nan, f32 posinf, f32 neginf, T> out:fhb1248u?)
Neg(T self:fhbd148FD, T> out:fhbd148FD)
NeScalar(T self:fhbd1248u?WFD, S other:fhbd1248u?WFD, T> out:fhbd1248u?UVWFD)
NeTensor(T self:fhbd1248u?WFD, T other:fhbd1248u?WFD, T> out:fhbd1248u?UVWFD)
NLLLoss(T self:fhb, T target:48u, T weight:fhb, i64 reduction, i64 ignoreIndex, T> out:fhb, T> totalWeightOut:fhb)
NLLLoss2d(T self:fhb, T target:48u, T weight, i64 reduction, i64 ignoreIndex, T> out, T> totalWeightOut)
NLLLoss2dBackward(T gradOutput:fhb, T self:fhb, T target:48u, T weight, i64 reduction, i64 ignoreIndex, T totalWeight,
    T> out)
NLLLossBackward(T gradOutput:fhb, T self:fhb, T target:48u, T weight, i64 reduction, i64 ignoreIndex, T totalWeight,
    T> out)
Nonzero(T self:fhbd1248u?, T>= out:8) @dynamic
NonzeroV2(T self:fhbd1248u?UVW, T> out:8) @dynamic
Norm(T self:fhb, S pScalar:f, I dim, b keepdim, T> out:fhb)
OneHot(T+ self:48, i32 numClasses, T+ onValue:fh48, T+ offValue:fh48, i64 axis, T>+ out:fh48)
Pdist(T self:fh, f32 p, T> out:fh)
PdistForward(T self:fh, S pScalar, T> out:fh)
Permute(T self:fhbd1248u?UVWFD, I dims, T> out:fhbd1248u?UVWFD)
Polar(T input, T angle, T> out)
PowScalarTensor(S self:fhbd1248uFD, T exponent:fhbd1248uFD, T> out:fhbd1248uUVWFD)
PowTensorScalar(T self:fhbd1248u?FD, S exponent:fhbd1248u?FD, T> out:fhbd1248u?UVWFD)
PowTensorTensor(T self:fhbd1248u?FD, T exponent:fhbd1248u?FD, T> out:fhbd1248u?UVWFD)
Prelu(T self:fhb, T weight:fhb, T> out:fhb)
PreluBackward(T gradOutput:fhb, T self:fhb, T weight:fhb, T> gradInput:fhb, T> gradWeight:fhb)
Prod(T self:fhbd1248u?FD, dt dtype, T> out:fhbd1248u?FD)
ProdDim(T self:fhbd1248u?FD, i64 dim, b keepDim, dt dtype, T> out:fhbd1248u?FD)
Qr(T self:fhdFD, b some, T> Q:fhdFD, T> R:fhdFD)
Randperm(i64 n, i64 seed, i64 offset, T> out:fhbd1248u)
Range(S start:fhbd1248u?, S end:fhbd1248u?, S step:fhbd1248u?, T> out:fhbd48)
Real(T self:fhFD, T> out:fhd)
RealDiv(T self:fhb4?, T other:fhb4?, T> out:fhb4)
Reciprocal(T self:fhbd1248u?FD, T> out:fhbdFD)
ReduceLogSum(T data:fh, I axes, b keepDims, b noopWithEmptyAxes, T> reduce:fh)
ReduceMinV2(T x:fh, i64 axes, i64 keepdims, T>+ y:fh)
ReduceNansum(T self:fhb1248u?, I dim, b keepDim, dt dtype, T> out:fhb1248u?)
ReduceSum(T self:fhbd1248u?FD, I dims, b keepDims, dt dtype, T> out:fhbd1248u?FD)
ReflectionPad1d(T self:fhbd1248u?FD, I padding, T> out:fhbd1248u?FD)
ReflectionPad1dBackward(T gradOutput, T self:fhbdFD, I padding, T> gradInput)
ReflectionPad2d(T self:fhbd1248u?FD, I padding, T> out:fhbd1248u?FD)
ReflectionPad2dBackward(T gradOutput, T self:fhbdFD, I padding, T> gradInput)
ReflectionPad3d(T self:fhbd1248u?FD, I padding, T> out:fhbd1248u?FD)
ReflectionPad3dBackward(T gradOutput, T self:fhbdFD, I padding, T> gradInput)
Relu(T self:fhb148, T> out:fhb148)
ReluGradV3(T+ x:fhb14u, T+ y:fhb14u, T>+ z:fhb14u)
ReluGradV4(T gradOutput:fhb14u, T self:u, S threshold:4, T> out:fhb14u)
ReluV3(T x:fhb14u, T> yOut:fhb14u, T> maskOut:u)
RemainderScalarTensor(S self:fhbd48, T other:fhbd48, T> out:fhbd48)
RemainderTensorScalar(T self:fhbd48, S other:fhbd48, T> out:fhbd1248uFD)
RemainderTensorTensor(T self:fhbd1248uFD, T other:fhbd1248uFD, T> out:fhbd1248uFD)
Renorm(T self:fhb, S p:f, i64 dim, S maxNorm:f, T> out:fhb)
Repeat(T self:fhbd1248u?UVWFD, I repeats, T> out)
RepeatInterleave(T self:fhb1248u?, T repeats:48, i64 outputSize, T> out:fhb1248u?)
RepeatInterleaveInt(T self:fhb1248u?, i64 repeats, i64 outputSize, T> out:fhb1248u?)
RepeatInterleaveIntWithDim(T+ self:fhb1248u?, i64 repeats, i64 dim, i64 outputSize, T>+ out:fhb1248u?)
RepeatInterleaveTensor(T repeats:48, i64 outputSize, T> out:48)
RepeatInterleaveWithDim(T+ self:fhb1248u?, T repeats:48, i64 dim, i64 outputSize, T> out:fhb1248u?)
ReplicationPad1d(T self:fhbd1248uFD, I padding, T> out)
ReplicationPad1dBackward(T gradOutput, T self:fhbdFD, I padding, T> gradInput)
ReplicationPad2d(T self:fhbd1248uFD, I padding, T> out)
ReplicationPad2dBackward(T gradOutput, T self:fhbdFD, I padding, T> gradInput)
ReplicationPad3d(T self:fhbd1248uFD, I padding, T> out)
ReplicationPad3dBackward(T gradOutput:fhbdFD, T self:fhbdFD, I padding, T> gradInput)
RightShift(T input:1248uUVW, T shiftBits:1248uUVW, T> out:1248uUVW)
RmsNorm(T+ x:fhb, T+ gamma:fhb, f64 epsilon, T>+ yOut:fhb, T>+ rstdOut:f)
RmsNormGrad(T dy:fhb, T x:fhb, T+ rstd:f, T+ gamma:fhb, T> dxOut:fhb, T>+ dgammaOut:f)
Roll(T x:fhb1248u?V, I shifts, I dims, T> out:fhb1248u?V)
Round(T self:fhbd48, T> out:fhbd48)
RoundDecimals(T self:fhbd48, i64 decimals, T> out:fhbd48)
RReluWithNoise(T self:fhb, T noise:fhb, S lower:fhb, S upper:fhb, b training, i64 seed, i64 offset, T> out:fhb)
Rsqrt(T self:fhbd1248u?FD, T> out:fhbdFD)
Rsub(T self:fhbd1248uFD, T other:fhbd1248uFD, S alpha:fhbd1248uFD, T> out:fhbd1248uFD)
Rsubs(T self:fhbd1248uFD, S other:fhbd1248uFD, S alpha:fhbd1248uFD, T> out:fhbd1248uFD)
Scale(T x:fhb, T scale:fhb, T? bias:fhb, i64 axis, i64 numAxes, b scaleFromBlob, T> y:fhb)
ScaledMaskedSoftmax(T x:fhb, T mask:?, f64 scale, b fixedTriuMask, T>= y:fhb)
ScaledMaskedSoftmaxBackward(T gradOutput:fhb, T y:fhb, T mask:?, f64 scale, b fixTriuMask, T>= out:fhb)
Scatter(T+ self:fhbd1248u?FD, i64 dim, T+ index:48, T+ src:fhbd1248u?FD, i64 reduce, T>+ out:fhbd1248u?FD)
ScatterAdd(T+ self:fhbd1248u?FD, i64 dim, T+ index:48, T+= src:fhbd1248u?FD, T>+= out:fhbd1248u?FD)
ScatterList(TL! varRef:fhb124uUV, T indice:48, T updates:fhb124uUV, T? maskOptional:u, s? reduceOptional, i64 axis)
ScatterNd(T+ data:fhb?, T+ indices:48, T+ updates:fhb?, T> out:fhb?)
ScatterNdUpdate(T!+ varRef:fhb18?, T indices:48, T updates:fhb18?)
ScatterReduce(T+ self:fhbd1248u?FD, i64 dim, T+ index:48, T+ src:fhbd1248u?FD, i64 reduce, b includeSelf,
    T>+ out:fhbd1248u?FD)
ScatterValue(T+ self:fhbd1248u?FD, i64 dim, T+ index:48, S value, i64 reduce, T>+ out:fhbd1248u?FD)
SearchSorted(T sortedSequence:fhd1248u, T self:fhd1248u, b outInt32, b right, T sorter:8, T> out:48)
SearchSorteds(T sortedSequence:fhd1248u, S self:fhd1248u, b outInt32, b right, T sorter:8, T> out:48)
Selu(T+ self:fhb14, T>+ out:fhb14)
SeluBackward(T+ gradOutput:fhb14, T+ result:fhb14, T>+ gradInput:fhb14)
Shrink(T self:fh, S lambd:f, S bias:f, T> out:fh)
Sigmoid(T self:fhb, T> out:fhb)
SigmoidBackward(T+ gradOutput:fhbdFD, T+ output:fhbdFD, T>+ gradInput:fhbdFD)
Sign(T self:fhbd48?FD, T> result:fhbd48?FD)
Signbit(T self:fhbd1248u?UVW, T> out:?)
Silu(T self:fhb, T> out:fhb)
SiluBackward(T+ gradOutput:fhb, T+ self:fhb, T>+ gradInput:fhb)
SiluMul(T x:fhb, T y:fhb, T> out:fhb)
Sin(T self:fhbd1248u?FD, T> out:fhbdFD)
Sinc(T self:fhbd, T> out:fhbd)
Sinh(T self:fhbd1248u?FD, T> out:fhbdFD)
Slice(T+ self:fhb148u?, i64 dim, i64 start, i64 end, i64 step, T>+ out)
SliceV2(T+ self:fhb148u?, I starts, I ends, I axes, I steps, T> out:fhb148u?)
Slogdet(T self:fdFD, T> signOut:fdFD, T> logOut:fdFD)
SmoothL1Loss(T+ self:fhb, T+ target:fhb, i64 reduction, f32 beta, T> result:fhb)
SmoothL1LossBackward(T+ gradOut:fhb, T+ self:fhb, T+ target:fhb, i64 reduction, f32 beta, T>+ gradInput:fhb)
SoftMarginLoss(T+ self:fhb, T+ target:fhb, i64 reduction, T> out:fhb)
SoftMarginLossBackward(T+ gradOutput:fhb, T+ self:fhb, T+ target:fhb, i64 reduction, T>+ out:fhb)
Softmax(T self:fhbd, i64 dim, T> out:fhbd)
SoftmaxBackward(T gradOutput:fhb, T output:fhb, i64 dim, T> out:fhb)
SoftmaxGrad(T+ y:fhb, T+ dy:fhb, T>+ dx:fhb)
Softplus(T self:fhb, S beta, S threshold, T> out:fhb)
SoftplusBackward(T gradOutput:fhbd, T self:fhbd1248u?, S beta, S threshold, T> gradInput:fhbd)
Softshrink(T self:fhb, S lambd:f, T> out:fhb)
SoftshrinkBackward(T gradOutput:fhb, T self:fhb, S lambda, T> gradInput:fhb)
Softsign(T self:fhb, T> out:fhb)
Sort(T+ self:fhb1248u?UVW, b stable, i64 dim, b descending, T>+ valuesOut:fhbd1248u?UVW, T>+ indicesOut:8)
SortWithIndex(T= x:fhb4, T= index:4, i64 axis, b descending, b stable, T>= valuesOut:fhb4, T>= indicesOut:4)
SplitTensor(T+ self:fhbd1248u?UVWFD, u64 splitSections, i64 dim, TL> out:fhbd1248u?UVWFD)
SplitWithSize(T self:fhb1248u?UVW, I splitSize, i64 dim, TL> out:fhb1248u?UVW)
Sqrt(T self:fhbd1248u?FD, T> out:fhbdFD)
SquaredRelu(T+ input:fhb, T>+ out:fhb)
Stack(TL tensors:fhbd1248u?UVWFD, i64 dim, T>+ out:fhbd1248u?UVWFD)
Std(T self:fhb, I dim, i64 correction, b keepdim, T> out:fhb)
StdMeanCorrection(T self:fhb, I dim, i64 correction, b keepdim, T> stdOut:fhb, T> meanOut:fhb)
StridedSliceAssignV2(T!+ varRef:fhbd148, T+ inputValue:fhbd148, I begin, I end, I strides, I? axesOptional)
Sub(T self:fhbd1248u?FD, T other:fhbd1248u?FD, S alpha:fhbd1248u?FD, T> out:fhbd1248u?FD)
Subs(T self:fhbd1248u?FD, S other:fhbd1248u?FD, S alpha:fhbd1248u?FD, T> out:fhbd1248u?FD)
Sum(TL tensors:fh14u, T> out:fh14u)
Svd(T input:fdFD, b fullMatrices, b computeUV, T>+ sigma:fdFD, T> u:fdFD, T> v:fdFD)
SWhere(T condition:fhbd1248u?UVWFD, T self:fhbd1248u?UVWFD, T other:fhbd1248u?UVWFD, T> out:fhbd1248u?UVWFD)
SwiGlu(T= x:fhb, i64 dim, T>= out:fhb)
SwiGluGrad(T+= yGrad:fhb, T+ x:fhb, i64 dim, T>+= out:fhb)
Swish(T self:fhb, S? betaOptional, T> out:fhb)
SwishBackward(T gradOutput:fhb, T self:fhb, S? betaOptional, T> gradInput:fhb)
SyncBatchNormGatherStats(T totalSum:fh, T totalSquareSum:fh, T sampleCount:fh4, T! mean:fh, T! variance:fh,
    f32 momentum, f32 eps, T> batchMean:fh, T> batchInvstd:fh)
Take(T self:fhbd1248u?UVWFD, T index:48, T> out:fhbd1248u?UVWFD)
Tan(T self:fhbd1248u?FD, T> out:fhbdFD)
Tanh(T self:fhb1248u?, T> out:fhb)
TanhBackward(T gradOutput:fhbd, T output:fhbd, T> gradInput:fhbd)
TensorMove(T+ x:fhbd1248u?UVW, T>+ y:fhbd1248u?UVW)
TfScatterAdd(T!+ varRef:fhb14u, T+ indices:48, T+ updates:fhb14u)
ThnnFusedLstmCell(T inputGates:fh, T hiddenGates:fh, T cx:fh, T? inputBiasOptional:fh, T? hiddenBiasOptional:fh,
    T> hyOut:fh, T> cyOut:fh, T> storageOut:fh)
ThnnFusedLstmCellBackward(T? gradHyOptional:fh, T? gradCOptional:fh, T cx:fh, T cy:fh, T storage:fh, b hasBias,
    T> gradGatesOut:fh, T> gradCxOut:fh, T> gradBiasOut:fh)
Threshold(T self:fhb1248u, S threshold:fhb1248u, S value:fhb1248u, T> out:fhb1248u)
ThresholdBackward(T gradOutput:fhb14u, T self:fhb14u, S threshold:fhb14u, T> out:fhb14u)
Topk(T+ self:fhbd1248u, i64 k, i64 dim, b largest, b sorted, T>+ valuesOut:fhbd1248u, T>+ indicesOut:8)
Trace(T self:fhbd1248u?FD, T> out:fhbd8FD)
TriangularSolve(T self:fdFD, T A:fdFD, b upper, b transpose, b unitriangular, T> xOut:fdFD, T> mOut:fdFD)
Tril(T self:fhbd1248u?UVWF, i64 diagonal, T> out:fhbd1248u?UVWF)
Triu(T self:fhbd1248u?UVWF, i64 diagonal, T> out:fhbd1248u?UVWF)
Trunc(T self:fhb, T> out:fhb)
TruncateDiv(T x1:fhb1248u, T x2:fhb1248u, T> out:fhb1248u)
TruncateMod(T x1:fhb14u, T x2:fhb14u, T> out:fhb14u)
UnfoldGrad(T+ gradOut:fhb, I inputSizes, i64 dim, i64 size, i64 step, T>+ gradIn)
Unique(T self:fhbd1248u?UVW, b sorted, b returnInverse, T> valueOut:fhbd1248u?UVW, T> inverseOut) @dynamic
Unique2(T+ self:fhbd1248u?UVW, b sorted, b returnInverse, b returnCounts, T> valueOut:fhbd1248u?UVW, T> inverseOut:8,
    T> countsOut:8) @dynamic
UniqueConsecutive(T self:fhbd1248u?UVWFD, b returnInverse, b returnCounts, i64 dim, T> valueOut:fhbd1248u?UVWFD,
    T> inverseOut:48, T> countsOut:48) @dynamic
UniqueDim(T+ self:fhbd1248u?UVW, b sorted, b returnInverse, i64 dim, T> valueOut, T> inverseOut:8,
    T> countsOut:8) @dynamic
UpsampleBicubic2d(T self:fhb, I outputSize, b alignCorners, f64 scalesH, f64 scalesW, T> out:fhb)
UpsampleBicubic2dAA(T x:fhb, I outputSize, b alignCorners, f64 scalesH, f64 scalesW, T> out:fhb)
UpsampleBicubic2dAAGrad(T gradOutput:fhb, I outputSize, I inputSize, b alignCorners, f64 scalesH, f64 scalesW,
    T> out:fhb)
UpsampleBicubic2dBackward(T gradOut:fhb, I outputSize, I inputSize, b alignCorners, f64 scalesH, f64 scalesW,
    T> gradInput:fhb)
UpsampleBilinear2d(T self:fhbd, I outputSize, b alignCorners, f64 scalesH, f64 scalesW, T> out:fhbd) @channels
UpsampleBilinear2dAA(T input:fhb, I outputSize, b alignCorners, f64 scalesH, f64 scalesW, T> out:fhb)
UpsampleBilinear2dAABackward(T gradOutput:fhb, I outputSize, I inputSize, b alignCorners, f64 scalesH, f64 scalesW,
    T> out:fhb)
UpsampleBilinear2dBackward(T gradOut:fhb, I outputSize, I inputSize, b alignCorners, f64 scalesH, f64 scalesW,
    T> out:fhb) @channels
UpsampleBilinear2dBackwardV2(T gradOut:fhb, I outputSize, I inputSize, b alignCorners, f64 scalesH, f64 scalesW,
    T> out:fhb) @channels
UpsampleLinear1d(T self:fhb, I outputSize, b alignCorners, f64 scale, T> out:fhb)
UpsampleLinear1dBackward(T gradOut:fhb, I outputSize, I inputSize, b alignCorners, f64 scales, T> out:fhb) @channels
UpsampleNearest1d(T self:fhbdu, I outputSize, T> out:fhbdu) @channels
UpsampleNearest1dBackward(T gradOut:fhbd, I outputSize, I inputSize, f64 scales, T> out:fhbd)
UpsampleNearest1dV2(T self:fhbdu, I outputSize, f32 scaleL, T> out:fhbdu) @channels
UpsampleNearest2d(T self:fhbdu, I outputSize, T> out:fhbdu) @channels
UpsampleNearest2dBackward(T gradOut:fhb, I outputSize, I inputSize, f64 scalesH, f64 scalesW,
    T> gradInput:fhb) @channels
UpsampleNearest2dV2(T self:fhbdu, I outputSize, f32 scalesH, f32 scalesW, T> out:fhbdu) @channels
UpsampleNearest3d(T self:fhbdu, I outputSize, f64 scalesD, f64 scalesH, f64 scalesW, T> out:fhbdu)
UpsampleNearest3dBackward(T gradOut:fhbd, I outputSize, I inputSize, f64 scalesD, f64 scalesH, f64 scalesW,
    T> gradInput:fhbd) @channels
UpsampleNearestExact1d(T self:fhbu, I outputSize, f64 scales, T> out:fhbu)
UpsampleNearestExact1dBackward(T gradOutput:fhb, I outputSize, I inputSize, f64 scales, T> out:fhb)
UpsampleNearestExact2d(T self:fhbu, I outputSize, f64 scalesH, f64 scalesW, T> out:fhbu)
UpsampleNearestExact2dBackward(T gradOutput:fhb, I outputSize, I inputSize, f64 scalesH, f64 scalesW, T> out:fhb)
UpsampleNearestExact3d(T self:fhb, I outputSize, f64 scalesD, f64 scalesH, f64 scalesW, T> out:fhb)
UpsampleNearestExact3dBackward(T gradOut:fhb, I outputSize, I inputSize, f64 scalesD, f64 scalesH, f64 scalesW,
    T> gradInput:fhb) @channels
UpsampleTrilinear3d(T self:fhbd, I outputSize, b alignCorners, f64 scalesD, f64 scalesH, f64 scalesW, T> out:fhbd)
UpsampleTrilinear3dBackward(T gradOut:fhbd, I outputSize, I inputSize, b alignCorners, f64 scalesD, f64 scalesH,
    f64 scalesW, T> gradInput:fhbd)
Var(T self:fhb, I dim, b unbiased, b keepdim, T> out:fhb)
VarCorrection(T self:fhb, I dim, i64 correction, b keepdim, T> out:fhb)
VarMean(T+ self:fhb, I dim, i64 correction, b keepdim, T> varOut:fhb, T> meanOut:fhb)
XLogYScalarOther(T self, S other, T> out)
XLogYScalarSelf(S self, T other, T> out)
XLogYTensor(T self, T other, T> out)
"""
