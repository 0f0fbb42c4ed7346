"""Patterns of `rearrange`: `"b (h w) c -> b h w c"`.

Invariant: an expression that was parsed has balanced brackets of one level, at most one ellipsis and valid names.
"""

from __future__ import annotations

import keyword
import warnings
from collections.abc import Collection, Mapping
from typing import Any

_ellipsis = "\u2026"
_DOTS = "Expression may contain dots only inside ellipsis (...)"


class AnonymousAxis:
    """A dimension that is given by its size. Two of them are never the same."""

    def __init__(self, value: str) -> None:
        self.value = int(value)
        if self.value < 1:
            raise ValueError(f"Anonymous axis should have positive length, not {self.value}")

    def __repr__(self) -> str:
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern: its names, and the names that make up each dimension."""

    def __init__(self, expression: str, *, allow_underscore: bool = False, allow_duplicates: bool = False) -> None:
        self.has_ellipsis = False
        self.has_ellipsis_parenthesized: bool | None = None
        self.identifiers: set[Any] = set()
        self.has_non_unitary_anonymous_axes = False
        self.composition: list[Any] = []
        self._underscore = allow_underscore
        self._duplicates = allow_duplicates
        self._parse(_with_ellipsis(expression))
        del self._underscore, self._duplicates

    def _parse(self, expression: str) -> None:
        group: list[Any] | None = None
        word = ""
        # A bracket ends a word; the space at the end ends the last one.
        for char in f"{expression} ":
            if char not in "() ":
                if not (char.isalnum() or char in ("_", _ellipsis)):
                    raise ValueError(f"Unknown character '{char}'")
                word += char
                continue
            if word:
                self._add(word, group)
                word = ""
            if char == "(":
                if group is not None:
                    raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
                group = []
            elif char == ")":
                if group is None:
                    raise ValueError("Brackets are not balanced")
                self.composition.append(group)
                group = None
        if group is not None:
            raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")

    def _add(self, word: str, group: list[Any] | None) -> None:
        if word in self.identifiers and not self._duplicates:
            raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
        if word == _ellipsis:
            self.identifiers.add(_ellipsis)
            self.has_ellipsis_parenthesized = group is not None
            self.has_ellipsis = True
            (self.composition if group is None else group).append(_ellipsis)
            return
        axis: Any = word
        if word.isdecimal():
            if int(word) == 1:
                # A size of one needs no name, and is nothing inside brackets.
                if group is None:
                    self.composition.append([])
                return
            axis = AnonymousAxis(word)
            self.has_non_unitary_anonymous_axes = True
        else:
            valid, reason = self.check_axis_name_return_reason(word, allow_underscore=self._underscore)
            if not valid:
                raise ValueError(f"Invalid axis identifier: {word}\n{reason}")
        self.identifiers.add(axis)
        self.composition.append([axis]) if group is None else group.append(axis)

    @staticmethod
    def check_axis_name_return_reason(name: str, allow_underscore: bool = False) -> tuple[bool, str]:
        """Whether a name is valid, and why not."""
        if not name.isidentifier():
            return False, "not a valid python identifier"
        if name[0] == "_" or name[-1] == "_":
            if name == "_" and allow_underscore:
                return True, ""
            return False, "axis name should should not start or end with underscore"
        if keyword.iskeyword(name):
            warnings.warn(
                f"It is discouraged to use axes names that are keywords: {name}", RuntimeWarning, stacklevel=2
            )
        if name == "axis":
            warnings.warn(
                "It is discouraged to use 'axis' as an axis name and will raise an error in future",
                FutureWarning,
                stacklevel=2,
            )
        return True, ""

    @staticmethod
    def check_axis_name(name: str) -> bool:
        return ParsedExpression.check_axis_name_return_reason(name)[0]


def _with_ellipsis(expression: str) -> str:
    """The expression with one character for its three dots."""
    if "." not in expression:
        return expression
    if "..." not in expression:
        raise ValueError(_DOTS)
    if expression.count("...") != 1 or expression.count(".") != 3:
        raise ValueError(f"{_DOTS}; only one ellipsis for tensor ")
    return expression.replace("...", _ellipsis)


def parse_pattern(pattern: str, axes_lengths: Mapping[str, int]) -> tuple[ParsedExpression, ParsedExpression]:
    """Both sides of a pattern. The names of `axes_lengths` must be valid too."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if _ellipsis in axes_lengths:
        raise ValueError(f"'{_ellipsis}' is not an allowed axis identifier")
    left, right = ParsedExpression(sides[0]), ParsedExpression(sides[1])
    if right.has_ellipsis and not left.has_ellipsis:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if left.has_ellipsis_parenthesized:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, int]
) -> None:
    """Both sides have the same names, and sizes are given for names that are there."""
    for length in axes_lengths.values():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if alone := left.identifiers ^ right.identifiers:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    if unknown := axes_lengths.keys() - left.identifiers:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def comma_separate(collection: Collection[str | Collection[str]]) -> str:
    """The items with commas between them, collections in brackets."""
    return ", ".join(
        item if isinstance(item, str) else f"({comma_separate(item)}{',' if len(item) == 1 else ''})"
        for item in collection
    )
