"""A table of C++ programs, one operator each, written out as users write them, and what NumPy says they print.

    p("aclnnAdd", {"self": X, "other": Y, "alpha": 2.0}, out=X + 2 * Y)

Invariant: the C++ is made from the vendor's parameter order alone; the numbers come from NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._kernels import facts, written

DTYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "int32": "INT32", "int64": "INT64",
          "bool": "BOOL", "int8": "INT8", "uint8": "UINT8"}  # fmt: skip
RNG = np.random.default_rng(11)
F = np.float32
X = RNG.uniform(-2, 2, (2, 3)).astype(F)
Y = RNG.uniform(-2, 2, (2, 3)).astype(F)
UNIT = RNG.uniform(-0.9, 0.9, (2, 3)).astype(F)
POSITIVE = RNG.uniform(0.5, 3, (2, 3)).astype(F)
LARGE = RNG.uniform(1.1, 4, (2, 3)).astype(F)
WHOLE, OTHER = (RNG.integers(-5, 6, (2, 3)).astype(np.int32) for _ in range(2))
SQUARE = RNG.uniform(-1, 1, (3, 3)).astype(F)
BATCH = RNG.uniform(-1, 1, (2, 3, 4)).astype(F)
NO_DIMS: list[int] = []


@dataclass
class Program:
    function: str
    given: dict[str, Any]
    want: dict[str, np.ndarray]
    name: str = field(default="")

    def source(self) -> str:
        """The body of the program: objects, the call, the results."""
        lines, arguments, releases = [], [], []
        outputs, both = written(facts()[self.function])
        for p in facts()[self.function]["params"]:
            name, kind = p["name"], p["type"]
            value = self.given.get(name)
            if name in self.want and name not in both:
                value = self.want[name]
                lines.append(f"Tensor {name}_({dims(value)}, ACL_{DTYPES[value.dtype.name]});")
                arguments.append(f"{name}_.handle")
            elif kind == "aclTensor*" and value is not None:
                lines.append(tensor(f"{name}_", value))
                arguments.append(f"{name}_.handle")
            elif kind == "aclTensorList*":
                parts = [f"{name}_{i}" for i in range(len(value))]
                lines += [tensor(part, one) for part, one in zip(parts, value)]
                lines.append(
                    f"std::vector<aclTensor*> {name}_items{{{', '.join(f'{part}.handle' for part in parts)}}};"
                )
                lines.append(f"aclTensorList* {name}_ = aclCreateTensorList({name}_items.data(), {len(parts)});")
                releases += [f"CHECK(aclDestroyTensorList({name}_));", *(f"{part}.handle = nullptr;" for part in parts)]
                arguments.append(f"{name}_")
            elif value is None and kind.endswith("*"):
                arguments.append("nullptr")
            else:
                made, released = plain(name, kind, value)
                lines += made
                releases += released
                arguments.append(f"{name}_")
        prints = [f'{n}_.print("{self.name}.{n}");' for n in self.want]
        return "\n    ".join([*lines, f"RUN({self.function}, {', '.join(arguments)});", *prints, *releases])


def dims(value: np.ndarray) -> str:
    return "{" + ", ".join(map(str, value.shape)) + "}"


def tensor(name: str, value: np.ndarray) -> str:
    numbers = ", ".join(repr(float(v)) for v in value.ravel())
    return f"Tensor {name}({dims(value)}, ACL_{DTYPES[value.dtype.name]}, {{{numbers}}});"


def plain(name: str, kind: str, value: Any) -> tuple[list[str], list[str]]:
    """An argument that is no tensor: how it is made and released."""
    if kind == "aclScalar*":
        c_type, code = {bool: ("bool", "BOOL"), int: ("int64_t", "INT64"), float: ("float", "FLOAT")}[type(value)]
        made = [f"{c_type} {name}_value = {literal(value)};",
                f"aclScalar* {name}_ = aclCreateScalar(&{name}_value, ACL_{code});"]  # fmt: skip
        return made, [f"CHECK(aclDestroyScalar({name}_));"]
    if kind in ("aclIntArray*", "aclBoolArray*", "aclFloatArray*"):
        item = {"aclIntArray*": "int64_t", "aclBoolArray*": "bool", "aclFloatArray*": "float"}[kind]
        numbers = ", ".join(map(literal, value)) or "0"
        made = [f"const {item} {name}_items[] = {{{numbers}}};",
                f"{kind} {name}_ = aclCreate{kind[3:-1]}({name}_items, {len(value)});"]  # fmt: skip
        return made, [f"CHECK(aclDestroy{kind[3:-1]}({name}_));"]
    if kind == "char*":
        return [f'char {name}_[] = "{value}";'], []
    if kind == "aclDataType":
        return [f"aclDataType {name}_ = ACL_{DTYPES[value]};"], []
    return [f"{kind} {name}_ = {literal(value)};"], []


def literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


TABLE: list[Program] = []


def p(function: str, given: dict[str, Any], **want: Any) -> None:
    number = sum(q.function == function for q in TABLE)
    program = Program(function, given, {k: np.asarray(v) for k, v in want.items()})
    program.name = f"{function.removeprefix('acl')}_{number}"
    TABLE.append(program)


def one(function: str, formula: Any, x: np.ndarray = X, **numbers: Any) -> None:
    """A function of one tensor, under the names its documents use."""
    first, out = (q["name"] for q in facts()[function]["params"] if q["type"] == "aclTensor*")
    p(function, {first: x, **numbers}, **{out: formula(x.astype(np.float64)).astype(x.dtype)})


def two(function: str, formula: Any, x: np.ndarray = X, y: np.ndarray = Y, gives: Any = None, **numbers: Any) -> None:
    a, b, out = (q["name"] for q in facts()[function]["params"] if q["type"] == "aclTensor*")
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    result = np.asarray(formula(x.astype(wide), y.astype(wide))).astype(gives or np.result_type(x, y))
    p(function, {a: x, b: y, **numbers}, **{out: result})


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def asymmetric(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows between their smallest and largest number in bytes, scales, offsets."""
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    scale = (high - low) / 255
    offset = 127 - high / scale
    return np.rint(x / scale + offset).astype(np.int8), scale[:, 0].astype(F), offset[:, 0].astype(F)


ERF = np.vectorize(math.erf)

for name, formula in {
    "Exp": np.exp, "Expm1": np.expm1, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Sinh": np.sinh, "Cosh": np.cosh,
    "Tanh": np.tanh, "Atan": np.arctan, "Asinh": np.arcsinh, "Abs": np.abs, "Neg": np.negative, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.round, "Trunc": np.trunc, "Sign": np.sign, "Exp2": np.exp2, "Erf": ERF,
    "Erfc": lambda x: 1 - ERF(x), "Sinc": np.sinc, "Frac": lambda x: x - np.trunc(x), "Square": np.square,
    "Sigmoid": sigmoid, "Relu": lambda x: np.maximum(x, 0), "Silu": lambda x: x * sigmoid(x),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))), "Softsign": lambda x: x / (1 + np.abs(x)),
    "Hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "Hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "Selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "FastGelu": lambda x: x * sigmoid(1.702 * x),
}.items():  # fmt: skip
    if f"aclnn{name}" in facts():
        one(f"aclnn{name}", formula)
for name, formula in {
    "Log": np.log, "Log2": np.log2, "Log10": np.log10, "Log1p": np.log1p, "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x), "Reciprocal": lambda x: 1 / x, "Lgamma": np.vectorize(math.lgamma),
}.items():  # fmt: skip
    one(f"aclnn{name}", formula, POSITIVE)
for name, formula in {"Asin": np.arcsin, "Acos": np.arccos, "Atanh": np.arctanh}.items():
    one(f"aclnn{name}", formula, UNIT)
one("aclnnAcosh", np.arccosh, LARGE)
one("aclnnLeakyRelu", lambda x: np.where(x > 0, x, 0.25 * x), negativeSlope=0.25)
one("aclnnElu", lambda x: np.where(x > 0, x, np.expm1(x)), alpha=1.0, scale=1.0, inputScale=1.0)
one("aclnnSoftplus", lambda x: np.log1p(np.exp(x)), beta=1.0, threshold=20.0)
one("aclnnThreshold", lambda x: np.where(x <= 0.5, 9, x), threshold=0.5, value=9.0)
one("aclnnHardtanh", lambda x: np.clip(x, -1, 1), clipValueMin=-1.0, clipValueMax=1.0)
one("aclnnClamp", lambda x: np.clip(x, -0.5, 0.5), clipValueMin=-0.5, clipValueMax=0.5)
one("aclnnGeluV2", lambda x: 0.5 * x * (1 + ERF(x / np.sqrt(2))), approximate=0)
one("aclnnAdds", lambda x: x + 3.0, other=1.5, alpha=2.0)
one("aclnnSubs", lambda x: x - 3.0, other=1.5, alpha=2.0)
one("aclnnMuls", lambda x: x * 1.5, other=1.5)
one("aclnnDivs", lambda x: x / 4, other=4.0)
one("aclnnPowTensorScalar", lambda x: x**3, POSITIVE, exponent=3.0)

two("aclnnAdd", lambda x, y: x + 2 * y, alpha=2.0)
two("aclnnAdd", lambda x, y: x + y, WHOLE, OTHER, alpha=1)
two("aclnnAdd", lambda x, y: x + y, X, Y[:1], alpha=1.0)
two("aclnnSub", lambda x, y: x - 3 * y, alpha=3.0)
two("aclnnMul", np.multiply)
two("aclnnMul", np.multiply, WHOLE, OTHER)
two("aclnnDiv", np.divide, X, POSITIVE)
two("aclnnMaximum", np.maximum)
two("aclnnMinimum", np.minimum)
two("aclnnMaximum", np.maximum, WHOLE, OTHER)
two("aclnnPowTensorTensor", np.power, POSITIVE, Y)
two("aclnnAtan2", np.arctan2)
two("aclnnFmodTensor", np.fmod, X, POSITIVE)
two("aclnnRemainderTensorTensor", np.mod, X, POSITIVE)
two("aclnnFloorDivide", np.floor_divide, X, POSITIVE)
two("aclnnLogAddExp", np.logaddexp)
two("aclnnLogAddExp2", np.logaddexp2)
two("aclnnBitwiseAndTensor", np.bitwise_and, WHOLE, OTHER)
two("aclnnBitwiseOrTensor", np.bitwise_or, WHOLE, OTHER)
two("aclnnBitwiseXorTensor", np.bitwise_xor, WHOLE, OTHER)
two("aclnnGcd", np.gcd, WHOLE, OTHER)
for name, formula in {"EqTensor": np.equal, "NeTensor": np.not_equal, "GtTensor": np.greater, "LtTensor": np.less,
                      "GeTensor": np.greater_equal, "LeTensor": np.less_equal}.items():  # fmt: skip
    two(f"aclnn{name}", formula, WHOLE, OTHER, gives=bool)
two("aclnnLogicalAnd", lambda x, y: (x != 0) & (y != 0), WHOLE, OTHER, gives=bool)
two("aclnnLogicalOr", lambda x, y: (x != 0) | (y != 0), WHOLE, OTHER, gives=bool)
two("aclnnLogicalXor", lambda x, y: (x != 0) ^ (y != 0), WHOLE, OTHER, gives=bool)
p("aclnnSWhere", {"condition": X > 0, "self": X, "other": Y}, out=np.where(X > 0, X, Y))
p("aclnnLerps", {"self": X, "end": Y, "weight": 0.25}, out=X + F(0.25) * (Y - X))
p("aclnnAddcmul", {"self": X, "tensor1": Y, "tensor2": UNIT, "value": 2.0}, out=X + 2 * Y * UNIT)
p("aclnnAddcdiv", {"self": X, "tensor1": Y, "tensor2": POSITIVE, "value": 2.0}, out=X + 2 * Y / POSITIVE)
p("aclnnInplaceAdd", {"selfRef": X, "other": Y, "alpha": 1.0}, selfRef=X + Y)
p("aclnnInplaceMul", {"selfRef": X, "other": Y}, selfRef=X * Y)
p("aclnnInplaceRelu", {"selfRef": X}, selfRef=np.maximum(X, 0))
p("aclnnInplaceExp", {"selfRef": X}, selfRef=np.exp(X))
p("aclnnInplaceFillScalar", {"selfRef": X, "value": 2.5}, selfRef=np.full_like(X, 2.5))
p("aclnnInplaceZero", {"selfRef": X}, selfRef=np.zeros_like(X))
p("aclnnInplaceOne", {"selfRef": X}, selfRef=np.ones_like(X))
p("aclnnCast", {"self": X, "dtype": "int32"}, out=X.astype(np.int32))
p("aclnnCast", {"self": WHOLE, "dtype": "float32"}, out=WHOLE.astype(F))
p("aclnnCast", {"self": X, "dtype": "float16"}, out=X.astype(np.float16))

for axis in (0, 1):
    sums = {"self": X, "dims": [axis], "keepDims": False, "dtype": "float32"}
    p("aclnnReduceSum", sums, out=X.sum(axis))
    p("aclnnMean", {"self": X, "dim": [axis], "keepDim": True, "dtype": "float32"}, out=X.mean(axis, keepdims=True))
    p("aclnnAmax", {"self": X, "dim": [axis], "keepDim": False}, out=X.max(axis))
    p("aclnnAmin", {"self": X, "dim": [axis], "keepDim": False}, out=X.min(axis))
    p("aclnnArgMax", {"self": X, "dim": axis, "keepdim": False}, out=X.argmax(axis))
    p("aclnnArgMin", {"self": X, "dim": axis, "keepdim": False}, out=X.argmin(axis))
    p("aclnnProdDim", {"self": X, "dim": axis, "keepDim": False, "dtype": "float32"}, out=X.prod(axis))
    p("aclnnSoftmax", {"self": X, "dim": axis}, out=softmax(X, axis))
    p("aclnnLogSoftmax", {"self": X, "dim": axis}, out=np.log(softmax(X, axis)))
    p("aclnnCumsum", {"self": X, "dim": axis, "dtype": "float32"}, out=X.cumsum(axis))
    p("aclnnLogSumExp", {"self": X, "dim": [axis], "keepDim": False}, out=np.log(np.exp(X).sum(axis)))
    p("aclnnFlip", {"self": X, "dims": [axis]}, out=np.flip(X, axis))
    p("aclnnRoll", {"x": X, "shifts": [1], "dims": [axis]}, out=np.roll(X, 1, axis))
    p("aclnnCat", {"tensors": [X, Y], "dim": axis}, out=np.concatenate([X, Y], axis))
    p("aclnnStack", {"tensors": [X, Y], "dim": axis}, out=np.stack([X, Y], axis))
    index = np.array([1, 0], np.int64)
    p("aclnnIndexSelect", {"self": X, "dim": axis, "index": index}, out=X.take(index, axis))
    p("aclnnAll", {"self": X > 0, "dim": [axis], "keepdim": False}, out=(X > 0).all(axis))
    p("aclnnAny", {"self": X > 0, "dim": [axis], "keepdim": False}, out=(X > 0).any(axis))
    order = np.argsort(X, axis, kind="stable")
    sorted_ = {"self": X, "stable": True, "dim": axis, "descending": False}
    p("aclnnSort", sorted_, valuesOut=np.sort(X, axis), indicesOut=order)
p("aclnnVar", {"self": X, "dim": [1], "unbiased": True, "keepdim": False}, out=X.var(1, ddof=1))
p("aclnnStd", {"self": X, "dim": [1], "correction": 1, "keepdim": False}, out=X.std(1, ddof=1))
top = np.sort(X, 1)[:, ::-1][:, :2]
topk = {"self": X, "k": 2, "dim": 1, "largest": True, "sorted": True}
p("aclnnTopk", topk, valuesOut=top, indicesOut=np.argsort(-X, 1)[:, :2])
p("aclnnPermute", {"self": BATCH, "dims": [2, 0, 1]}, out=BATCH.transpose(2, 0, 1))
p("aclnnExpand", {"self": X[:1], "size": [2, 3]}, out=np.broadcast_to(X[:1], (2, 3)))
p("aclnnRepeat", {"self": X, "repeats": [2, 1]}, out=np.tile(X, (2, 1)))
p("aclnnTril", {"self": SQUARE, "diagonal": 0}, out=np.tril(SQUARE))
p("aclnnTriu", {"self": SQUARE, "diagonal": 1}, out=np.triu(SQUARE, 1))
p("aclnnEye", {"n": 3, "m": 3}, out=np.eye(3, dtype=F))
p("aclnnArange", {"start": 1.0, "end": 4.0, "step": 0.5}, out=np.arange(1.0, 4.0, 0.5, dtype=F))
p("aclnnLinspace", {"start": 0.0, "end": 1.0, "steps": 5}, out=np.linspace(0, 1, 5, dtype=F))
gathered = np.array([[0, 2], [1, 1]], np.int64)
p("aclnnGather", {"self": X, "dim": 1, "index": gathered}, out=np.take_along_axis(X, gathered, 1))
p("aclnnEmbedding", {"weight": SQUARE, "indices": np.array([2, 0], np.int64)}, out=SQUARE[[2, 0]])
p("aclnnConstantPadNd", {"self": X, "pad": [1, 1], "value": 0.5}, out=np.pad(X, ((0, 0), (1, 1)), constant_values=0.5))
p("aclnnMatmul", {"self": X, "mat2": SQUARE, "cubeMathType": 0}, out=X @ SQUARE)
p("aclnnMm", {"self": X, "mat2": SQUARE, "cubeMathType": 0}, out=X @ SQUARE)
p("aclnnBatchMatMul", {"self": BATCH, "mat2": BATCH.transpose(0, 2, 1).copy(), "cubeMathType": 0},
  out=BATCH @ BATCH.transpose(0, 2, 1))  # fmt: skip
p("aclnnAddmm", {"self": X, "mat1": X, "mat2": SQUARE, "beta": 1.0, "alpha": 2.0, "cubeMathType": 0},
  out=X + 2 * (X @ SQUARE))  # fmt: skip
p("aclnnDot", {"self": X[0], "tensor": Y[0]}, out=np.dot(X[0], Y[0]))
p("aclnnMv", {"self": SQUARE, "vec": X[0], "cubeMathType": 0}, out=SQUARE @ X[0])
p("aclnnMseLoss", {"self": X, "target": Y, "reduction": 1}, out=((X - Y) ** 2).mean())
p("aclnnL1Loss", {"self": X, "target": Y, "reduction": 2}, out=np.abs(X - Y).sum())
rms = np.sqrt((X**2).mean(1, keepdims=True) + F(1e-6))
ONES = np.ones(3, F)
p("aclnnRmsNorm", {"x": X, "gamma": ONES, "epsilon": 1e-6}, yOut=X / rms, rstdOut=1 / rms)
p("aclnnSwiGlu", {"x": BATCH, "dim": -1}, out=BATCH[..., :2] * sigmoid(BATCH[..., :2]) * BATCH[..., 2:])
p("aclnnReduceMinV2", {"x": X, "axes": 1, "keepdims": 1}, y=X.min(1, keepdims=True))
p("aclnnHingeLossGrad", {"predict": X, "target": np.sign(Y), "gradOutput": POSITIVE},
  gradInput=np.where(np.sign(Y) * X < 1, -np.sign(Y) * POSITIVE, 0).astype(F))  # fmt: skip
p("aclnnExpandv", {"self": X[0], "shape": [2, 3]}, out=np.stack([X[0], X[0]]))
p("aclnnSwigluGroup", {"x": BATCH, "clampLimit": 0.0},
  out=BATCH[..., :2] * sigmoid(BATCH[..., :2]) * BATCH[..., 2:])  # fmt: skip
p("aclnnFusedAddRmsNorm", {"x1": X, "x2": Y, "gamma": ONES, "epsilon": 1e-6, "scale": 1.0},
  yOut=(X + Y) / np.sqrt(((X + Y) ** 2).mean(1, keepdims=True) + F(1e-6)),
  rstdOut=1 / np.sqrt(((X + Y) ** 2).mean(1) + F(1e-6)), xOut=X + Y)  # fmt: skip
p("aclnnFusedMatmul", {"x1": X, "x2": SQUARE, "fusedOpType": "relu", "cubeMathType": 0}, y=np.maximum(X @ SQUARE, 0))
p("aclnnMoeTokenPermuteWithEp", {"tokens": X, "indices": np.array([[1], [0]], np.int32), "numOutTokens": 2,
                                 "rangeOptional": [0, 2], "paddedMode": False, "permuteProbsOut": np.zeros(2, F)},
  permuteTokensOut=X[[1, 0]], sortedIndicesOut=np.array([1, 0], np.int32))  # fmt: skip
# Functions of newer chips and of experts, as their examples call them.
HALF = X.astype(np.float16)
p("aclnnReluV3", {"x": X}, yOut=np.maximum(X, 0), maskOut=(X > 0).astype(np.uint8))
two_steps = softmax(SQUARE[None].astype(np.float64), -1)
p("aclnnMhcSinkhorn", {"x": SQUARE[None], "eps": 0.0, "numIters": 1},
  output=(two_steps / two_steps.sum(-2, keepdims=True)).astype(F))  # fmt: skip
largest = X.max(1)
p("aclnnCrossEntropySumExpAndIndexLogit",
  {"vocabParallelLogits": X, "target": np.array([4, 9], np.int32), "globalLogitsMax": largest, "vocabStartIndex": 3,
   "vocabEndIndex": 6},
  predictedLogitsOut=np.array([X[0, 1] - largest[0], 0], F), sumExpLogitsOut=np.exp(X - largest[:, None]).sum(1),
  expLogitsOut=np.exp(X - largest[:, None]), targetOffsetOut=np.array([1, 0], np.int32),
  targetMaskOut=np.array([False, True]))  # fmt: skip
p("aclnnMoeUpdateExpert",
  {"expertIds": np.array([[0, 1], [1, 0]], np.int32), "eplbTable": np.array([[1, 5, 0], [2, 6, 7]], np.int32),
   "localRankId": 1, "worldSize": 2, "balanceMode": 0},
  balancedExpertIds=np.array([[5, 7], [7, 5]], np.int32), balancedActiveMask=np.ones((2, 2), bool))  # fmt: skip
weights = softmax(0.5 * HALF.astype(np.float64) @ HALF.astype(np.float64).T, -1)
p("aclnnBlockSparseAttention",
  {"query": HALF[:, None], "key": HALF[:, None], "value": HALF[:, None], "blockShapeOptional": [128, 128],
   "actualSeqLengthsOptional": [2], "actualSeqLengthsKvOptional": [2], "qInputLayout": "TND", "kvInputLayout": "TND",
   "numKeyValueHeads": 1, "maskType": 0, "scaleValue": 0.5, "innerPrecise": 0, "blockSize": 0, "preTokens": 65535,
   "nextTokens": 65535, "softmaxLseFlag": 0},
  attentionOut=(weights @ HALF.astype(np.float64)).astype(np.float16)[:, None])  # fmt: skip

tokens, kernel = RNG.uniform(-1, 1, (4, 1, 3)).astype(np.float16), RNG.uniform(-1, 1, (2, 3)).astype(np.float16)
before = np.concatenate([np.zeros((1, 1, 3)), tokens[:-1].astype(np.float64)])
seen = np.array([[True, True, False, True]])
masked = (before * kernel[0] + tokens * kernel[1].astype(np.float64)) * seen.T[:, :, None]
p("aclnnMaskedCausalConv1d", {"x": tokens, "weight": kernel, "maskOptional": seen}, out=masked.astype(np.float16))
volume = RNG.uniform(-1, 1, (1, 2, 2, 4, 1)).astype(F)
p("aclnnMaxPool3D", {"x": volume, "ksize": [2, 2, 2], "strides": [2, 2, 2], "padding": "VALID", "ceilMode": 0},
  out=volume.reshape(1, 1, 2, 1, 2, 2, 2, 1).max((2, 4, 6)))  # fmt: skip
bytes_, steps = RNG.integers(-9, 9, (4, 3)).astype(np.int8), RNG.uniform(0.5, 1, (2, 3)).astype(F)
scaled = bytes_ * np.repeat(steps.astype(np.float64), 2, 0)
p("aclnnQuantMatmulV5", {"x1": bytes_.T.copy(), "x2": bytes_, "x1Scale": ONES, "x2Scale": steps, "transposeX1": False,
                         "transposeX2": False, "groupSize": 2},
  out=(bytes_.T.astype(np.float64) @ scaled).astype(np.float16))  # fmt: skip
heads = RNG.uniform(-1, 1, (1, 3, 2, 4)).astype(F)
sines, cosines = RNG.uniform(-1, 1, (2, 3, 4)).astype(F)
turned = heads.transpose(0, 2, 1, 3)
other = np.concatenate([-turned[..., 2:], turned[..., :2]], -1)
p("aclnnNormRopeConcat", {"query": heads, "key": heads, "value": heads, "ropeSin": sines, "ropeCos": cosines,
                          "normType": 0, "normAddedType": 0, "ropeType": 2, "concatOrder": 0, "eps": 1e-5,
                          "isTraining": False},
  queryOutput=turned * cosines + other * sines, keyOutput=turned * cosines + other * sines,
  valueOutput=turned.copy())  # fmt: skip
rows, squares = RNG.uniform(0.5, 1, (3, 2)).astype(F), RNG.uniform(0.5, 1, (2, 2)).astype(F)
left = bytes_.T * np.repeat(rows.astype(np.float64), 2, 1)
right = bytes_ * np.repeat(np.repeat(squares.astype(np.float64), 2, 0), 2, 1)[:, :3]
p("aclnnQuantMatmulV5", {"x1": bytes_.T.copy(), "x2": bytes_, "x1Scale": rows, "x2Scale": squares, "transposeX1": False,
                         "transposeX2": False, "groupSize": 1 << 32 | 2 << 16 | 2},
  out=(left @ right).astype(np.float16))  # fmt: skip
corners, faces = np.array([[-1, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]], F), np.array([[0, 1, 2]], np.int32)
p("aclnnRasterizer", {"v": corners, "f": faces, "width": 2, "height": 2, "occlusionTruncation": 0.0,
                      "useDepthPrior": 0},
  findicesOut=np.ones((2, 2), np.int32),
  barycentricOut=np.array([[[1, 0, 0], [0.5, 0.5, 0]], [[0.5, 0, 0.5], [0, 0.5, 0.5]]], F))  # fmt: skip

# Attention over keys of bytes, a tensor for each sample, as examples of decoding have it.
one_query = RNG.uniform(-1, 1, (2, 2, 1, 16)).astype(np.float16)  # samples, heads, positions, size
key_bytes, value_bytes = (
    [RNG.integers(-20, 20, (1, 2, length, 16)).astype(np.int8) for length in (4, 6)] for _ in range(2)
)
channels = RNG.uniform(0.02, 0.05, (2, 2, 1, 16)).astype(np.float16)
found = []
for b in range(2):
    wide_keys, wide_values = (
        part[b][0] * channel.astype(np.float64) for part, channel in zip((key_bytes, value_bytes), channels)
    )
    scores = 0.25 * one_query[b].astype(np.float64) @ wide_keys.swapaxes(-1, -2)
    found.append(softmax(scores, -1) @ wide_values)
p("aclnnIncreFlashAttentionV4",
  {"query": one_query, "key": key_bytes, "value": value_bytes, "antiquantScale": channels, "numHeads": 2,
   "scaleValue": 0.25, "inputLayout": "BNSD", "numKeyValueHeads": 2, "blockSize": 0, "innerPrecise": 1},
  attentionOut=np.stack(found).astype(np.float16))  # fmt: skip
whole_query, whole_key, whole_value = (RNG.integers(-20, 20, (1, 1, n, 16)).astype(np.int8) for n in (2, 4, 4))
scores = 0.25 * whole_query.astype(np.float64) @ whole_key.swapaxes(-1, -2) * np.float64(F(0.01))
weights = np.exp(scores - scores.max(-1, keepdims=True))
p("aclnnPromptFlashAttentionV3",
  {"query": whole_query, "key": whole_key, "value": whole_value, "deqScale1": np.array([0.01], F),
   "quantScale1": np.array([127], F), "deqScale2": np.array([0.002], F), "numHeads": 1, "scaleValue": 0.25,
   "preTokens": 2147483647, "nextTokens": 2147483647, "inputLayout": "BNSD", "numKeyValueHeads": 0, "sparseMode": 0,
   "innerPrecise": 1},
  attentionOut=(np.rint(weights * 127) @ whole_value * np.float64(F(0.002)) / weights.sum(-1, keepdims=True)).astype(
      np.float16))  # fmt: skip
by_column = np.abs(HALF.astype(np.float64)).max(0) / 127
p("aclnnDynamicQuantV3",
  {"x": HALF, "dstType": 2, "isSymmetrical": True, "quantMode": "perchannel"},
  yOut=np.rint(HALF / by_column).astype(np.int8), scaleOut=by_column.astype(F))  # fmt: skip

# Routing, caches, rotations, gated rows, parts along a ring, pictures: one of each as their examples have them.
experts = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
order = np.argsort(experts.reshape(-1), kind="stable")
places = np.argsort(order, kind="stable").astype(np.int32)
p("aclnnMoeInitRoutingV3",
  {"x": SQUARE, "expertIdx": experts, "activeNum": 6, "expertCapacity": -1, "expertNum": 3, "dropPadMode": 0,
   "expertTokensNumType": 1, "expertTokensNumFlag": True, "quantMode": -1, "activeExpertRangeOptional": [0, 3],
   "rowIdxType": 0},
  expandedXOut=SQUARE[order // 2], expandedRowIdxOut=places,
  expertTokensCountOrCumsumOut=np.array([2, 2, 2], np.int64))  # fmt: skip
expanded, shares = RNG.uniform(-1, 1, (6, 3)).astype(F), RNG.uniform(0.1, 0.9, (3, 2)).astype(F)
p("aclnnMoeFinalizeRoutingV2",
  {"expandedX": expanded, "expandedRowIdx": places, "scalesOptional": shares, "dropPadMode": 0},
  out=(expanded[places].reshape(3, 2, 3) * shares[..., None]).sum(1))  # fmt: skip
gate = RNG.uniform(-2, 2, (3, 4)).astype(F)
chosen = np.argsort(-softmax(gate, -1), -1, kind="stable")[:, :2]
p("aclnnMoeGatingTopKSoftmaxV2", {"x": gate, "k": 2, "renorm": 0, "outputSoftmaxResultFlag": False},
  yOut=np.take_along_axis(softmax(gate, -1), chosen, -1), expertIdxOut=chosen.astype(np.int32))  # fmt: skip
page, tokens = np.zeros((2, 4, 1, 16), np.float16), RNG.uniform(-1, 1, (3, 1, 16)).astype(np.float16)
kept = page.reshape(8, 16).copy()
kept[[5, 0, 3]] = tokens[:, 0]
p("aclnnScatterPaKvCache",
  {"key": tokens, "keyCacheRef": page, "slotMapping": np.array([5, 0, 3], np.int32), "value": tokens,
   "valueCacheRef": page, "cacheModeOptional": "Norm"},
  keyCacheRef=kept.reshape(page.shape), valueCacheRef=kept.reshape(page.shape))  # fmt: skip
whole_head, phase = (RNG.uniform(-1, 1, (1, 2, 3, 8)).astype(F) for _ in range(2))
half_turned = np.concatenate([-whole_head[..., 4:], whole_head[..., :4]], -1)
p("aclnnRotaryPositionEmbedding", {"x": whole_head, "cos": np.cos(phase), "sin": np.sin(phase), "mode": 0},
  out=whole_head * np.cos(phase) + half_turned * np.sin(phase))  # fmt: skip
gated_left, gated_right = np.split(BATCH.astype(np.float64), 2, -1)
bytes_out = np.clip(np.rint(gated_left * sigmoid(gated_left) * gated_right * 30 + 2), -128, 127)
p("aclnnSwiGluQuant",
  {"x": BATCH, "smoothScalesOptional": np.array([30], F), "offsetsOptional": np.array([2], F), "activateLeft": True,
   "quantModeOptional": "static", "scaleOut": np.zeros((2, 3), F)},
  yOut=bytes_out.astype(np.int8))  # fmt: skip
p("aclnnDynamicQuantV2",
  {"x": HALF, "smoothScalesOptional": np.ones(HALF.shape[-1], np.float16), "dstType": 2},
  **dict(zip(("yOut", "scaleOut", "offsetOut"), asymmetric(HALF.astype(np.float64)))))  # fmt: skip
later_top = np.repeat(RNG.uniform(-1, 1, (2, 3, 2, 1)), 8, -1).astype(F)  # twice: tokens, heads, 8
later_sum = np.repeat(RNG.uniform(1, 2, (2, 3, 2, 1)), 8, -1).astype(F)
parts_of = RNG.uniform(-1, 1, (2, 3, 2, 4)).astype(F)
top = later_top.max(0)
sums = later_sum * np.exp(later_top - top)
p("aclnnRingAttentionUpdate",
  {"prevAttnOut": parts_of[0], "prevSoftmaxMax": later_top[0], "prevSoftmaxSum": later_sum[0],
   "curAttnOut": parts_of[1], "curSoftmaxMax": later_top[1], "curSoftmaxSum": later_sum[1],
   "inputLayoutOptional": "TND"},
  attnOutOut=(parts_of * sums[..., :1]).sum(0) / sums.sum(0)[..., :1], softmaxMaxOut=top, softmaxSumOut=sums.sum(0),
  )  # fmt: skip
picture = RNG.uniform(0, 1, (4, 5)).astype(F)
framed = np.pad(picture, 1, "reflect").astype(np.float64)
soft = framed[:-2] / 4 + framed[1:-1] / 2 + framed[2:] / 4
p("aclnnGaussianBlur", {"src": picture, "ksize": [3, 3], "sigmaX": 0.0, "sigmaY": 0.0, "borderType": 4},
  dst=(soft[:, :-2] / 4 + soft[:, 1:-1] / 2 + soft[:, 2:] / 4).astype(F))  # fmt: skip


def translation_unit(programs: list[Program]) -> str:
    """One source file of several programs."""
    from headers import header_of

    names = sorted({header_of(facts()[q.function]) for q in programs})
    parts = [f'#include "aclnnop/{name}.h"' for name in names]
    parts += ['#include "harness.h"', ""]
    parts += [f"PROGRAM({q.name}) {{\n    {q.source()}\n}}\n" for q in programs]
    return "\n".join([*parts, "MAIN", ""])
