"""Programs in C and C++ against the emitted headers: they compile, run, and print what NumPy computes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mindtorch_v2._backends.npu.emulator_tool import with_headers

from ._emulator import ROOT, Runtime, folder, isolated
from ._kernels import assert_same
from ._programs import TABLE, translation_unit

HOME = with_headers(folder().parent)
CPP = Path(__file__).parent / "cpp"
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
PER_FILE = 40
EXPECTED_RUNTIME_RESULT = "= a_repeatable_executor_runs_often"

pytestmark = [
    pytest.mark.skipif(not (HOME / "include").is_dir(), reason="a sanitised build has no home"),
    pytest.mark.skipif(not COMPILERS, reason="no C++ compiler"),
]
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND")}


def tool(*arguments: str) -> str:
    command = [sys.executable, "-m", "mindtorch_v2", "emulator", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=CLEAN).stdout.strip()


def build(compiler: str, source: Path, target: Path, *extra: str) -> Path:
    flags = ["-I", str(HOME / "include"), "-I", str(CPP), "-L", str(HOME / "lib64"), f"-Wl,-rpath,{HOME / 'lib64'}"]
    libraries = ["-lopapi", "-lnnopbase", "-lascendcl", "-lhccl", "-lascend_emulator"]
    language = [] if source.suffix == ".c" else ["-std=c++17"]
    command = [compiler, *language, "-O0", "-Wall", "-Werror", *extra, str(source), "-o", str(target), *flags]
    done = subprocess.run([*command, *libraries, "-pthread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return target


def output_of(program: Path, *arguments: str, **environment: str) -> list[str]:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**CLEAN, **environment})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """What every program of the table prints: many are compiled into a few binaries."""
    folder = tmp_path_factory.mktemp("programs")
    chunks = [TABLE[i : i + PER_FILE] for i in range(0, len(TABLE), PER_FILE)]

    def make(i: int) -> list[str]:
        source = folder / f"programs_{i}.cpp"
        source.write_text(translation_unit(chunks[i]))
        # Compilers take turns.
        return output_of(build(COMPILERS[i % len(COMPILERS)], source, folder / f"programs_{i}"))

    with ThreadPoolExecutor(2) as pool:
        lines = [line for part in pool.map(make, range(len(chunks))) for line in part]
    found = (line[2:].split() for line in lines if line.startswith("= "))
    return {words[0]: [float(word) for word in words[1:]] for words in found}


def test_there_are_enough() -> None:
    assert len(TABLE) + CPP.joinpath("runtime.cpp").read_text().count("PROGRAM(") >= 150


@pytest.mark.parametrize("program", TABLE, ids=lambda p: p.name)
def test_program(program, printed) -> None:  # type: ignore[no-untyped-def]
    for name, want in program.want.items():
        got = np.array(printed[f"{program.name}.{name}"]).astype(want.dtype).reshape(want.shape)
        assert_same(got, want, 8)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_programs_about_the_runtime(compiler: str, tmp_path: Path) -> None:
    lines = output_of(build(compiler, CPP / "runtime.cpp", tmp_path / "runtime"))
    assert sum(line.startswith("# ") for line in lines) == CPP.joinpath("runtime.cpp").read_text().count("PROGRAM(")
    (result,) = [line for line in lines if line.startswith(EXPECTED_RUNTIME_RESULT)]
    np.testing.assert_allclose([float(x) for x in result.split()[2:]], np.exp([2, 3]), rtol=1e-6)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_programs_about_capture(compiler: str, tmp_path: Path) -> None:
    program = build(compiler, CPP / "capture.cpp", tmp_path / "capture")
    for environment in ({}, {"ASCEND_EMULATOR_DELAY_SEED": "5"}):
        lines = output_of(program, **environment)
        assert sum(line.startswith("# ") for line in lines) == CPP.joinpath("capture.cpp").read_text().count("PROGRAM(")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_plain_c(compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    program = build(compiler, CPP / "plain.c", tmp_path / "plain", "-std=c11", "-Wno-unused-variable")
    assert output_of(program) == ["= plain 3 6 9"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_ranks(compiler: str, tmp_path: Path) -> None:
    program = build(compiler, CPP / "collective.cpp", tmp_path / "collective", "-Wno-unused-variable")
    assert output_of(program, "threads", ASCEND_EMULATOR_DEVICES="2") == ["= collective"]
    assert output_of(program, "processes") == ["= collective"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_experts(compiler: str, tmp_path: Path) -> None:
    program = build(compiler, CPP / "experts.cpp", tmp_path / "experts")
    assert output_of(program, ASCEND_EMULATOR_DEVICES="4") == ["= experts"]


@pytest.mark.parametrize("language", ["c", "c++"])
def test_every_header_stands_alone(language: str, tmp_path: Path) -> None:
    include = HOME / "include"
    headers = sorted(path.relative_to(include) for path in include.rglob("*.h"))
    headers = [name for name in headers if language == "c++" or name.parent.name != "opdev"]  # classes
    assert len(headers) > 500
    source = tmp_path / f"all.{'c' if language == 'c' else 'cpp'}"
    source.write_text("".join(f'#include "{name}"\n' for name in headers))
    flags = ["-x", language, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-variable", "-I", str(include)]
    for compiler in COMPILERS:
        done = subprocess.run([compiler, *flags, str(source)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    for name in headers[:: len(headers) // 8]:  # each by itself, some of them
        source.write_text(f'#include "{name}"\n')
        subprocess.run([COMPILERS[0], *flags, str(source)], check=True)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_habits(compiler: str, tmp_path: Path) -> None:
    program = tmp_path / "habits"
    flags = [*tool("--cflags").split(), *tool("--libs").split()]
    subprocess.run([compiler, "-std=c++17", str(CPP / "habits.cpp"), "-o", str(program), *flags], check=True)
    lines = output_of(program)
    assert lines == ["= add 3 4.5 6", "= convolution 18", "= products 3 3", "= numbers 0 inf 1"]


def test_many_devices_where_a_number_is_not_given(tmp_path: Path) -> None:
    source, program = tmp_path / "count.cpp", tmp_path / "count"
    source.write_text(
        '#include <cstdio>\n#include "acl/acl.h"\n'
        "int main() { uint32_t n = 0; aclInit(nullptr); aclrtGetDeviceCount(&n); "
        'printf("%u\\n", n); return aclFinalize(); }\n'
    )
    build("g++", source, program)
    assert tool("run", str(program)) == "16"
    assert tool("run", "--devices", "3", str(program)) == "3"
    assert output_of(program) == ["1"]


# -- the three ways to build, and the tool ---------------------------------------------------------------------------
def test_flags_and_run(tmp_path: Path) -> None:
    command = ["gcc", str(CPP / "plain.c"), "-o", str(tmp_path / "plain"), *tool("--cflags").split()]
    subprocess.run([*command, *tool("--libs").split()], check=True)
    assert output_of(tmp_path / "plain") == ["= plain 3 6 9"]
    assert tool("run", str(tmp_path / "plain")) == "= plain 3 6 9"
    ranks = ["g++", "-std=c++17", "-pthread", str(CPP / "collective.cpp"), "-o", str(tmp_path / "ranks")]
    subprocess.run([*ranks, *tool("--cflags").split(), *tool("--libs").split()], check=True)
    assert tool("run", str(tmp_path / "ranks"), "threads") == "= collective"
    faulty = [sys.executable, "-m", "mindtorch_v2", "emulator", "run", "--fault", "aclrtMalloc:1:207001"]
    done = subprocess.run([*faulty, str(tmp_path / "plain")], cwd=ROOT, capture_output=True, text=True, env=CLEAN)
    assert done.returncode == 1 and "aclrtMalloc" in done.stdout and "207001" in done.stdout


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config(tmp_path: Path) -> None:
    found = {**CLEAN, "PKG_CONFIG_PATH": str(HOME / "lib64" / "pkgconfig")}
    asked = ["pkg-config", "--cflags", "--libs", "ascend-emulator"]
    flags = subprocess.run(asked, capture_output=True, text=True, check=True, env=found).stdout.split()
    subprocess.run(["gcc", str(CPP / "plain.c"), "-o", str(tmp_path / "plain"), *flags], check=True)
    assert output_of(tmp_path / "plain") == ["= plain 3 6 9"]


def works(program: str) -> bool:
    return bool(shutil.which(program)) and subprocess.run([program, "--version"], capture_output=True).returncode == 0


@pytest.mark.skipif(not works("cmake"), reason="no CMake")
def test_cmake(tmp_path: Path) -> None:
    shutil.copy(CPP / "plain.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(plain C)\nfind_package(AscendEmulator REQUIRED)\n"
        "add_executable(plain plain.c)\ntarget_link_libraries(plain AscendEmulator::acl)\n"
    )
    subprocess.run(
        ["cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={HOME}/lib64/cmake"], cwd=tmp_path, check=True
    )
    subprocess.run(["cmake", "--build", "out"], cwd=tmp_path, check=True)
    assert output_of(tmp_path / "out" / "plain") == ["= plain 3 6 9"]


def test_a_home_can_be_moved(tmp_path: Path) -> None:
    moved = tmp_path / "cann"
    shutil.copytree(HOME, moved)
    target = tmp_path / "plain"
    link = ["-I", str(moved / "include"), "-L", str(moved / "lib64"), "-lopapi", "-lnnopbase", "-lascendcl"]
    subprocess.run(["gcc", str(CPP / "plain.c"), "-o", str(target), *link], check=True)
    script = f". {moved}/set_env.sh && test $ASCEND_HOME_PATH = {moved} && {target} && echo $ASCEND_EMULATOR_DEVICES"
    for devices, before in (("16", CLEAN), ("2", {**CLEAN, "ASCEND_EMULATOR_DEVICES": "2"})):
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=before)
        assert done.stdout == f"= plain 3 6 9\n{devices}\n", done.stderr
    for path in moved.rglob("*"):
        if path.is_file() and path.suffix != ".so":
            assert str(HOME) not in path.read_text()


def test_what_the_tool_answers() -> None:
    prefix = Path(tool("--prefix"))
    assert (prefix / "lib64" / "libascendcl.so").is_file() and (prefix / "include" / "acl" / "acl.h").is_file()
    exported = dict(line.removeprefix("export ").split("=", 1) for line in tool("--env").splitlines())
    assert exported["ASCEND_HOME_PATH"] == str(prefix)
    assert exported["ASCEND_EMULATOR_DEVICES"] == "16"
    everything, older = tool("functions").splitlines(), tool("functions", "--chip", "910A").splitlines()
    assert "aclnnAdd" in older and set(older) < set(everything)
    assert "aclnnAdd  aclnnop/aclnn_add.h" in tool("functions", "--headers").splitlines()


def test_the_guides_first_program(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "emulator.md").read_text()
    source = tmp_path / "exp.cpp"
    source.write_text(text.split("```cpp\n", 1)[1].split("```", 1)[0])
    lines = output_of(build("g++", source, tmp_path / "exp"))
    np.testing.assert_allclose([float(x) for x in lines], np.exp([0, 1, 2, 3]), rtol=1e-5)


# -- the headers of include/ against what the libraries define -------------------------------------------------------
ENUM = re.compile(r"typedef enum (\w+)")
DECLARED = re.compile(r"^([\w ]+?[ *]+)((?:acl|ascendEmulator)\w+)\(([^;{]*)\);", re.M)
DEFINED = re.compile(r"^EMU_API ([\w ]+?[ *]+)((?:acl|ascendEmulator)\w+)\(([^{;]*?)\)\s*\{", re.M)
# The sources write plain types where the vendor has names.
PLAIN = {"aclrtDrvMemHandle": "void*", "aclrtStreamConfigHandle*": "void*", "aclrtExceptionInfo*": "void*",
         "aclFloat16": "uint16_t", "aclError": "int", "aclnnStatus": "int"}  # fmt: skip


def kinds(parameters: str, enums: set[str]) -> list[str]:
    out = []
    for one in parameters.replace("\n", " ").split(",") if parameters.strip() not in ("", "void") else []:
        words = re.sub(r"\bconst\b", "", one).replace("*", " * ").split()
        names = [w for w in words if w != "*"]
        kind = names[0] + "*" * words.count("*")
        base, stars = kind.rstrip("*"), "*" * kind.count("*")
        kind = PLAIN.get(kind) or ("int" + stars if base in enums or base == "int32_t" else kind)
        kind = PLAIN[base] + stars if base in PLAIN else kind
        out.append("callback" if base in ("aclrtCallback", "aclrtHostFunc", "aclrtExceptionInfoCallback") else kind)
    return out


# Handles that headers name, and code does not.
HANDLES = {"aclmdlRI*": "void**", "aclrtTaskGrp*": "void**"}


def test_the_runtimes_headers_are_what_the_libraries_define() -> None:
    sources = ROOT / "csrc" / "ascend_emulator"
    text = "\n".join(path.read_text() for path in (sources / "include").rglob("*.h"))
    enums = set(ENUM.findall(text)) - {"aclDataType", "aclFormat"}
    declared = {name: kinds(parameters, enums) for _, name, parameters in DECLARED.findall(text)}
    files = [
        *(sources / "runtime").glob("*.cpp"),
        sources / "objects" / "exports.cpp",
        sources / "core" / "control.cpp",
    ]
    code = "\n".join(path.read_text() for path in files)
    defined = {name: kinds(parameters, enums) for _, name, parameters in DEFINED.findall(code) if "##" not in name}
    assert len(defined) > 150
    assert set(defined) <= set(declared)
    same = {name: (declared[name], kind) for name, kind in defined.items() if len(declared[name]) != len(kind)}
    assert not same
    unnamed = {"void*", "callback"}  # what callbacks are written as differs
    wrong = {
        name: (a, b)
        for name, mine in defined.items()
        for a, b in zip(declared[name], mine)
        if HANDLES.get(a, a) != b and not {a, b} & unnamed
    }
    assert not wrong


@isolated(ASCEND_EMULATOR_LENIENT="1")
def test_lenient_allocations(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(32)
    rt.upload(address, bytes(64))  # INT64 over 4-byte data
    assert rt.download(address, 64) == bytes(64)
    rt.ok.aclrtFree(address)


@isolated()
def test_strict_allocations(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(32)
    assert rt.aclrtMemcpy(address, 128, bytes(128), 128, 1) != 0
    rt.ok.aclrtFree(address)
    rt.violations()
