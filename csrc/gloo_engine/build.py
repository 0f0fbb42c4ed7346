"""Builds the library over Debian's Gloo: `python csrc/gloo_engine/build.py [--out DIR]`; it prints where it is.

Invariant: without the headers nothing is built, and the last line says what to install.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "libmindtorch_gloo.so"
MISSING = "the headers of the Gloo library were not found: apt-get install libgloo-dev"


def found(compiler: list[str]) -> bool:
    """Whether the compiler finds the headers."""
    probe = [*compiler, "-x", "c++", "-std=c++17", "-E", "-o", os.devnull, "-"]
    text = "#include <gloo/rendezvous/context.h>\n"
    return subprocess.run(probe, input=text, text=True, capture_output=True, check=False).returncode == 0


def build(out: Path) -> Path:
    """The library, made anew if its source is younger."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    if not found(compiler):
        raise SystemExit(MISSING)
    source, library = HERE / "gloo_engine.cpp", out / NAME
    if library.exists() and library.stat().st_mtime >= source.stat().st_mtime:
        return library
    out.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++17", "-O2", "-fPIC", "-fwrapv", "-fvisibility=hidden", "-Wall", "-shared", "-pthread"]
    made = out / f"{NAME}.{os.getpid()}"
    subprocess.run([*compiler, *flags, str(source), "-lgloo", "-o", str(made)], check=True)
    made.replace(library)
    return library


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "build" / "gloo")
    print(build(parser.parse_args().out.resolve()))
    sys.exit(0)
