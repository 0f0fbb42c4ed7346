"""Right calls made of right ones: for a call that a function accepts, the others that its documents allow.

The first call of each function that a test makes with success is made again (`_kernels.call`) as the vendor's own
example programs would make it: with another documented dtype for all tensors that share one, with every tensor in ND or
in the format of its rank where both are listed, with numbers as FLOAT. Invariant: only documented liberties are taken,
and each is accepted and computed. A single tensor in another of its documented dtypes may be refused for what stands
beside it, but not because nobody wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._kernels import CODES, Call, In, Out, Refused, Reuse, Scalar, as_numpy, facts, numpy_dtype
from ._mistakes import Described, Phase1, collective, described

FLOATS = {"FLOAT": "float32", "FLOAT16": "float16", "BF16": "bfloat16"}
FORMATS = {2: "NC", 3: "NCL", 4: "NCHW", 5: "NCDHW"}
# An int64_t that holds a dtype's number, besides parameters of type aclDataType.
DTYPE_NUMBERS = ("dtype", "dstType", "outputDtype", "outDtype", "dequantDtype", "yDtype")
# What a tensor's other dtype would ask of another argument, by function: why it is not tried.
TIED = {
    "aclnnComplex": "the result's dtype is the complex one of the operands",
    "aclnnCumprod": "its scalar names the dtype of the result",
    "aclnnFastLayerNorm": "the statistics' dtype depends on whether there are several",
    "aclnnIndexFillTensor": "its scalar has the tensors' dtype",
    "aclnnInplaceIndexFillTensor": "its scalar has the tensors' dtype",
}


# Documented dtypes that are not computed, by function: why.
LACKING = {
    "aclnnBlockSparseAttentionV2": "the parts that scales of 8-bit floats belong to are not documented",
    "aclnnIndexerQuantCache": "a cache of UINT8 does not say what its bytes are",
    "aclnnMlaPrologV3WeightNz": "where scales of 8-bit floats stand is not documented",
}
SAID = {
    "FLOAT": "float32", "FLOAT16": "float16", "BF16": "bfloat16", "DOUBLE": "float64", "INT8": "int8", "INT16": "int16",
    "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "BOOL": "bool", "COMPLEX64": "complex64", "COMPLEX128": "complex128", "INT4": "int4", "FLOAT8_E5M2": "float8_e5m2",
    "FLOAT8_E4M3FN": "float8_e4m3fn", "FLOAT8_E8M0": "float8_e8m0fnu", "FLOAT4_E2M1": "float4_e2m1fn",
}  # fmt: skip


def array_of(value: Any) -> np.ndarray:
    return as_numpy(value.array if isinstance(value, In) else value)


def dtype_of(value: Any) -> str:
    return value.dtype if isinstance(value, Out) else array_of(value).dtype.name


def in_dtype(value: Any, dtype: str) -> Any:
    if isinstance(value, Out):
        return Out(value.shape, dtype, value.strides, value.format)
    array = array_of(value).astype(numpy_dtype(dtype))
    return In(array, value.format, value.view) if isinstance(value, In) else array


def in_format(value: Any, form: str) -> Any:
    if isinstance(value, Out):
        return Out(value.shape, value.dtype, value.strides, form)
    return In(value.array if isinstance(value, In) else value, form)


def refused_here(f: dict[str, Any], said: str) -> bool:
    """Whether the documents of the emulator's chip exclude a dtype that others have."""
    chip = os.environ.get("ASCEND_EMULATOR_CHIP", "910B")
    rule = f.get("chips", {}).get(chip, {})
    if said == "BF16" and chip != "910B":
        return True
    return said in rule.get("no", "").split() or said not in rule.get("only", said).split()


def other_dtypes(name: str, values: dict[str, Any], tensors: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    f = facts()[name]
    stated = {p["name"]: p.get("dtypes", "") for p in f["params"]}
    kinds = {p["name"]: p["type"] for p in f["params"]}
    for now in FLOATS.values():
        group = [
            key for key, value in tensors.items() if dtype_of(value[0] if isinstance(value, list) else value) == now
        ]
        for said, then in FLOATS.items():
            known = [stated[key].split() for key in group if not stated[key].startswith("=")]
            if then == now or not group or refused_here(f, said) or not all(said in listed for listed in known):
                continue
            if not any(known):
                continue
            changed = dict(values)
            for key in group:
                one = tensors[key]
                changed[key] = [in_dtype(v, then) for v in one] if isinstance(one, list) else in_dtype(one, then)
            for key, value in values.items():
                number = kinds[key] == "aclDataType" or key in DTYPE_NUMBERS
                if number and value in (now, CODES[now]):
                    changed[key] = CODES[then]
            yield f"{now} as {then}", changed


def other_formats(name: str, values: dict[str, Any], tensors: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = {p["name"]: p.get("formats", "").split() for p in facts()[name]["params"]}
    for what in ("ND", "the format of the rank"):
        changed = dict(values)
        for key, value in tensors.items():
            if isinstance(value, list) or (isinstance(value, In) and value.view is not None):
                continue
            rank = len(value.shape if isinstance(value, Out) else array_of(value).shape)
            # At 5 dimensions and more some functions look at the format after all.
            form = "ND" if what == "ND" and rank < 5 else FORMATS.get(rank, "")
            if form in listed[key]:
                changed[key] = in_format(value, form)
        yield f"tensors in {what}", changed


def liberties(name: str, values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kinds = {p["name"]: p["type"] for p in facts()[name]["params"]}
    tensors = {
        key: value
        for key, value in values.items()
        if kinds[key] in ("aclTensor*", "aclTensorList*") and not isinstance(value, Reuse)
        if value is not None and not (isinstance(value, list) and not value)
    }
    if name not in TIED:
        yield from other_dtypes(name, values, tensors)
    if name != "aclnnResize":  # its format says which dimensions are resized
        yield from other_formats(name, values, tensors)
    numbers = {k: Scalar(v, "float32") for k, v in values.items() if kinds[k] == "aclScalar*" and type(v) is float}
    if numbers:
        yield "numbers as FLOAT", {**values, **numbers}


def try_liberties(name: str, values: dict[str, Any]) -> None:
    for what, changed in liberties(name, values):
        if collective(name):  # the others have made this call once
            code, text = Phase1().answer(name, changed)
            assert code == 0, f"{name}, {what}: answered {code}: {text}"
            continue
        try:
            Call().run(name, changed)
        except Refused as refusal:
            raise AssertionError(f"{name}, {what}: {refusal}") from None


def all_described(values: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """Tensors by their descriptions, where they have one: phase 1 needs no more."""
    result = dict(values)
    for key, value in values.items():
        if value is not None and kinds[key] == "aclTensor*":
            result[key] = described(value) or value
        elif value is not None and kinds[key] == "aclTensorList*":
            result[key] = [described(v) or v for v in value]
    return result


def try_each_dtype(name: str, values: dict[str, Any]) -> None:
    f = facts()[name]
    base = all_described(values, {p["name"]: p["type"] for p in f["params"]})
    for p in f["params"]:
        now = base.get(p["name"])
        if not isinstance(now, Described) or name in LACKING or collective(name):
            continue
        for said in p.get("dtypes", "").split():
            if said not in SAID or refused_here(f, said):
                continue
            changed = Described(now.shape, SAID[said], now.format)
            code, text = Phase1().answer(name, {**base, p["name"]: changed})
            assert code == 0 or "emulator" not in text, f"{name}, {p['name']} of {said}: answered {code}: {text}"
