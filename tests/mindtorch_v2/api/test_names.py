"""Names of the top level, of Tensor and of storages that are no rows, one expression at a time, against PyTorch: values
and dtypes, or the exception and its text.

Invariant: every line of a table means the same in both libraries; a line that cannot is not here.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import subject as torch
from . import _lines

TABLES: dict[str, list[str]] = {name: table for name, table in vars(_lines).items() if isinstance(table, list)}


def pair(library: Any, name: str) -> tuple[Any, Any]:
    """What `old.name` takes."""
    n = library.arange(4.0).view(2, 2)
    base = name.rstrip("_")
    return {"addmv": (n, n[0]), "addr": (n[0], n[1]), "addmm": (n, n)}.get(base, (n[None], n[None]))


class Old:
    """`old.addmm(...)`: the method of a fresh tensor of the right shape."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        n = self.library.ones(2, 2)
        base = name.rstrip("_")
        return getattr({"addmv": n[0], "baddbmm": n[None]}.get(base, n), name)


def space(library: Any, path: str) -> dict[str, Any]:
    return {
        "torch": library,
        "m": library.arange(12.0).view(3, 4),
        "v": library.ones(3),
        "k": library.arange(3),
        "n": library.arange(4.0).view(2, 2),
        "old": Old(library),
        "pair": pair,
        "g": library.ones(3, requires_grad=True),
        "path": path,
        "pickle": pickle,
        "copy": copy,
        "importlib": importlib,
    }


def told(library: Any, line: str, path: str) -> Any:
    """The value in plain terms, or type and text of the exception."""
    Path(path).write_bytes(bytes(range(48, 64)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = plain(eval(line, space(library, path)))
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
    return clean(got)


def clean(value: Any) -> Any:
    if isinstance(value, list):
        return [clean(v) for v in value]
    if isinstance(value, dict):
        return {k: clean(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(clean(v) for v in value)
    if not isinstance(value, str):
        return value
    text = value.replace("mindtorch_v2", "torch")
    text = re.sub(r",? but expected one of:.*", "", text, flags=re.DOTALL)
    return re.sub(r"Expected one of [\w, ]+ device type", "Expected one of <devices> device type", text)


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(mine) == len(theirs) and all(close(a, b) for a, b in zip(mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, float):
        return mine == pytest.approx(theirs, rel=3e-6, abs=1e-6, nan_ok=True)
    return bool(mine == theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("table", TABLES)
def test_lines_are_the_oracles(table: str, tmp_path: Path) -> None:
    oracle = _oracle.load()
    wrong = []
    for line in TABLES[table]:
        mine, theirs = (told(library, line, str(tmp_path / "file")) for library in (torch, oracle))
        if not close(mine, theirs):
            wrong.append(f"{line}\n  mine   {mine}\n  theirs {theirs}")
    assert not wrong, "\n".join(wrong)


def test_windows_are_symmetric() -> None:
    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
        window = getattr(torch, f"{name}_window")(9, False, dtype=torch.float64)
        assert torch.allclose(window, window.flip(0))
        assert window.max().item() == pytest.approx(1)
        longer = getattr(torch, f"{name}_window")(8, True, dtype=torch.float64)
        assert torch.equal(longer, window[:-1])


def test_range_holds_its_end() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_a_shared_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "made"
    mapped = torch.from_file(str(path), True, 4, dtype=torch.int32)
    mapped.copy_(torch.arange(4))
    assert path.read_bytes() == b"".join(i.to_bytes(4, "little") for i in range(4))
    alone = torch.from_file(str(path), False, 4, dtype=torch.int32)
    alone.fill_(7)
    assert mapped.tolist() == [0, 1, 2, 3]


def test_elements_are_mapped_by_a_function() -> None:
    t = torch.arange(6.0).view(2, 3).t()
    assert t.map_(torch.ones(1, 2), lambda x, y: 2 * x + y) is t
    assert t.tolist() == [[1, 7], [3, 9], [5, 11]]


def test_a_storage_class_asks_for_the_dtype() -> None:
    storage = torch.ones(2, dtype=torch.int16).storage()
    assert isinstance(storage, torch.ShortStorage)
    assert not isinstance(storage, torch.FloatStorage)
    assert type(torch.ShortStorage(2)) is type(storage)
