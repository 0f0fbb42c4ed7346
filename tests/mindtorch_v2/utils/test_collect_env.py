"""`torch.utils.collect_env`: every line has an answer, and NPUs are among them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule

collect_env: Any = submodule("utils.collect_env")


@mindtorch_only
def test_the_program_tells_of_npus() -> None:
    environment = {**os.environ, "MINDTORCH_NPU": "emulator"}
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2.utils.collect_env"],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "Collecting environment information..."
    told = dict(line.split(": ", 1) for line in lines if ": " in line)
    assert told["Is NPU available"] == "True" and told["NPU libraries"].startswith("emulator in ")
    assert "Ascend" in told["NPU models"]
    assert told["PyTorch version"] and told["Python version"].endswith("-bit runtime)")
    assert "numpy==" in done.stdout


@pytest.mark.oracle
def test_fields_and_lines_are_pytorchs() -> None:
    _oracle.load()
    import torch.utils.collect_env as theirs

    assert set(theirs.SystemEnv._fields) <= set(collect_env.SystemEnv._fields)
    mine = [line.partition(":")[0] for line in collect_env.env_info_fmt.splitlines()]
    assert [line for line in theirs.env_info_fmt.splitlines() if line.partition(":")[0] not in mine] == []
    for name in ("get_os", "get_gcc_version", "get_clang_version", "get_cmake_version"):
        assert getattr(collect_env, name)(collect_env.run) == getattr(theirs, name)(theirs.run)
    for name in ("get_libc_version", "get_python_platform", "get_platform"):
        assert getattr(collect_env, name)() == getattr(theirs, name)()


def test_programs_that_are_not_there() -> None:
    code, out, _ = collect_env.run(["no-such-program-at-all"])
    assert code != 0 and out == ""
    assert collect_env.run_and_read_all(collect_env.run, ["no-such-program-at-all"]) is None
    assert collect_env.run_and_parse_first_match(collect_env.run, ["echo", "version 3.4"], r"version (.*)") == "3.4"
    assert collect_env.run_and_return_first_line(collect_env.run, "printf 'a\\nb'") == "a"
