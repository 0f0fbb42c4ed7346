"""A call's hostile arguments one by one, with harmless ones around: what PyTorch says of one argument alone.

Invariant: it refuses the first argument that it looks at. Where that is another one than ours, its answer to the whole
call tells nothing about the words for the one that we refused.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping, Sequence

HARMLESS = re.compile(r"[ab]|torch\.(rand|ones)\(\([\d, ]*\)\)")
MOST = 8  # programs for one call

Sample = tuple[Sequence[str], Mapping[str, str]]


def singled_out(text: str, samples: Sequence[Sample]) -> list[str]:
    """Programs like `text` in which one argument of its call is left as it is. `samples` are calls of the same function
    that PyTorch accepts; without one the others become small tensors and numbers."""
    lines = text.split("\n")
    at = next((at for at, line in enumerate(lines) if line.startswith(("r = ", "m = "))), None)
    if at is None:
        return []
    try:
        tree = ast.parse(lines[at])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    statement = tree.body[0]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return []
    made: list[str] = []
    for name, value in _arguments(statement.value):
        text = ast.unparse(value)
        heads = [
            line if _harmless(line) or line[:1] == text else f"{line[:4]}torch.ones((2, 3))" for line in lines[:at]
        ]
        if not HARMLESS.fullmatch(text) or any(line[:1] == text and not _harmless(line) for line in heads):
            for sample in [*samples[:1], None]:
                call = _with_one(statement.value, name, sample)
                made.append("\n".join([*heads, lines[at][:4] + ast.unparse(call)]))
    return list(dict.fromkeys(made))[:MOST]


def _harmless(line: str) -> bool:
    return HARMLESS.fullmatch(line[4:]) is not None


def _arguments(call: ast.Call) -> list[tuple[int | str, ast.expr]]:
    """Each with its position or name."""
    named = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
    return [*enumerate(call.args), *named]


def _with_one(call: ast.Call, kept: int | str, sample: Sample | None) -> ast.Call:
    made = copy.deepcopy(call)
    for position in range(len(made.args)):
        if position != kept:
            told = sample[0][position] if sample is not None and position < len(sample[0]) else None
            made.args[position] = _parsed(told) if told is not None else _usual(made.args[position])
    given = {keyword.arg: keyword.value for keyword in made.keywords}
    named = {name: _parsed(text) for name, text in sample[1].items()} if sample is not None else {}
    if isinstance(kept, str):
        named[kept] = given[kept]
    made.keywords = [ast.keyword(arg=name, value=value) for name, value in named.items()]
    return made


def _usual(value: ast.expr) -> ast.expr:
    """Something small of the same kind."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return type(value)([_usual(each) for each in value.elts], ast.Load())
    if re.fullmatch(r"-?[\d.e*() -]+", ast.unparse(value)):
        return _parsed("0.5" if "." in ast.unparse(value) else "1")
    return value if isinstance(value, ast.Constant) else _parsed("torch.ones((2, 3))")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
