"""Wrong calls made of right ones: for a call that a function accepts, the mistakes that its facts name.

The first call of each function that a test makes with success is made again with each of them (`_kernels.call`): a
required argument that is null, a tensor of a dtype, rank or format that is not listed or with a negative size, an axis
that does not exist. Invariant: a mistake is one change of one argument, and phase 1 alone decides on it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from ctypes import byref, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._kernels import CODES, FORMATS, ROOT, Block, Call, In, Out, Reuse, facts, int64s, written

sys.path.insert(0, str(ROOT / "csrc" / "ascend_emulator"))

from generate import must_be_given

NULL, INVALID = 161001, 161002
# Attributes that are one of a few numbers wherever they appear.
MODES = ("reduction", "cubeMathType", "groupListType", "dropPadMode")
NAMES = {
    "complex64": "COMPLEX64", "uint64": "UINT64", "bool": "BOOL", "int16": "INT16", "float64": "DOUBLE",
    "int8": "INT8", "int64": "INT64", "float32": "FLOAT",
}  # fmt: skip


@dataclass
class Mistake:
    what: str
    values: dict[str, Any]
    codes: tuple[int, ...]  # one of these is the answer


@dataclass
class Described:
    """A tensor that exists by its description only: phase 1 does not look at memory."""

    shape: tuple[int, ...]
    dtype: str
    format: str = "ND"


def described(value: Any) -> Described | None:
    """An argument's description; None for those over the memory of another, and for blocks of a private format."""
    if isinstance(value, Reuse):
        return None
    form = value.format if isinstance(value, (In, Out)) else "ND"
    if isinstance(value, In) and (value.view is not None or form == "FRACTAL_NZ"):
        return None
    array = value.array if isinstance(value, In) else value
    if isinstance(array, Out):
        return Described(tuple(array.shape), array.dtype, form)
    kind = str(array.dtype).removeprefix("torch.")
    return Described(tuple(array.shape), kind, form)


def ranks(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split("|"):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def of_tensor(p: dict[str, Any], d: Described) -> Iterator[tuple[str, Described]]:
    """What is wrong with a tensor by its own description."""
    stated = p.get("dtypes", "")
    if stated and not stated.startswith("="):
        for name, said in NAMES.items():
            if said not in stated.split():
                yield f"dtype {name}", Described(d.shape, name, d.format)
                break
    known = ranks(p["rank"]) if "rank" in p else set(range(9))
    if "FRACTAL_NZ" not in p.get("formats", ""):
        for rank in range(10):
            if rank not in known:
                yield f"{rank} dimensions", Described((1,) * rank, d.dtype)
                break
    if p.get("formats") != "any" and "FRACTAL_NZ" not in p.get("formats", ""):
        yield "format FRACTAL_NZ", Described(d.shape, d.dtype, "FRACTAL_NZ")
    if d.shape:
        yield "a negative size", Described((*d.shape[:-1], -1), d.dtype, d.format)


def collective(name: str) -> bool:
    """Whether a function waits for other ranks, by the group that it names."""
    strings = [p["name"] for p in facts()[name]["params"] if p["type"] == "char*"]
    return any(string in ("group", "groupEp") for string in strings)


def mistakes(name: str, values: dict[str, Any]) -> Iterator[Mistake]:
    f = facts()[name]
    outputs, _ = written(f)
    for p in f["params"]:
        key, value = p["name"], values.get(p["name"])
        if p["type"].endswith("*") and must_be_given(f, p):
            yield Mistake(f"{key} null", {**values, key: None}, (NULL,))
        if value is None:
            continue
        if p["type"] == "aclTensor*":
            d = described(value)
            if d is None:
                continue
            for what, wrong in of_tensor(p, d):
                yield Mistake(f"{key}: {what}", {**values, key: wrong}, (INVALID,))
            if key in outputs and d.shape:  # refused, unless the function takes any
                other = Described((*d.shape[:-1], d.shape[-1] + 1), d.dtype, d.format)
                yield Mistake(f"{key}: another shape", {**values, key: other}, (INVALID, 0))
        elif p["type"] == "int64_t" and key in ("dim", "axis"):
            yield Mistake(f"{key} 99", {**values, key: 99}, (INVALID,))
        elif p["type"] == "aclIntArray*" and key in ("dim", "dims", "axis", "axes") and len(value):
            yield Mistake(f"{key} 99", {**values, key: [99, *value[1:]]}, (INVALID,))
        elif collective(name):  # the facts do not list the modes of these
            continue
        elif p["type"] in ("int64_t", "int32_t", "int8_t") and key in MODES:
            yield Mistake(f"{key} 99", {**values, key: 99}, (INVALID,))
        elif p["type"] == "char*" and value and not name.endswith("Metadata"):  # which is not looked into
            yield Mistake(f"{key} that nobody knows", {**values, key: "nonsense"}, (INVALID,))


class Phase1(Call):
    """Asks phase 1 alone."""

    def tensor(self, value: Any) -> Block:
        if not isinstance(value, Described):
            return super().tensor(value)
        shape = value.shape
        strides = tuple(int(np.prod([abs(s) or 1 for s in shape[i + 1 :]])) for i in range(len(shape)))
        handle = self.device.base.aclCreateTensor(
            int64s(shape), len(shape), CODES[value.dtype], int64s(strides), 0, FORMATS[value.format],
            int64s([max(int(np.prod(shape)), 1)]), 1, 0x1000,
        )  # fmt: skip
        assert handle, self.device.message()
        return Block(handle, 0, 0, shape, strides, value.dtype, False)

    def answer(self, name: str, values: dict[str, Any], size: bool = True, executor: bool = True) -> tuple[int, str]:
        """The code, and what the library says about it."""
        dev = self.device
        wanted, made = c_uint64(), c_void_p()
        try:
            arguments = [self.argument(p, values.get(p["name"])) for p in facts()[name]["params"]]
            code = getattr(dev.ops, name + "GetWorkspaceSize")(
                *arguments, byref(wanted) if size else None, byref(made) if executor else None
            )
            text = dev.message()
            if made.value:
                dev.base.aclDestroyAclOpExecutor(made)
            return int(code), text
        finally:
            for kind, handle in self.releases:
                getattr(dev.base, f"aclDestroy{kind}")(handle)
            for address in self.memory:
                dev.rt.aclrtFree(address)


def try_mistakes(name: str, values: dict[str, Any]) -> None:
    """Every mistake is answered with the documented status and a sentence, and breaks no rule of the library."""
    for mistake in mistakes(name, values):
        code, text = Phase1().answer(name, mistake.values)
        assert code in mistake.codes, f"{name}, {mistake.what}: answered {code}, expected {mistake.codes}: {text}"
        assert code == 0 or name in text, f"{name}, {mistake.what}: answered {code} and said {text!r}"
    for given in ({"size": False}, {"executor": False}):
        code, text = Phase1().answer(name, values, **given)
        assert code == NULL and text, f"{name}, {given}: answered {code}: {text}"
    broken = Phase1().device.violations()
    assert not broken, broken
