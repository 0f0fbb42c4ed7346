"""Ascend installations made from the emulator's libraries: healthy ones in both layouts, and ways to break them.

Invariant: a home made here is found through the environment only, and is used by a fresh interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mindtorch_v2

LIBRARIES = Path(mindtorch_v2.__file__).parent / "_emulator" / "lib64"
CORE = "libascend_emulator.so"
NEW = (
    "libacl_rt.so",
    "libascendcl.so",
    "libnnopbase.so",
    "libopapi.so",
    "libopapi_math.so",
    "libopapi_nn.so",
    "libopapi_cv.so",
    "libopapi_transformer.so",
)
OLD = ("libascendcl.so", "libnnopbase.so", "libopapi.so", "libaclnn_ops_infer.so", "libaclnn_math.so")


def home(folder: Path, names: tuple[str, ...]) -> Path:
    """A CANN home with these libraries."""
    place = folder / "lib64"
    place.mkdir(parents=True)
    for name in (CORE, *names):
        shutil.copyfile(LIBRARIES / name, place / name)
    return folder


def environment(where: Path | None, **extra: str) -> dict[str, str]:
    """This process's environment without anything of Ascend, with `where` as the home."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "MINDTORCH_NPU", "ACL_"))}
    env.pop("LD_LIBRARY_PATH", None)
    if where is not None:
        env["ASCEND_HOME_PATH"] = str(where)
    env.update(extra)
    return env


def python(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=120)


def said(env: dict[str, str], code: str) -> str:
    """What a program prints; it must succeed."""
    done = python(env, "-c", "import mindtorch_v2 as torch\n" + code)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def rename_symbol(library: Path, name: str) -> None:
    """Take a function away: its name in the library's tables becomes another of the same length."""
    data = library.read_bytes()
    old = b"\0" + name.encode() + b"\0"
    assert old in data, f"{library} has no {name}"
    library.write_bytes(data.replace(old, b"\0" + b"X" * len(name) + b"\0"))


def other_machine(library: Path) -> None:
    """Mark a library as built for aarch64 if this machine is x86_64, and the other way round."""
    data = bytearray(library.read_bytes())
    data[18] = 183 if data[18] == 62 else 62
    library.write_bytes(bytes(data))
