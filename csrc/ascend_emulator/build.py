"""Builds the emulator's libraries into a folder: `python csrc/ascend_emulator/build.py [--out DIR] [--sanitize NAME]`.

A folder called lib64 is part of a home: headers and what else a CANN home has are written around it.

Invariant: all state is in libascend_emulator.so; the libraries with the vendor's names are exports that need it, found
beside them ($ORIGIN).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for folder in (HERE, HERE.parent):
    sys.path.insert(0, str(folder))

from generate import LIBRARIES, generate  # noqa: E402
from headers import write_home  # noqa: E402
from toolchain import CompileError, Job, compile_all, prefix_header  # noqa: E402

CORE = "ascend_emulator"
# Integer arithmetic wraps, as on the device.
FLAGS = ["-std=c++17", "-fPIC", "-fwrapv", "-fvisibility=hidden", "-Wall", "-pthread"]
# What every call goes through is optimised; kernels compile a quarter faster with -Og and run nearly as fast.
# The compiled header has the level of the former: functions in it keep the level they were read with. The exported
# functions only pass their arguments on, and nothing is thrown through them.
HOT, KERNEL = ["-O2"], ["-Og"]
EXPORTS = ["-Os", "-fno-exceptions", "-fno-asynchronous-unwind-tables"]
ENGINE = ("call", "elementwise", "engine")  # of the folder of kernels
# What nearly every file includes, and what takes most of the time that it takes to compile.
PREFIX = [
    *(f"<{name}>" for name in ("algorithm", "cmath", "cstring", "functional", "map", "memory", "mutex", "numeric")),
    *(f"<{name}>" for name in ("set", "string", "vector")),
    f'"{HERE}/aclnn/kernel.h"',
]
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g1"],
    "thread": ["-fsanitize=thread", "-fno-omit-frame-pointer", "-g1"],
}


class Builder:
    def __init__(self, out: Path, sanitize: str | None, packed: bool = False) -> None:
        self.out = out
        self.packed = packed  # the headers of operators as one file
        self.extra = SANITIZERS[sanitize] if sanitize else []
        self.objects = ROOT / "build" / f"emulator{'-' + sanitize if sanitize else ''}"
        self.generated = self.objects / "generated"
        self.compiler = shlex.split(os.environ.get("CXX", "g++"))

    def compile(self, sources: list[Path]) -> dict[Path, str]:
        command = [*self.compiler, "-I", str(HERE), *FLAGS, *self.extra]
        prefix = prefix_header(self.objects / "prefix.h", PREFIX, [*command, *HOT, "-x", "c++-header"])
        hot, kernel = ([*command, *level, *prefix] for level in (HOT, KERNEL))
        exports = [*command, *(HOT if self.extra else EXPORTS)]
        objects = {source: self.objects / f"{source.parent.name}_{source.stem}.o" for source in sources}
        jobs = []
        for source in sources:
            small = source.parent.name == "aclnn" and source.stem not in ENGINE
            how = exports if source.name.startswith("exports_") else kernel if small else hot
            jobs.append(Job(objects[source], source, [*how, "-c"]))
        compile_all("Ascend emulator", jobs)
        return {source: str(target) for source, target in objects.items()}

    def link(self, name: str, objects: list[str], needs: list[str]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        target = self.out / f"lib{name}.so"
        fresh = target.with_suffix(".new")
        # Sanitizers leave symbols to the program, and name functions in their reports.
        strict = [] if self.extra else ["-Wl,-z,defs", "-Wl,--strip-all", "-Wl,--hash-style=gnu"]
        options = ["-shared", *self.extra, "-pthread", *objects, "-o", str(fresh), f"-Wl,-soname,lib{name}.so"]
        libraries = [f"-L{self.out}", "-Wl,--no-as-needed", *(f"-l{need}" for need in needs)]
        done = subprocess.run([*self.compiler, *options, *libraries, *strict, "-Wl,-rpath,$ORIGIN"])
        if done.returncode:
            raise CompileError(f"{self.compiler[0]} could not link lib{name}.so")
        os.replace(fresh, target)  # a new file: a process that runs with the old one has it mapped

    def run(self) -> None:
        self.objects.mkdir(parents=True, exist_ok=True)
        with open(self.objects / ".lock", "w") as lock:  # two builds at once would write the same objects
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.build()

    def build(self) -> None:
        libraries = generate(self.generated)
        core = [
            *sorted((HERE / "core").glob("*.cpp")),
            HERE / "hccl" / "communicator.cpp",
            HERE / "objects" / "objects.cpp",
            *sorted((HERE / "aclnn").glob("*.cpp")),
            self.generated / "functions.cpp",
        ]
        runtime, collectives = sorted((HERE / "runtime").glob("*.cpp")), HERE / "hccl" / "exports.cpp"
        objects, queries = HERE / "objects" / "exports.cpp", HERE / "objects" / "queries.cpp"
        exports = {source for sources in libraries.values() for source in sources}
        made = self.compile([*core, *runtime, collectives, objects, queries, *sorted(exports)])
        self.link(CORE, [made[source] for source in core], [])
        for name in ("acl_rt", "ascendcl"):
            self.link(name, [made[source] for source in runtime], [CORE])
        for name in ("hccl", "hcomm"):  # newer programs link the second too
            self.link(name, [made[collectives]], [CORE])
        self.link("nnopbase", [made[objects]], [CORE])  # no runtime library: each layout has its own name for it
        for library, sources in libraries.items():
            asked = [made[queries]] if "math" in LIBRARIES[library] else []
            self.link(library.removeprefix("lib"), [made[source] for source in sources] + asked, ["nnopbase", CORE])
        if self.out.name == "lib64":
            write_home(self.out.parent, self.packed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the Ascend emulator's libraries.")
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "mindtorch_v2" / "_emulator" / "lib64")
    parser.add_argument("--sanitize", choices=sorted(SANITIZERS))
    options = parser.parse_args()
    try:
        Builder(options.out.resolve(), options.sanitize).run()
    except CompileError as error:
        raise SystemExit(f"the emulator did not build: {error}") from None


if __name__ == "__main__":
    main()
