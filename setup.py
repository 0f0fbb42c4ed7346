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
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "csrc"))

from toolchain import CompileError, Job, compile_all, prefix_header, say, stop  # noqa: E402

PACKAGE = "mindtorch_v2"
COMPILE = os.environ.get("MINDTORCH_COMPILE", "1") != "0"

# The headers that the C files of the compiled modules begin with.
GROUP = f"{PACKAGE}._core"
GROUP_HEADERS = ("__native__core.h", "__native_internal__core.h")
GROUP_PREFIX = ROOT / "csrc" / "compiled" / "prefix.h"
TRANSLATED = Path("build", f"mypyc-{sys.implementation.cache_tag}")

# Modules compiled by mypyc, in one group: calls between them are direct C calls.
COMPILED = (
    "_sizes.py",
    "_numbers.py",
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
    "_autograd/forward.py",
    "_autograd/gradients.py",
    "_batching/level.py",
    "_batching/steps.py",
    "_batching/kernel.py",
    "_batching/kinds.py",
    "_batching/contract.py",
    "_batching/usual.py",
    "_indexing.py",
    "_creation.py",
    "_from_data.py",
    "_nested.py",
    "_ops/rules/*.py",
    "_ops/composites/*.py",
    "_backends/common/*.py",
    "_backends/cpu/kernels/*.py",
    "_backends/cpu/numpy_view.py",
    "_backends/cpu/ops/*.py",
    "_backends/npu/allocator.py",
    "_backends/npu/attention.py",
    "_backends/npu/creation.py",
    "_backends/npu/device_runtime.py",
    "_backends/npu/errors.py",
    "_backends/npu/helpers.py",
    "_backends/npu/kernels.py",
    "_backends/npu/launch.py",
    "_backends/npu/lists.py",
    "_backends/npu/memory.py",
    "_backends/npu/memory_stats.py",
    "_backends/npu/passes.py",
    "_backends/npu/runtime.py",
    "_backends/npu/table.py",
)
# Of these, compiled for size: what runs once, when something fails, or beside work that is far longer, and transforms.
SMALL = (
    "_autograd/forward.py",
    "_backends/common/functionalize.py",
    "_backends/common/gamma_slopes.py",
    "_backends/common/pinning.py",
    "_backends/cpu/kernels/conv_last.py",
    "_backends/cpu/kernels/fft.py",
    "_backends/cpu/kernels/linalg.py",
    "_backends/cpu/kernels/optimizers.py",
    "_backends/cpu/ops/activation_lazy.py",
    "_backends/cpu/ops/ctc.py",
    "_backends/cpu/ops/discrete_random.py",
    "_backends/cpu/ops/distance.py",
    "_backends/cpu/ops/embedding_bag.py",
    "_backends/cpu/ops/fractional.py",
    "_backends/cpu/ops/gamma_random.py",
    "_backends/cpu/ops/hashes.py",
    "_backends/cpu/ops/householder.py",
    "_backends/cpu/ops/index_lazy.py",
    "_backends/cpu/ops/optimizers.py",
    "_backends/cpu/ops/recurrent.py",
    "_backends/cpu/ops/resample.py",
    "_backends/cpu/ops/search.py",
    "_backends/cpu/ops/sort.py",
    "_backends/cpu/ops/special.py",
    "_backends/cpu/ops/vision.py",
    "_backends/npu/attention.py",
    "_backends/npu/errors.py",
    "_backends/npu/memory_stats.py",
    "_backends/npu/passes.py",
    "_batching/contract.py",
    "_batching/kernel.py",
    "_batching/kinds.py",
    "_batching/level.py",
    "_batching/steps.py",
    "_batching/usual.py",
    "_dispatch/schema.py",
    "_nested.py",
    "_ops/composites/fft.py",
)

# What nearly every file of the native module begins with.
NATIVE_PREFIX = ("<algorithm>", "<vector>", '"cpu.h"')
CXX_FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-pthread"]
# -g0, as mypyc's own flags: many Pythons ask for debug information, which doubles the time of a build.
CXX_FLAGS += ["-fvisibility=hidden", "-g0", "-Wall"]
# Functions that take or return vectors are always inlined: how calls would pass them does not matter.
CXX_FLAGS += ["-Wno-psabi"]
# Native files that are not better for what -O3 adds, further copies of loops: a third of their code. What else
# it does, unrolling of short loops and inlining of larger functions, they keep. Measured: `grid`, `reduce`, `scan`
# and `window` are slower so, the others hardly smaller.
LEANER = frozenset("bags channel_norm grid_backward index index_advanced nn norm".split())
# Of GCC's; Clang's -O3 makes no such copies.
LEANER_FLAGS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops"]
LEANER_FLAGS += ["--param=max-inline-insns-single=200", "--param=max-inline-insns-auto=30"]
LEANER_FLAGS += ["--param=inline-min-speedup=15"]
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
# Functions of the group call each other directly, and may be inlined, only if nobody can replace them. Python's are
# called through its table of addresses, without a stub between: with it, -O2 and many files run as quickly as -O3 and
# one, in two thirds of the time to compile.
# Nothing is thrown through C, so nothing has to be told how to unwind it: a fifth of a megabyte of the wheel.
GROUP_FLAGS = ["-fvisibility=hidden", "-fno-semantic-interposition", "-fno-asynchronous-unwind-tables"]
# Names that only a debugger reads are left out: half a megabyte of the wheel.
LINK_FLAGS: list[str] = []
if sys.platform.startswith("linux"):
    GROUP_FLAGS += ["-fno-plt"]
    LINK_FLAGS += [] if SANITIZE else ["-Wl,--strip-all"]


def build_emulator(folder: Path, packed: bool) -> None:
    """The Ascend emulator's home, beside the package's modules: its libraries are loaded with ctypes, not imported.
    `packed`: as a wheel has it."""
    if not sys.platform.startswith("linux"):
        return  # the vendor's libraries exist for Linux only
    from ascend_emulator.build import Builder

    Builder((folder / "_emulator" / "lib64").resolve(), None, packed).run()


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
        extra_link_args=["-pthread", *LINK_FLAGS, *SANITIZER_FLAGS],
        language="c++",
    )


def compiled_modules() -> Extension:
    """Type-checks and translates COMPILED to C; ends the build with mypy's messages when a module is not clean. Of what
    mypyc makes the library that holds them all is enough: `_compiled.py` finds them there, without a library for each
    that leads to it."""
    from mypyc.build import mypycify

    folder = Path("src", PACKAGE)
    paths = [str(p) for name in COMPILED for p in sorted(folder.glob(name)) if p.name != "__init__.py"]
    extensions: list[Extension] = mypycify(
        ["--config-file=pyproject.toml", "--follow-imports=silent", *paths],
        group_name=GROUP,
        target_dir=str(TRANSLATED),
        opt_level="2",
        debug_level="0",
        multi_file=True,
    )
    library = next(extension for extension in extensions if len(extension.sources) > 1)
    library.extra_compile_args = [*library.extra_compile_args, *GROUP_FLAGS]
    library.extra_link_args = [*library.extra_link_args, *LINK_FLAGS]
    library.include_dirs = [*library.include_dirs, str(TRANSLATED / PACKAGE)]  # where mypyc puts the headers
    say(f"compiled modules: {len(paths)} translated to C")
    return library


def leaner_flags(compiler: list[str]) -> list[str]:
    """The options of LEANER, after CXX_FLAGS."""
    macros = subprocess.run([*compiler, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True).stdout
    return [] if SANITIZE or "__clang__" in macros else LEANER_FLAGS


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


def c_name(module: str) -> str:
    """What mypyc calls the C file of a module."""
    return f"__native_{PACKAGE}___{module.removesuffix('.py').replace('/', '___')}.c"


def group_command(command: list[str], header: str) -> list[str]:
    """For C files of the compiled modules, which begin with the same headers."""
    headers = [f'"{each}"' for each in (GROUP_PREFIX.resolve(), *GROUP_HEADERS)]
    prefix = prefix_header(TRANSLATED / header, headers, [*command, "-x", "c-header"])
    return [*command, *(prefix or ["-include", str(GROUP_PREFIX)])]


class Compiler:
    """What setuptools calls to compile an extension's sources: its compilers and options, our pool."""

    def __init__(self, compiler: Any) -> None:
        self.compiler = compiler

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
        _, objects, postargs, preprocessor, todo = self.compiler._setup_compile(
            output_dir, macros, include_dirs, sources, [], extra_postargs
        )
        cxx = sources[0].endswith(".cpp")
        command = [*(self.compiler.compiler_so_cxx if cxx else self.compiler.compiler_so), *preprocessor, *postargs]
        jobs = [(Path(target), Path(source)) for target, (source, _) in todo.items()]
        if cxx:
            prefix = prefix_header(Path(output_dir or "", "prefix.h"), NATIVE_PREFIX, [*command, "-x", "c++-header"])
            # A compiled header goes with the options that it was made with.
            usual, leaner = [*command, *prefix], [*command, *leaner_flags(self.compiler.compiler_so_cxx)]
            made = [Job(*names, [*(leaner if names[1].stem in LEANER else usual), "-c"]) for names in jobs]
            compile_all("native module", made)
        else:
            small = {c_name(name) for name in SMALL} | {GROUP_HEADERS[0].replace(".h", ".c")}
            usual, smaller = group_command(command, "prefix.h"), group_command([*command, "-Os"], "small.h")
            made = [Job(*names, [*(smaller if names[1].name in small else usual), "-c"]) for names in jobs]
            compile_all("compiled modules", made)
        return list(objects)


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
    def run(self) -> None:
        # setuptools builds extensions elsewhere and moves them: while it builds, `inplace` is false.
        self.into_source = bool(self.inplace)
        super().run()
        if not self.into_source and not SANITIZE:
            write_stubs(Path(self.build_lib, PACKAGE))

    def copy_file(self, infile: str, outfile: str, *args: Any, **options: Any) -> Any:
        # A new file, not new contents: a process that runs with the old one has it mapped.
        Path(outfile).unlink(missing_ok=True)
        return super().copy_file(infile, outfile, *args, **options)

    def build_extensions(self) -> None:
        """The emulator and the native module are compiled while mypyc translates, and then what it has made."""
        require_toolchain(self.compiler)
        self.compiler.compile = Compiler(self.compiler).compile
        # As many steps as there are, each of which waits for the one pool of compilers.
        with ThreadPoolExecutor(256) as steps:
            try:
                running: list[Future[None]] = [steps.submit(self.build_extension, each) for each in self.extensions]
                package = Path("src" if self.into_source else self.build_lib, PACKAGE)
                running.append(steps.submit(build_emulator, package, not self.into_source))
                if COMPILE and not self.into_source:
                    native = self.extensions
                    self.distribution.ext_modules = [compiled_modules()]
                    self.swig_opts = None  # a list by now, and read as text
                    self.finalize_options()
                    running += [steps.submit(self.build_extension, each) for each in self.extensions]
                    self.distribution.ext_modules = self.extensions = [*native, *self.extensions]
                for step in as_completed(running):
                    step.result()
            except CompileError as error:
                stop()
                sys.exit(f"\nerror: {error}")
            except BaseException:
                stop()
                raise


os.chdir(ROOT)
setup(
    # The compiled modules join when BuildExt runs.
    ext_modules=[native_module()],
    cmdclass={"build": Build, "build_ext": BuildExt},
)
