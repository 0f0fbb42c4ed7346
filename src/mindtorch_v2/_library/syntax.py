"""The syntax of schemas that users write, checked before they are read, for complaints that point at the place.

Invariant: what passes is `name(type argument=default, ...) -> results` as PyTorch reads it, with types that it knows;
whether they are supported here is for `_dispatch/schema` to say.
"""

from __future__ import annotations

import re
from math import isinf

_TOKEN = re.compile(
    r"\s+|#.*|->|\.\.\.|\*\*|[A-Za-z_]\w*|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|.",
    re.ASCII,
)
_TYPES = frozenset(
    "Tensor SymInt SymBool SymFloat int float bool Scalar str Device ScalarType Layout MemoryFormat Generator Storage "
    "Stream QScheme complex number Any Dict Future NoneType Module".split()
)
_UNKNOWN = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full "
    "list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :"
)
# Words that stand for a default: numbers, dtypes, layouts and the like.
_WORDS = frozenset(
    "None True False Mean strided contiguous_format preserve_format channels_last cpu inf nan pi long int float double "
    "half short bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 complex64 complex128".split()
)
_LONG_MAX = 2**63 - 1
_DEEPEST = 100  # types inside each other


def check(text: str) -> None:
    """Raise PyTorch's complaint if this is no schema."""
    _Reader(text).schema()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        found = [(m.group(), m.start()) for m in _TOKEN.finditer(text)]
        self.tokens = [(word, place) for word, place in found if not word.isspace() and word[0] != "#"]
        self.at = self.depth = 0
        for i, (word, _) in enumerate(self.tokens):
            if not word.isascii() and word[0] not in "'\"" or word in ("'", '"'):
                self.at = i
                raise RuntimeError(f"expected a valid token but found '{word}' here:\n{self.here()}")

    def seen(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def kind(self) -> str:
        word = self.seen()
        if not word:
            return "eof"
        if word[0] in "'\"":
            return "string_literal"
        if word[0].isdigit():
            return "number"
        if word[0].isalpha() or word[0] == "_":
            return word if word in ("None", "True", "False") else "ident"
        return {"->": "arrow", "**": "pow operator"}.get(word, word)

    def here(self) -> str:
        if self.at >= len(self.tokens):
            return self.text
        word, place = self.tokens[self.at]
        return f"{self.text}\n{' ' * place}{'~' * len(word)} <--- HERE\n"

    def expect(self, kind: str) -> str:
        if self.kind() != kind:
            raise RuntimeError(f"expected {kind} but found '{self.kind()}' here:\n{self.here()}")
        self.at += 1
        return self.tokens[self.at - 1][0] if kind != "eof" else ""

    def accept(self, word: str) -> bool:
        if self.seen() != word:
            return False
        self.at += 1
        return True

    def name(self) -> None:
        self.expect("ident")
        if self.accept(":"):
            self.expect(":")
            self.expect("ident")
        if self.accept(".") and self.expect("ident") == "default":
            raise RuntimeError("default is not a legal overload name for aten operators")

    def schema(self) -> None:
        self.name()
        if self.seen() != "(":
            self.expect("eof")
            raise RuntimeError("Tried to parse a function schema but only the operator name was given")
        defaults, varying = self.several(named=True)
        if defaults and varying:
            raise RuntimeError(f"\nschemas with vararg (...) can't have default value args:\n{self.here()}")
        self.expect("arrow")
        if self.accept("..."):
            return
        if self.seen() == "(":
            self.several(named=False)
        else:
            self.type()

    def several(self, named: bool) -> tuple[bool, bool]:
        """Arguments or results in parentheses: whether any has a default, and whether there may be more."""
        self.expect("(")
        if self.accept(")"):
            return False, False
        defaults = by_name = varying = False
        while True:
            if self.accept("..."):
                varying = True
                if self.seen() != ")":
                    self.at -= 1
                    raise RuntimeError(f"\n... must be the last element of the argument list:\n{self.here()}")
            elif named and self.accept("*"):
                by_name = True
            else:
                place = self.at
                has_default = self.argument(named)
                if defaults and not has_default and not by_name:
                    self.at = place
                    raise RuntimeError(f"\nnon-default positional argument follows default argument:\n{self.here()}")
                defaults = defaults or has_default
            if not self.accept(","):
                break
        self.expect(")")
        return defaults, varying

    def argument(self, named: bool) -> bool:
        """Whether it has a default."""
        kind, is_list, size = self.type()
        if named or self.kind() == "ident":
            self.expect("ident")
        if not self.accept("="):
            return False
        self.default(kind, is_list, size)
        return True

    def type(self) -> tuple[str, bool, int]:
        """The base, whether it is a list, and of which length."""
        if self.depth == _DEEPEST:
            raise RuntimeError(f"types are nested more than {_DEEPEST} deep here:\n{self.here()}")
        self.depth += 1
        try:
            return self.nested_type()
        finally:
            self.depth -= 1

    def nested_type(self) -> tuple[str, bool, int]:
        if self.seen() == "(":
            self.several(named=False)
            return "", *self.suffixes()
        if self.kind() == "ident" and self.seen() not in _TYPES:
            raise RuntimeError(f"{_UNKNOWN}\n{self.here()}")
        base = self.expect("ident" if self.kind() != "None" else "None")
        if base in ("Dict", "Future") and self.accept("("):
            self.type()
            if self.accept(","):
                self.type()
            self.expect(")")
        else:
            self.alias()
        return base, *self.suffixes()

    def suffixes(self) -> tuple[bool, int]:
        """`[]`, `[2]` and `?` behind a type: whether the whole is a list, and of which length."""
        is_list, size = False, 0
        while self.seen() in ("[", "?"):
            if self.accept("?"):
                continue
            self.expect("[")
            is_list, size = True, 0
            if not self.accept("]"):
                size = self.number()
                self.expect("]")
            self.alias()
        return is_list, size

    def alias(self) -> None:
        """`(a!)`, `(a|b)`, `(a! -> b)`, `(*)`: what a value shares memory with."""
        if not self.accept("("):
            return
        self.sets()
        self.accept("!")
        if self.accept("->"):
            self.sets()
        self.expect(")")

    def sets(self) -> None:
        while True:
            if not self.accept("*"):
                self.expect("ident")
            if not self.accept("|"):
                return

    def number(self) -> int:
        place = self.at
        word = self.expect("number")
        if int(word[:30]) > _LONG_MAX if word.isdigit() else isinf(float(word)):
            self.at = place
            raise RuntimeError(f"\ninvalid numeric default value:\n{self.here()}")
        return int(word) if word.isdigit() else 0

    def default(self, base: str, is_list: bool, size: int) -> None:
        if is_list and (self.seen() == "[" or not size) and self.kind() != "None":
            self.expect("[")
            if self.accept("]"):
                return
            while True:
                self.constant()
                if not self.accept(","):
                    break
            self.expect("]")
        elif base in ("Tensor", "Generator"):
            self.expect("None")
        else:
            self.constant()

    def constant(self) -> None:
        """One number, string or word."""
        if self.kind() in ("string_literal", "None", "True", "False"):
            self.at += 1
        elif self.kind() == "ident":
            if self.seen() not in _WORDS:
                raise RuntimeError(f"\ninvalid numeric default value:\n{self.here()}")
            self.at += 1
        else:
            self.accept("-")
            self.number()
