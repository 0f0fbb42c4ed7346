"""What `help()` and editors say about functions that come from rows."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="texts of our own")


def helped(thing: object) -> str:
    return pydoc.render_doc(thing, renderer=vars(pydoc)["plaintext"])


def test_help_of_a_function() -> None:
    assert (
        helped(torch.add).split("\n", 2)[2]
        == """add(input, other, *, alpha=1, out=None)
    add(input, other, *, alpha=1, out=None) -> Tensor

    Adds `other`, multiplied by `alpha`, to each element.

    Args:
        input (Tensor | Number)
        other (Tensor | Number)
        alpha (Number, default 1)
        out (Tensor | None, default None): where the result is written; resized if its shape differs

    Returns: Tensor

    Other forms: Tensor.add, Tensor.add_ (in place), torch.add(..., out=)
    Devices: cpu, meta, npu; the support matrix (make docs) has the dtypes.
""".replace("\n\n", "\n    \n" if sys.version_info < (3, 13) else "\n\n")
    )


def test_help_of_an_inplace_method() -> None:
    text = helped(torch.Tensor.add_)
    assert "add_(other, *, alpha=1) -> Tensor" in text
    assert "In place: Adds `other`" in text and "Returns: `self`, changed in place" in text


def test_help_of_overloads() -> None:
    text = helped(torch.max)
    assert "max(input, dim, keepdim=False, *, out=None) -> (values, indices)" in text
    assert "Returns: Tensor or a named tuple (values, indices)" in text


def test_signatures_are_pytorchs() -> None:
    assert str(inspect.signature(torch.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(torch.ones(2).add)) == "(other, *, alpha=1)"
    assert str(inspect.signature(torch.Tensor.permute)) == "(self, *dims)"
    bound = inspect.signature(torch.add).bind(1, 2, alpha=3)
    assert bound.arguments == {"input": 1, "other": 2, "alpha": 3}


def public_names() -> list[str]:
    submodule("_api.lazy_tables").load_all()
    rows = submodule("_api.public").by_name()
    names = {name for name, ops in rows.items() if any(op.row.function or op.row.method for op in ops)}
    names |= set(submodule("_api.lazy_tables").NAMESPACES)
    return sorted(name for name in names if not name.startswith("_") and not name.endswith("_"))


def test_every_public_operator_has_a_sentence() -> None:
    sentence = submodule("_api.sentences").sentence
    assert [name for name in public_names() if not sentence(name)] == []


def test_sentences() -> None:
    lines = submodule("_api.sentences").TEXT.strip().split("\n")
    names = [line.partition("  ")[0] for line in lines]
    assert sorted(names) == sorted(set(names))
    for line in lines:
        said = line.partition("  ")[2]
        assert re.fullmatch(r"= \w+|[A-Z`].*\.", said), line
        assert len(line) <= 120, line


def test_help_of_functions_of_a_module() -> None:
    first = torch.linalg.svd.__doc__.splitlines()[0]
    assert first == "linalg.svd(A, full_matrices=True, *, driver=None, out=None) -> (U, S, Vh)"


def test_every_public_operator_has_its_help() -> None:
    for name in public_names():
        for place in (torch, torch.Tensor):
            found = getattr(place, name, None)
            if hasattr(found, "__overloads__"):
                assert "Returns: " in str(found.__doc__) and str(found.__doc__).startswith(f"{name}("), name


def test_importing_the_package_describes_nothing() -> None:
    code = (
        "import sys, mindtorch_v2; print([m for m in sys.modules if m.startswith('mindtorch_v2._ops.') "
        "and m.endswith(('describe', 'sentences'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
