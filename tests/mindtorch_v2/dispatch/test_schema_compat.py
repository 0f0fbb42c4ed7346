"""Schemas as programs read them: types, defaults, any number of arguments, versions that work with each other."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch

OLD = "a(Tensor self, int b=1) -> Tensor"
OUT = "a(Tensor self, *, int b=1, Tensor(a!) out) -> Tensor(a!)"
OTHER = "is not forward compatible with the older version of the schema"
OUTS = "Function schema should have the same number of out arguments"
CONTAINER = (
    "Function schema is not forward compatible since the new argument 'c' of type int[] has a container type as its "
    "default value."
)
# A schema, an older one; whether it is compatible backward; whether forward, and why not.
CASES = [
    (OLD, OLD, True, True, ""),
    ("b(Tensor self, int b=1) -> Tensor", OLD, False, False, ""),
    ("a.x(Tensor self, int b=1) -> Tensor", OLD, False, False, ""),
    ("a(Tensor self, int b=1) -> (Tensor, Tensor)", OLD, False, False, ""),
    ("a(Tensor self, int b=1) -> Tensor?", OLD, False, True, ""),
    (OLD, "a(Tensor self, int b=1) -> Tensor?", True, True, ""),
    ("a(Tensor self, int b=1) -> Tensor x", OLD, False, True, ""),
    ("a(Tensor self, int b=1) -> int", OLD, False, True, ""),
    ("a(Tensor self, int b=1, int[] c=[]) -> Tensor", OLD, True, False, CONTAINER),
    ("a(Tensor self, int b=1, int[2] c=1) -> Tensor", OLD, True, False, CONTAINER),
    ("a(Tensor self, int b=1, int[]? c=None) -> Tensor", OLD, True, True, ""),
    ("a(Tensor self, int b=1, *, float c=1.0) -> Tensor", OLD, True, True, ""),
    ("a(Tensor self, *, int b=1) -> Tensor", OLD, False, False, f"'b' {OTHER}"),
    (OLD, "a(Tensor self, *, int b=1) -> Tensor", True, True, ""),
    ("a(Tensor self) -> Tensor", OLD, False, True, ""),
    ("a(int b=1) -> Tensor", OLD, False, False, f"'b' {OTHER}"),
    ("a(Tensor self, int? b=1) -> Tensor", OLD, True, False, f"'b' {OTHER}"),
    ("a(Tensor self, Scalar b=1) -> Tensor", OLD, True, False, f"'b' {OTHER}"),
    ("a(Tensor self, SymInt b=1) -> Tensor", OLD, True, True, ""),
    ("a(Tensor self, int b) -> Tensor", OLD, False, False, f"'b' {OTHER}"),
    ("a(Tensor self, int b=2) -> Tensor", OLD, False, False, f"'b' {OTHER}"),
    ("a(Tensor(a!) self, int b=1) -> Tensor", OLD, False, False, f"'self' {OTHER}"),
    ("a(Tensor? self, int b=1) -> Tensor", OLD, True, False, f"'self' {OTHER}"),
    ("a(Tensor self, int b=1, *, Tensor(a!) out) -> Tensor", OLD, True, False, OUTS),
    ("a(Tensor self, int b=1, ...) -> Tensor", "a(Tensor self, int b) -> Tensor", None, None, ""),
    ("a(Tensor self, ...) -> Tensor", "a(Tensor self) -> Tensor", False, False, ""),
    ("a(Tensor self) -> ...", "a(Tensor self) -> ()", False, False, ""),
    (
        OUT.replace("out)", "other)"),
        OUT,
        False,
        False,
        "Out argument ''other is not FC with the older version of the schema",
    ),
    (OUT.replace("a!", "b!"), OUT, False, False, "Out argument ''out is not FC with the older version of the schema"),
    (OUT.replace("int b=1, Tensor(a!) out", "Tensor(a!) out, int b=1"), OUT, False, False, OUTS),
    (OUT.replace("out)", "out, int c=1)"), OUT, True, False, OUTS),
]


def parse(text: str) -> Any:
    return torch._C.parse_schema(text)


@pytest.mark.parametrize(("new", "old", "backward", "forward", "why"), CASES)
def test_versions_of_a_schema(new: str, old: str, backward: bool | None, forward: bool | None, why: str) -> None:
    if backward is None:
        with pytest.raises(RuntimeError, match=r"schemas with vararg \(...\) can't have default value args"):
            parse(new)
        return
    assert parse(new).is_backward_compatible_with(parse(old)) is backward
    assert parse(new).check_forward_compatible_with(parse(old)) == (forward, why)


TYPES = {
    "Tensor? a": ("Optional[Tensor]", "Tensor?", "Tensor?", "OptionalType", None, None),
    "int[2] a=1": ("List[int]", "int[]", "int[]", "ListType", 2, [1, 1]),
    "float[] a=[1.0]": ("List[float]", "float[]", "float[]", "ListType", None, [1.0]),
    "SymInt[]? a=None": ("Optional[List[int]]", "int[]?", "SymInt[]?", "OptionalType", None, None),
    "SymInt[2] a": ("List[int]", "int[]", "SymInt[]", "ListType", 2, None),
    "ScalarType? a=None": ("Optional[int]", "int?", "ScalarType?", "OptionalType", None, None),
    "Layout a": ("int", "int", "Layout", "IntType", None, None),
    "Scalar a=1": ("number", "Scalar", "Scalar", "NumberType", None, 1),
    "Tensor?[] a": ("List[Optional[Tensor]]", "Tensor?[]", "Tensor?[]", "ListType", None, None),
    "str a": ("str", "str", "str", "StringType", None, None),
}


@pytest.mark.parametrize("text", TYPES)
def test_types_of_arguments(text: str) -> None:
    a = parse(f"f({text}) -> Tensor").arguments[0]
    assert (str(a.type), a.type.str(), a.real_type.str(), a.type.kind(), a.N, a.default_value) == TYPES[text]
    assert a.type.annotation_str == str(a.type)


def test_any_number_of_arguments() -> None:
    for text in ("a(int b, ...) -> Tensor", "a(int b, *, Tensor c, ...) -> Tensor", "a(...) -> Tensor", "a() -> ..."):
        assert str(parse(text)) == text
