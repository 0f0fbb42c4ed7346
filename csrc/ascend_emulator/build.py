"""Builds the emulator's libraries into a folder: `python csrc/ascend_emulator/build.py [--out DIR] [--sanitize NAME]`.

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from generate import LIBRARIES, generate  # noqa: E402

CORE = "ascend_emulator"
# Integer arithmetic wraps, as on the device.
FLAGS = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fwrapv", "-fvisibility=hidden", "-Wall", "-pthread"]
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"],
    "thread": ["-fsanitize=thread", "-fno-omit-frame-pointer"],
}


class Builder:
    def __init__(self, out: Path, sanitize: str | None) -> None:
        self.out = out
        self.extra = SANITIZERS[sanitize] if sanitize else []
        self.objects = ROOT / "build" / f"emulator{'-' + sanitize if sanitize else ''}"
        self.generated = self.objects / "generated"
        self.compiler = shlex.split(os.environ.get("CXX", "g++"))
        self.headers = max((h.stat().st_mtime_ns for h in HERE.rglob("*.h")), default=0)
        self.pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))

    def compile(self, sources: list[Path]) -> list[str]:
        def one(source: Path) -> str:
            target = self.objects / (f"{source.parent.name}_{source.stem}.o")
            newest = max(source.stat().st_mtime_ns, self.headers)
            if not target.exists() or target.stat().st_mtime_ns < newest:
                self.call(["-I", str(HERE), *FLAGS, *self.extra, "-c", str(source), "-o", str(target)])
            return str(target)

        return list(self.pool.map(one, sources))

    def link(self, name: str, objects: list[str], needs: list[str]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        target = self.out / f"lib{name}.so"
        fresh = target.with_suffix(".new")
        libraries = [f"-l{need}" for need in needs]
        strict = [] if self.extra else ["-Wl,-z,defs"]  # sanitizers leave symbols to the program
        self.call(
            [
                "-shared",
                *self.extra,
                "-pthread",
                *objects,
                "-o",
                str(fresh),
                f"-Wl,-soname,lib{name}.so",
                f"-L{self.out}",
                "-Wl,--no-as-needed",
                *libraries,
                *strict,
                "-Wl,-rpath,$ORIGIN",
            ]
        )
        os.replace(fresh, target)  # a new file: a process that runs with the old one has it mapped

    def call(self, arguments: list[str]) -> None:
        done = subprocess.run([*self.compiler, *arguments])
        if done.returncode:
            raise SystemExit(f"the emulator did not build: {self.compiler[0]} failed")

    def run(self) -> None:
        self.objects.mkdir(parents=True, exist_ok=True)
        with open(self.objects / ".lock", "w") as lock:  # two builds at once would write the same objects
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.build()

    def build(self) -> None:
        generate(self.generated)
        core = [
            *sorted((HERE / "core").glob("*.cpp")),
            HERE / "objects" / "objects.cpp",
            *sorted((HERE / "aclnn").glob("*.cpp")),
            self.generated / "functions.cpp",
        ]
        runtime = sorted((HERE / "runtime").glob("*.cpp"))
        exports = [self.generated / f"{name}.cpp" for name in LIBRARIES]
        objects = self.compile([*core, *runtime, HERE / "objects" / "exports.cpp", *exports])
        made = iter(objects)
        take = lambda n: [next(made) for _ in range(n)]  # noqa: E731
        core_objects, runtime_objects = take(len(core)), take(len(runtime))
        nnopbase, export_objects = take(1), take(len(exports))
        self.link(CORE, core_objects, [])
        for name in ("acl_rt", "ascendcl"):
            self.link(name, runtime_objects, [CORE])
        self.link("nnopbase", nnopbase, [CORE])  # no runtime library: each layout has its own name for it
        for library, one in zip(LIBRARIES, export_objects):
            self.link(library.removeprefix("lib"), [one], ["nnopbase", CORE])


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the Ascend emulator's libraries.")
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "mindtorch_v2" / "_lib")
    parser.add_argument("--sanitize", choices=sorted(SANITIZERS))
    options = parser.parse_args()
    Builder(options.out.resolve(), options.sanitize).run()


if __name__ == "__main__":
    main()
