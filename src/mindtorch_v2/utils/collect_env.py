"""`python -m mindtorch_v2.utils.collect_env`: what a report of a fault should say of the machine.

Invariant: a question that cannot be answered is answered with None; asking never fails.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .._backends.npu import doctor, installation, runtime

TORCH_AVAILABLE = True
COMMON_PATTERNS = {"torch", "numpy", "triton", "optree"}
CONDA_PATTERNS = {"mindtorch"}
PIP_PATTERNS = {"mindtorch", "ml_dtypes", "ml-dtypes", "mypy", "scipy", "tensorboard"}


class SystemEnv(NamedTuple):
    """The answers. Those about CUDA, ROCm and XPU are PyTorch's fields, and are N/A here."""

    torch_version: Any = None
    is_debug_build: Any = None
    cuda_compiled_version: Any = None
    gcc_version: Any = None
    clang_version: Any = None
    cmake_version: Any = None
    os: Any = None
    libc_version: Any = None
    python_version: Any = None
    python_platform: Any = None
    is_cuda_available: Any = None
    cuda_runtime_version: Any = None
    cuda_module_loading: Any = None
    nvidia_driver_version: Any = None
    nvidia_gpu_models: Any = None
    cudnn_version: Any = None
    is_xpu_available: Any = None
    pip_version: Any = None
    pip_packages: Any = None
    conda_packages: Any = None
    hip_compiled_version: Any = None
    hip_runtime_version: Any = None
    miopen_runtime_version: Any = None
    caching_allocator_config: Any = None
    is_xnnpack_available: Any = None
    cpu_info: Any = None
    # Not in PyTorch.
    is_npu_available: Any = None
    npu_libraries: Any = None
    npu_driver_version: Any = None
    npu_models: Any = None
    cann_version: Any = None


# -- asking other programs ------------------------------------------------------------------------------------------
def run(command: Any) -> tuple[int, str, str]:
    """Return code, output and errors of a program; 127 where there is none of that name."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    encoding = locale.getpreferredencoding(False)
    out, errors = (text.decode(encoding, "replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, out, errors


def run_and_read_all(run_lambda: Any, command: Any) -> str | None:
    """What a program says; None if it fails."""
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> str | None:
    """The first group of a pattern in what a program says."""
    out = run_and_read_all(run_lambda, command)
    found = None if out is None else re.search(regex, out)
    return found.group(1) if found else None


def run_and_return_first_line(run_lambda: Any, command: Any) -> str | None:
    out = run_and_read_all(run_lambda, command)
    return None if out is None else out.split("\n")[0]


def get_gcc_version(run_lambda: Any) -> str | None:
    return run_and_parse_first_match(run_lambda, ["gcc", "--version"], r"gcc (.*)")


def get_clang_version(run_lambda: Any) -> str | None:
    return run_and_parse_first_match(run_lambda, ["clang", "--version"], r"clang version (.*)")


def get_cmake_version(run_lambda: Any) -> str | None:
    return run_and_parse_first_match(run_lambda, ["cmake", "--version"], r"cmake (.*)")


# -- the machine ----------------------------------------------------------------------------------------------------
def get_platform() -> str:
    return sys.platform if not sys.platform.startswith("linux") else "linux"


def check_release_file(run_lambda: Any) -> str | None:
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Any) -> str:
    name = check_release_file(run_lambda) if get_platform() == "linux" else None
    return f"{name or platform.system()} ({platform.machine()})"


def get_python_platform() -> str:
    return platform.platform()


def get_libc_version() -> str:
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_cpu_info(run_lambda: Any) -> str | None:
    return run_and_read_all(run_lambda, ["lscpu"]) if get_platform() == "linux" else platform.processor() or None


def get_pip_packages(run_lambda: Any, patterns: Any = None) -> tuple[str, str]:
    """pip, and the installed packages whose names contain one of the patterns."""
    wanted = COMMON_PATTERNS | PIP_PATTERNS if patterns is None else patterns
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in metadata.distributions()
        if any(p in (d.metadata["Name"] or "") for p in wanted)
    }
    return "pip3", "\n".join(sorted(found))


def get_conda_packages(run_lambda: Any, patterns: Any = None) -> str | None:
    wanted = COMMON_PATTERNS | CONDA_PATTERNS if patterns is None else patterns
    out = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    if out is None:
        return None
    return "\n".join(line for line in out.splitlines() if not line.startswith("#") and any(p in line for p in wanted))


# -- NPUs -----------------------------------------------------------------------------------------------------------
def get_npu_libraries() -> str | None:
    """CANN or the emulator, and where."""
    try:
        where = installation.search().found
    except RuntimeError:
        return None
    return None if where is None else f"{where.kind} in {where.home}"


def get_npu_driver_version() -> str | None:
    for root in doctor.DRIVER_ROOTS:
        try:
            found = re.search(r"[Vv]ersion=(\S+)", Path(root, "version.info").read_text())
        except OSError:
            continue
        if found:
            return found.group(1)
    return None


def get_npu_models() -> str | None:
    """The name of each NPU."""
    try:
        return "\n".join(f"NPU {i}: {torch.npu.get_device_name(i)}" for i in range(torch.npu.device_count())) or None
    except RuntimeError:
        return None


def get_cann_version() -> str | None:
    try:
        return runtime.cann_version() or None
    except RuntimeError:
        return None


def get_cachingallocator_config() -> str:
    return os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")


def get_env_info() -> SystemEnv:
    """Ask everything."""
    pip_version, pip_packages = get_pip_packages(run)
    version = sys.version.replace("\n", " ")
    available = torch.npu.is_available()
    return SystemEnv(
        torch_version=torch.__version__,
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(torch.cuda.is_available()),
        cuda_runtime_version="N/A",
        cuda_module_loading="N/A",
        nvidia_driver_version="N/A",
        nvidia_gpu_models="N/A",
        cudnn_version="N/A",
        is_xpu_available=str(torch.xpu.is_available()),
        pip_version=pip_version,
        pip_packages=pip_packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config() or "N/A",
        is_xnnpack_available="False",
        cpu_info=get_cpu_info(run),
        is_npu_available=str(available),
        npu_libraries=get_npu_libraries(),
        npu_driver_version=get_npu_driver_version(),
        npu_models=get_npu_models() if available else None,
        cann_version=get_cann_version() if available else None,
    )


env_info_fmt = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

Is NPU available: {is_npu_available}
NPU libraries: {npu_libraries}
NPU driver version: {npu_driver_version}
NPU models: {npu_models}
CANN version: {cann_version}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}
""".strip()


def pretty_str(envinfo: SystemEnv) -> str:
    """The report."""
    answers = envinfo._asdict()
    if answers["npu_models"] and "\n" in answers["npu_models"]:
        answers["npu_models"] = "\n" + answers["npu_models"]
    for name, mark in (("pip_packages", f"[{answers['pip_version']}] "), ("conda_packages", "[conda] ")):
        if answers[name]:
            answers[name] = "\n".join(mark + line for line in answers[name].split("\n"))
        elif answers[name] == "":
            answers[name] = "No relevant packages"
    shown = {name: "Could not collect" if value is None else value for name, value in answers.items()}
    return env_info_fmt.format(**shown)


def get_pretty_env_info() -> str:
    """What the program prints."""
    return pretty_str(get_env_info())


def main() -> None:
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
