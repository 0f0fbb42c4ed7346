"""Compiles C and C++ files to objects: one pool of compilers for the whole build, and nothing compiled twice.

Invariant: an object is made again exactly when its command, or a file that it was made from, has changed. Which files
those are the compiler says itself (-MMD); the command is kept beside the object.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Shared by everything that is compiled: all cores are busy until the last file, and never more than that.
POOL = ThreadPoolExecutor(CORES)
STARTED = time.monotonic()
PREFIX = threading.Lock()  # a header of many extensions is compiled by the first of them


class CompileError(Exception):
    pass


QUIET = 15.0  # seconds, after which a long step says how far it is


class Said:
    """When something was last said."""

    at = STARTED


def say(text: str) -> None:
    """A line for each step, so that nobody thinks that the build hangs."""
    Said.at = time.monotonic()
    print(f"  {Said.at - STARTED:5.0f} s  {text}", flush=True)


@dataclass(frozen=True)
class Job:
    """One file to compile. `command` is all but its names."""

    target: Path
    source: Path
    command: list[str]

    def full(self) -> list[str]:
        return [*self.command, "-MMD", "-MF", f"{self.target}.d", str(self.source), "-o", str(self.target)]

    def beside(self, suffix: str) -> Path:
        return self.target.with_name(self.target.name + suffix)

    def made_from(self) -> list[str]:
        """The files that the object was made from, as its compiler listed them in the words of make, and the compiled
        header, whose own files the compiler does not list again."""
        rule = self.beside(".d").read_text()
        names = rule.replace("\\\n", " ").partition(": ")[2].replace("\\ ", "\0").split()
        compiled = [f"{name}.gch" for option, name in zip(self.command, self.command[1:]) if option == "-include"]
        return [*compiled, *(name.replace("\0", " ") for name in names)]

    def done(self) -> bool:
        try:
            made = self.target.stat().st_mtime_ns
            if self.beside(".command").read_text() != shlex.join(self.full()):
                return False
            return all(os.stat(path).st_mtime_ns <= made for path in self.made_from())
        except FileNotFoundError:
            return False

    def run(self) -> None:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.beside(".command").unlink(missing_ok=True)  # an interrupted compiler's object must not look finished
        command = self.full()
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise CompileError(f"{shlex.join(command)}\n{done.stderr}")
        if done.stderr:
            print(done.stderr, end="", flush=True)
        self.beside(".command").write_text(shlex.join(command))


def prefix_header(header: Path, includes: Iterable[str], command: list[str]) -> list[str]:
    """A header compiled once for many files that begin with the same includes; the option that makes use of it."""
    if Path(command[0]).name == "ccache":
        return []  # it would not keep an object made with a compiled header
    with PREFIX:
        text = "".join(f"#include {name}\n" for name in includes)
        if not header.exists() or header.read_text() != text:
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_text(text)
        job = Job(header.with_name(header.name + ".gch"), header, command)
        if not job.done():
            POOL.submit(job.run).result()
    return ["-include", str(header)]


def stop() -> None:
    """Forgets what has not been begun: something else of the build has failed."""
    POOL.shutdown(wait=False, cancel_futures=True)


def compile_all(name: str, jobs: list[Job]) -> None:
    """Compiles side by side what is not up to date, the largest first: the last to end is then a small one."""
    todo = sorted((job for job in jobs if not job.done()), key=lambda job: -job.source.stat().st_size)
    running = [POOL.submit(job.run) for job in todo]
    try:
        for count, job in enumerate(as_completed(running), 1):
            job.result()
            if name and count < len(todo) and time.monotonic() - Said.at > QUIET:
                say(f"{name}: {count} of {len(todo)} files")
    except BaseException:
        stop()
        raise
    if name:
        say(f"{name}: {len(todo)} of {len(jobs)} files compiled")
