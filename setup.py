"""Builds the native module, the compiled core and the shared libraries of the package.

Invariant: the source tree never holds a compiled twin of a Python module. In-place builds (`build_ext --inplace`,
`pip install -e .`) make the native module only, so `src/` always runs what is written there; the mypyc-compiled
modules exist only in an installed package. `MINDTORCH_COMPILE=0` leaves them out of that as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
PACKAGE = "mindtorch_v2"
COMPILE = os.environ.get("MINDTORCH_COMPILE", "1") != "0"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# Modules compiled by mypyc, in one group: calls between them are direct C calls.
COMPILED = (
    "_sizes.py",
    "_dtype.py",
    "_device.py",
    "_promotion.py",
    "_strides.py",
    "_core_operators.py",
    "_tensor_base.py",
    "_dispatch/keys.py",
    "_dispatch/state.py",
    "_dispatch/schema.py",
    "_dispatch/op.py",
    "_dispatch/binding.py",
    "_autograd/version_counter.py",
    "_autograd/node.py",
    "_autograd/saved.py",
    "_autograd/record.py",
    "_autograd/inplace.py",
    "_autograd/function_node.py",
    "_autograd/engine.py",
    "_autograd/gradients.py",
    "_indexing.py",
    "_creation.py",
    "_from_data.py",
    "_nested.py",
    "_ops/rules/*.py",
    "_ops/composites/*.py",
    "_backends/common/*.py",
    "_backends/cpu/kernels/*.py",
    "_backends/npu/allocator.py",
    "_backends/npu/creation.py",
    "_backends/npu/device_runtime.py",
    "_backends/npu/errors.py",
    "_backends/npu/kernels.py",
    "_backends/npu/launch.py",
    "_backends/npu/memory.py",
    "_backends/npu/memory_stats.py",
    "_backends/npu/runtime.py",
    "_backends/npu/table.py",
)

CXX_FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-pthread"]
CXX_FLAGS += ["-fvisibility=hidden", "-g0", "-Wall"]
# MINDTORCH_SANITIZE=address (with UBSan) or thread: the native module only (`make test-sanitized`).
SANITIZE = os.environ.get("MINDTORCH_SANITIZE", "")
SANITIZER_FLAGS = {
    "": [],
    # Memory that users bring may begin anywhere, which x86 and Arm allow.
    "address": ["-fsanitize=address,undefined", "-fno-sanitize=alignment", "-fno-sanitize-recover=undefined"],
    "thread": ["-fsanitize=thread"],
}[SANITIZE]
if SANITIZE:
    CXX_FLAGS += [*SANITIZER_FLAGS, "-O1", "-g1", "-fno-omit-frame-pointer"]


def build_emulator(folder: Path) -> None:
    """The Ascend emulator's libraries, beside the package's modules: loaded with ctypes, not imported."""
    if not sys.platform.startswith("linux"):
        return  # the vendor's libraries exist for Linux only
    subprocess.run([sys.executable, "csrc/ascend_emulator/build.py", "--out", str(folder / "_lib")], check=True)


def write_stubs(folder: Path) -> None:
    """What editors and type checkers know of operators: asked of the package that was just built."""
    environment = {**os.environ, "PYTHONPATH": str(folder.parent.resolve())}
    subprocess.run([sys.executable, "-m", f"{PACKAGE}._api.stubs", str(folder)], check=True, env=environment)


def native_module() -> Extension:
    kernels = Path("csrc/kernels")
    return Extension(
        f"{PACKAGE}._native",
        sources=sorted(map(str, kernels.rglob("*.cpp"))),
        depends=["setup.py", *sorted(map(str, kernels.rglob("*.h")))],
        include_dirs=[str(kernels)],
        extra_compile_args=CXX_FLAGS,
        extra_link_args=["-pthread", *SANITIZER_FLAGS],
        language="c++",
    )


def compiled_modules() -> list[Extension]:
    """Type-checks and translates COMPILED to C; ends the build with mypy's messages when a module is not clean."""
    from mypyc.build import mypycify

    folder = Path("src", PACKAGE)
    paths = [str(p) for name in COMPILED for p in sorted(folder.glob(name)) if p.name != "__init__.py"]
    extensions: list[Extension] = mypycify(
        ["--config-file=pyproject.toml", "--follow-imports=silent", *paths],
        group_name=f"{PACKAGE}._core",
        target_dir="build/mypyc",
        opt_level="3",
        debug_level="0",
    )
    for extension in extensions:
        # Functions of the group call each other directly, and may be inlined, only if nobody can replace them.
        extension.extra_compile_args = [
            *extension.extra_compile_args,
            "-fvisibility=hidden",
            "-fno-semantic-interposition",
        ]
    return extensions


def require_toolchain(compiler: Any) -> None:
    """A missing compiler or header is the commonest failed build, so it is named before anything is run."""
    for command in (compiler.compiler_so[0], compiler.compiler_so_cxx[0]):
        if shutil.which(command) is None:
            sys.exit(
                f"\nerror: {PACKAGE} needs a C++17 compiler to build, and '{command}' was not found. Install one:\n"
                "  Debian, Ubuntu   apt install g++\n"
                "  Fedora, RHEL     dnf install gcc-c++\n"
                "  openEuler        dnf install gcc-c++\n"
                "  Alpine           apk add g++\n"
                "  macOS            xcode-select --install\n"
                "  conda            conda install -c conda-forge cxx-compiler\n"
                "or name an installed one in the environment variables CC and CXX.\n"
            )
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        sys.exit(
            f"\nerror: {PACKAGE} needs the C headers of Python {version}, and {header} does not exist. Install them:\n"
            f"  Debian, Ubuntu   apt install python{version}-dev\n"
            "  Fedora, RHEL     dnf install python3-devel\n"
        )


class ParallelCompiler:
    """Compiles the sources of all extensions in one pool and skips objects that are newer than what they come from."""

    def __init__(self, compiler: Any) -> None:
        self.compiler = compiler
        self.pool = ThreadPoolExecutor(CORES)

    def compile(
        self,
        sources: list[str],
        output_dir: str | None = None,
        macros: list[Any] | None = None,
        include_dirs: list[str] | None = None,
        debug: bool = False,
        extra_preargs: list[str] | None = None,
        extra_postargs: list[str] | None = None,
        depends: list[str] | None = None,
    ) -> list[str]:
        macros, objects, postargs, preprocessor, todo = self.compiler._setup_compile(
            output_dir, macros, include_dirs, sources, depends, extra_postargs
        )
        arguments = self.compiler._get_cc_args(preprocessor, debug, extra_preargs)

        def one(item: tuple[str, tuple[str, str]]) -> None:
            target, (source, suffix) = item
            if not up_to_date(target, [source, *(depends or [])]):
                self.compiler._compile(target, source, suffix, arguments, postargs, preprocessor)

        list(self.pool.map(one, todo.items()))
        return list(objects)


def up_to_date(target: str, sources: list[str]) -> bool:
    try:
        made = os.stat(target).st_mtime_ns
        return all(os.stat(source).st_mtime_ns < made for source in sources)
    except FileNotFoundError:
        return False


class Build(build):
    """Starts from an empty output tree: a module deleted from the sources must not be installed again."""

    def finalize_options(self) -> None:
        if not COMPILE and self.build_lib is None:
            self.build_lib = "build/uncompiled"
        super().finalize_options()

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildExt(build_ext):
    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = CORES

    def run(self) -> None:
        if not self.inplace and COMPILE:
            # Here and not earlier: options are also finalised when only the package's metadata is asked for.
            self.distribution.ext_modules = [native_module(), *compiled_modules()]
            self.reinitialize_command(self)
            self.ensure_finalized()
        super().run()
        build_emulator(Path("src" if self.inplace else self.build_lib, PACKAGE))
        if not self.inplace and not SANITIZE:
            write_stubs(Path(self.build_lib, PACKAGE))

    def copy_file(self, infile: str, outfile: str, *args: Any, **options: Any) -> Any:
        # A new file, not new contents: a process that runs with the old one has it mapped.
        Path(outfile).unlink(missing_ok=True)
        return super().copy_file(infile, outfile, *args, **options)

    def build_extensions(self) -> None:
        require_toolchain(self.compiler)
        self.compiler.compile = ParallelCompiler(self.compiler).compile
        super().build_extensions()


os.chdir(ROOT)
setup(
    # The compiled modules join when BuildExt runs.
    ext_modules=[native_module()],
    cmdclass={"build": Build, "build_ext": BuildExt},
)
