"""Checkpoints of many ranks: saved on n, loaded on m, and exchanged with PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .._subject import SUBJECT_NAME
from .._subject import subject as torch
from . import _sharded
from ._ranks import Ranks


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks(SUBJECT_NAME, 2)
    yield made
    made.close()


def alone(name: str, path: str) -> Any:
    with pytest.warns(UserWarning, match="single process"):
        return getattr(_sharded, name)(torch, None, 0, 1, path, "whole")


@pytest.mark.parametrize("how", ["split", "whole", "later"])
def test_two_ranks_save_and_others_load(ranks: Ranks, tmp_path: Path, how: str) -> None:
    path = str(tmp_path / "checkpoint")
    want = ranks.values("_sharded.save_checkpoint", path, how)[0]
    names = sorted(each.name for each in Path(path).iterdir())
    assert names[0] == ".metadata" and all(name.endswith(".distcp") for name in names[1:])
    assert ranks.values("_sharded.load_checkpoint", path, "split") == [want, want]
    assert alone("load_checkpoint", path) == want


def test_one_saves_and_two_load(ranks: Ranks, tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    want = alone("save_checkpoint", path)
    for how in ("split", "whole"):
        assert ranks.values("_sharded.load_checkpoint", path, how) == [want, want]


def test_whole_states(ranks: Ranks) -> None:
    first, second = ranks.values("_sharded.full_states")
    assert first[0] == (len(_sharded.gpt(torch).state_dict()), 2) and second[0] == (0, 0)
    assert first[1][0].startswith("param_groups.") and first[2] and second[2]


def test_all_ranks_raise_what_one_does(ranks: Ranks, tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    ranks.values("_sharded.save_checkpoint", path, "whole")
    told = "RuntimeError: Missing key in checkpoint state_dict: missing."
    assert ranks.values("_sharded.failing", path) == [["[0, 1]" + told, "[1]" + told]] * 2


def test_pytorch_reads_what_was_written_and_writes_what_is_read(ranks: Ranks, oracle: Any, tmp_path: Path) -> None:
    theirs = Ranks("torch", 2)
    path = str(tmp_path / "mine")
    want = ranks.values("_sharded.save_checkpoint", path, "split")[0]
    assert theirs.values("_sharded.load_checkpoint", path, "split") == [want, want]
    path = str(tmp_path / "theirs")
    want = theirs.values("_sharded.save_checkpoint", path, "split")[0]
    assert ranks.values("_sharded.load_checkpoint", path, "split") == [want, want]
    theirs.close()


def test_one_file_and_back(tmp_path: Path) -> None:
    from importlib import import_module

    formats: Any = import_module(f"{SUBJECT_NAME}.distributed.checkpoint.format_utils")
    state = {"a": torch.arange(6.0).reshape(2, 3), "b": {"c": torch.ones(2, dtype=torch.int64), "n": 3}}
    torch.save(state, tmp_path / "first.pt")
    with pytest.warns(UserWarning, match="single process"):
        formats.torch_save_to_dcp(tmp_path / "first.pt", tmp_path / "checkpoint")
        formats.dcp_to_torch_save(tmp_path / "checkpoint", tmp_path / "second.pt")
    found = torch.load(tmp_path / "second.pt")
    assert torch.equal(found["a"], state["a"]) and torch.equal(found["b"]["c"], state["b"]["c"])
    assert found["b"]["n"] == 3
