"""Agents that a program starts: functions in processes, what they return, and how they fail; as PyTorch's do."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from .._subject import SUBJECT_NAME
from . import _launched


def config(**settings: Any) -> Any:
    api: Any = importlib.import_module(f"{SUBJECT_NAME}.distributed.launcher.api")
    usual = {"min_nodes": 1, "max_nodes": 1, "nproc_per_node": 2, "run_id": "job", "monitor_interval": 0.05}
    return api.LaunchConfig(**{**usual, "rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", **settings})


def launched(function: Any, *arguments: Any, **settings: Any) -> Any:
    api: Any = importlib.import_module(f"{SUBJECT_NAME}.distributed.launcher.api")
    return api.elastic_launch(config(**settings), function)(*arguments)


def test_what_functions_return_comes_back_by_rank() -> None:
    found = launched(_launched.summed, SUBJECT_NAME, 2.0, role="worker")
    assert found == {rank: (5.0, [str(rank), str(rank), "2", "worker", "0", "job"]) for rank in range(2)}


def test_functions_are_started_again(tmp_path: Path) -> None:
    assert launched(_launched.fails_at_first, SUBJECT_NAME, str(tmp_path), max_restarts=1) == {0: "1", 1: "1"}


def test_what_a_function_raised_is_told() -> None:
    errors: Any = importlib.import_module(f"{SUBJECT_NAME}.distributed.elastic.multiprocessing.errors")
    with pytest.raises(errors.ChildFailedError, match="again and again") as told:
        launched(_launched.fails, SUBJECT_NAME, max_restarts=0)
    assert sorted(told.value.failures) in ([0], [1], [0, 1])


def test_commands(tmp_path: Path) -> None:
    told = launched("touch", str(tmp_path / "made"), nproc_per_node=1)
    assert (tmp_path / "made").exists() and told == {0: None}


def test_output_is_kept(tmp_path: Path) -> None:
    many: Any = importlib.import_module(f"{SUBJECT_NAME}.distributed.elastic.multiprocessing")
    logs = many.DefaultLogsSpecs(log_dir=str(tmp_path), redirects=many.Std.from_str("0:1,1:0"))
    launched("echo", "hello", logs_specs=logs)
    kept = [(path.parts[-3:-1], path.read_text()) for path in tmp_path.rglob("stdout.log")]
    assert kept == [(("attempt_0", "0"), "hello\n")]


WRONG = [
    {"rdzv_backend": "none"},
    {"rdzv_backend": "static", "rdzv_endpoint": ""},
    {"rdzv_backend": "static", "rdzv_endpoint": "localhost"},
    {"shutdown_timeout": -1},
]


@pytest.mark.parametrize("settings", WRONG)
def test_wrong_settings(settings: Any) -> None:
    with pytest.raises(ValueError):
        launched("true", **settings)


@pytest.mark.parametrize("text", ["0", "3", "0:3,1:0"])
def test_streams_of_workers(text: str) -> None:
    many: Any = importlib.import_module(f"{SUBJECT_NAME}.distributed.elastic.multiprocessing.api")
    assert many.to_map(many.Std.from_str(text), 2) == (
        {0: many.Std.ALL, 1: many.Std.NONE} if ":" in text else dict.fromkeys(range(2), many.Std(int(text)))
    )
    with pytest.raises(ValueError, match="does not match"):
        many.Std.from_str(text + "x")
