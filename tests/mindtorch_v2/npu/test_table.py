"""Every line of the table of vendor functions against the vendor facts that are kept as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mindtorch_v2._backends.npu import table

FACTS = Path(__file__).parents[3] / "csrc" / "ascend_emulator" / "facts.jsonl"
TYPES = {
    "aclTensor*": table.TENSOR,
    "aclScalar*": table.SCALAR,
    "aclIntArray*": table.INTS,
    "aclFloatArray*": table.FLOATS,
    "aclBoolArray*": table.BOOLS,
    "aclTensorList*": table.TENSORS,
    "aclScalarList*": table.SCALARS,
    "int64_t": table.I64,
    "int32_t": table.I32,
    "int": table.I32,
    "int8_t": table.I8,
    "uint64_t": table.U64,
    "uint32_t": table.U32,
    "double": table.F64,
    "float": table.F32,
    "bool": table.BOOL,
    "aclDataType": table.DTYPE,
    "char*": table.STRING,
}
NAMES = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "BF16": "bfloat16",
    "DOUBLE": "float64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "BOOL": "bool",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
}


def _facts() -> Any:
    with FACTS.open() as lines:
        return {fact["name"]: fact for fact in map(json.loads, lines)}


FACT = _facts()


@pytest.fixture(autouse=True)
def emulator() -> None:
    """The table is text: reading it needs no NPU."""


def _documented(fact: Any, param: Any) -> Any:
    """The dtypes documented for a parameter on 910B, by our names; None where the documents name none."""
    text = param.get("dtypes", "")
    chip = fact.get("chips", {}).get("910B", {})
    tensor = param["type"] in ("aclTensor*", "aclTensorList*")
    if not text and tensor:
        text = chip.get("only", "")
    if not text or text.startswith("="):
        return None
    found = set(text.split())
    if "only" in chip and set(chip["only"].split()) <= found:
        found &= set(chip["only"].split())
    found -= set(chip.get("no", "").split())
    return {NAMES[n] for n in found if n in NAMES}


def test_every_line_states_the_vendors_signature() -> None:
    wrong = []
    for name in table.names():
        ours = [(p.name, p.kind) for p in table.signature(name).params]
        theirs = [(p["name"], TYPES[p["type"]]) for p in FACT[name]["params"]]
        if ours != theirs:
            wrong.append((name, ours, theirs))
    assert not wrong


def test_every_line_states_the_documented_dtypes() -> None:
    wrong = []
    for name in table.names():
        for ours, theirs in zip(table.signature(name).params, FACT[name]["params"]):
            typed = ours.kind in (table.TENSOR, table.TENSORS, table.SCALAR, table.SCALARS)
            want = (_documented(FACT[name], theirs) or set()) if typed else set()
            if {d.name for d in table.dtypes_of(ours.mask)} != want:
                wrong.append((name, ours.name, want))
    assert not wrong


def test_every_line_says_what_may_be_null_what_is_written_and_what_has_dimensions() -> None:
    wrong = []
    for name in table.names():
        for ours, theirs in zip(table.signature(name).params, FACT[name]["params"]):
            written = theirs.get("io") in ("out", "inout")
            flat = ours.kind == table.TENSOR and theirs.get("rank", "").startswith("1-")
            if ours.optional != bool(theirs.get("optional")) or written > ours.written or flat > ours.lifted:
                wrong.append((name, ours.name))
    assert not wrong


# Their documents list ND as well, but only for more dimensions than any channels-first format has.
CHANNELS_BELOW_SIX = {"aclnnBatchNorm", "aclnnBatchNormBackward"}


def test_formats_by_rank_are_marked() -> None:
    """Functions whose documents leave ND out for a tensor take channels-first formats, or channels-last ones."""
    wrong = []
    for name in table.names():
        formats = [set(p["formats"].split()) for p in FACT[name]["params"] if p.get("formats")]
        needs = any("ND" not in f and f & {"NCHW", "NCL", "NCDHW", "NC"} for f in formats)
        last = any(f and f <= {"NHWC", "NDHWC"} for f in formats)
        sig = table.signature(name)
        if (sig.channels, sig.last) != ((needs and not last) or name in CHANNELS_BELOW_SIX, last):
            wrong.append(name)
    assert not wrong


def test_a_function_without_a_line_is_named() -> None:
    with pytest.raises(KeyError, match="aclnnNothing has no line"):
        table.signature("aclnnNothing")


@pytest.mark.parametrize("text", ["Add(Q self)", "Add(T)", "Add(T self) @odd"])
def test_a_wrong_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="table line"):
        table.parse(text)
