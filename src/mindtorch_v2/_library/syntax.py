"""The syntax of schemas that users write, checked before they are read, for complaints that point at the place.

Invariant: what passes is `name(type argument, ...) -> results` with types that PyTorch knows; whether they are
supported here is for `_dispatch/schema` to say.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"->|::|[A-Za-z_]\w*|\d[\w.]*|'[^']*'|\"[^\"]*\"|\S")
_TYPES = frozenset(
    "Tensor SymInt SymBool SymFloat int float bool Scalar str Device ScalarType Layout MemoryFormat Generator Storage "
    "Dimname Stream QScheme complex number Any Dict Future NoneType Module t t1 t2 tVal".split()
)
_UNKNOWN = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full "
    "list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :"
)


def check(text: str) -> None:
    """Raise PyTorch's complaint if this is no schema."""
    _Reader(text).schema()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(m.group(), m.start()) for m in _TOKEN.finditer(text)]
        self.at = 0

    def seen(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def kind(self) -> str:
        word = self.seen()
        if not word:
            return "eof"
        return "ident" if word[0].isalpha() or word[0] == "_" else "arrow" if word == "->" else word

    def here(self) -> str:
        if self.at >= len(self.tokens):
            return self.text
        word, place = self.tokens[self.at]
        return f"{self.text}\n{' ' * place}{'~' * len(word)} <--- HERE\n"

    def expect(self, kind: str) -> None:
        if self.kind() != kind:
            raise RuntimeError(f"expected {kind} but found '{self.kind()}' here:\n{self.here()}")
        self.at += 1

    def accept(self, word: str) -> bool:
        if self.seen() != word:
            return False
        self.at += 1
        return True

    def schema(self) -> None:
        self.expect("ident")
        if self.accept("::"):
            self.expect("ident")
        if self.accept("."):
            self.expect("ident")
        if self.seen() != "(":
            self.expect("eof")
            return
        self.several(named=True)
        self.expect("arrow")
        if self.seen() == "(":
            self.several(named=False)
        else:
            self.type()

    def several(self, named: bool) -> None:
        """Arguments or results in parentheses."""
        self.expect("(")
        if self.accept(")"):
            return
        while True:
            if not (named and self.accept("*")) and not self.accept("..."):
                self.type()
                if named or self.kind() == "ident":
                    self.expect("ident")
                if self.accept("="):
                    self.default()
            if not self.accept(","):
                break
        self.expect(")")

    def type(self) -> None:
        if self.kind() == "ident" and self.seen() not in _TYPES:
            raise RuntimeError(f"{_UNKNOWN}\n{self.here()}")
        self.expect("ident")
        while self.seen() in ("(", "[", "?"):
            # `Tensor(a!)`, `int[2]`, `Tensor?`
            closing = {"(": ")", "[": "]"}.get(self.seen())
            self.at += 1
            while closing is not None and self.seen() and not self.accept(closing):
                self.at += 1

    def default(self) -> None:
        depth = 0
        while self.seen() and (depth or self.seen() not in ",)"):
            depth += (self.seen() in "([") - (self.seen() in ")]")
            self.at += 1
