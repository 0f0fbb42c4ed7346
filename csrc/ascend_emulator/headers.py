"""Writes what a C or C++ programmer needs beside the libraries: a home laid out as an installed CANN.

    include/acl, aclnn, hccl      as they are in include/
    include/aclnnop               one header for each of the vendor's, from facts.jsonl, and one for each library
    headers.json                  instead of include/aclnnop where a home is a part of a wheel, in which two thousand
                                  small files weigh more than what they say: unpacked when a programmer asks
    set_env.sh, version.cfg       what scripts ask an installation
    lib64/pkgconfig, lib64/cmake  for builds

Invariant: nothing in a home names the folder it was built in, so that a home can be moved.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from generate import HERE, PARTS, facts, implemented, write_if_changed, written

VERSION = "8.5.0"  # what aclsysGetCANNVersion says where the environment says nothing
OPENING = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
CLOSING = "#ifdef __cplusplus\n}\n#endif\n"
BASE = '#include "../aclnn/aclnn_base.h"\n'
DEPRECATED_FOLDER = "level2"  # where old programs look for the same headers

SET_ENV = """\
# What a program needs to run on the emulator: `source set_env.sh`.
home="$(cd "$(dirname "${{BASH_SOURCE[0]:-$0}}")" && pwd)"
export ASCEND_HOME_PATH="$home" ASCEND_TOOLKIT_HOME="$home" ASCEND_AICPU_PATH="$home" ASCEND_OPP_PATH="$home/opp"
export LD_LIBRARY_PATH="$home/lib64${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
# As many as the largest machine that examples are written for.
export ASCEND_EMULATOR_DEVICES="${{ASCEND_EMULATOR_DEVICES:-16}}"
unset home
"""
PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib64
includedir=${{prefix}}/include

Name: ascend-emulator
Description: Ascend's C libraries on a machine without an NPU
Version: {version}
Cflags: -I${{includedir}} -I${{includedir}}/aclnn -I${{includedir}}/aclnnop
Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -lopapi -lnnopbase -lascendcl -lhccl
"""
CMAKE = """\
# find_package(AscendEmulator) and link AscendEmulator::acl, or ::control for faults and counters as well.
get_filename_component(_home "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
foreach(_name ascendcl nnopbase opapi hccl ascend_emulator)
  if(NOT TARGET AscendEmulator::${{_name}})
    add_library(AscendEmulator::${{_name}} SHARED IMPORTED)
    set_target_properties(AscendEmulator::${{_name}} PROPERTIES
      IMPORTED_LOCATION "${{_home}}/lib64/lib${{_name}}.so" INTERFACE_INCLUDE_DIRECTORIES
      "${{_home}}/include;${{_home}}/include/aclnn;${{_home}}/include/aclnnop")
  endif()
endforeach()
if(NOT TARGET AscendEmulator::acl)
  add_library(AscendEmulator::acl INTERFACE IMPORTED)
  set_target_properties(AscendEmulator::acl PROPERTIES INTERFACE_LINK_LIBRARIES
    "AscendEmulator::opapi;AscendEmulator::nnopbase;AscendEmulator::ascendcl;AscendEmulator::hccl")
  add_library(AscendEmulator::control INTERFACE IMPORTED)
  set_target_properties(AscendEmulator::control PROPERTIES INTERFACE_LINK_LIBRARIES AscendEmulator::ascend_emulator)
endif()
unset(_home)
unset(_name)
"""
# Questions answered on the host, without an executor: objects/queries.cpp.
QUERIES = {
    "aclnn_trans_matmul_weight": """\
aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape, uint64_t* weightTensorSize);
aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                             uint64_t* weightTensorSize);
""",
    "aclnn_trans_quant_param": """\
aclnnStatus aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize, const float* offsetArray,
                                 uint64_t offsetSize, uint64_t** quantParam, uint64_t* quantParamSize);
""",
    "aclnn_npu_format_cast": """\
aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor, const int dstFormat,
                                                     const int additionalDtype, int64_t** dstShape,
                                                     uint64_t* dstShapeSize, int* actualFormat);
""",
}


def header_of(f: dict[str, Any]) -> str:
    """The name of the vendor's header without `.h`: stated, or the function's own in small letters."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", f["name"].removeprefix("aclnn"))
    return str(f.get("header") or f"aclnn_{words.lower()}")


def prototypes(f: dict[str, Any]) -> str:
    outputs, _ = written(f)
    parameters = [
        f"{'const ' if p['type'].endswith('*') and p['name'] not in outputs else ''}{p['type']} {p['name']}"
        for p in f["params"]
    ]
    name = f["name"]
    return (
        f"aclnnStatus {name}GetWorkspaceSize("
        + ", ".join([*parameters, "uint64_t* workspaceSize", "aclOpExecutor** executor"])
        + ");\n"
        + f"aclnnStatus {name}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);\n"
    )


def exported() -> list[dict[str, Any]]:
    names = implemented()
    return [f for f in facts() if f["name"] in names]


def operator_headers() -> dict[str, str]:
    """The texts of include/aclnnop by their names."""
    functions = exported()
    by_header: dict[str, list[dict[str, Any]]] = {name: [] for name in QUERIES}
    for f in functions:
        by_header.setdefault(header_of(f), []).append(f)
    texts = {}
    for name, group in by_header.items():
        text = "\n".join([*(prototypes(f) for f in group), *([QUERIES[name]] if name in QUERIES else [])])
        texts[f"{name}.h"] = f"#pragma once\n\n{BASE}\n{OPENING}\n{text}\n{CLOSING}"
    for part in PARTS:
        names = sorted({header_of(f) for f in functions if part in (f.get("libs") or ["math"])})
        lines = "".join(f'#include "{name}.h"\n' for name in names)
        texts[f"aclnn_ops_{part}.h"] = f"#pragma once\n\n{lines}"
    for name in by_header:
        texts[f"{DEPRECATED_FOLDER}/{name}.h"] = f'#pragma once\n\n#include "../{name}.h"\n'
    return texts


def write_operator_headers(folder: Path) -> None:
    texts = operator_headers()
    (folder / DEPRECATED_FOLDER).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_if_changed(folder / name, text)
    for stale in [p for p in folder.rglob("*.h") if str(p.relative_to(folder)) not in texts]:
        stale.unlink()


def listing() -> list[dict[str, Any]]:
    """What is there, for `emulator functions`: name, header, and the chips whose documents list the function."""
    return [
        {"name": f["name"], "header": f"aclnnop/{header_of(f)}.h", "chips": f.get("products", [])} for f in exported()
    ]


def write_home(home: Path, packed: bool) -> None:
    """Everything of a home but the libraries, which are in its lib64. `packed`: headers.json."""
    for source in sorted((HERE / "include").rglob("*.h")):
        target = home / "include" / source.relative_to(HERE / "include")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_if_changed(target, source.read_text())
    if not packed:
        write_operator_headers(home / "include" / "aclnnop")
    files = {
        "set_env.sh": SET_ENV.format(),
        "version.cfg": f"[version]\ntoolkit_running_version=[{VERSION}:{VERSION}]\n",
        "opp/version.info": f"Version={VERSION}\n",
        "lib64/pkgconfig/ascend-emulator.pc": PKG_CONFIG.format(version=VERSION),
        "lib64/cmake/AscendEmulator/AscendEmulatorConfig.cmake": CMAKE.format(),
        "functions.json": json.dumps(listing(), separators=(",", ":")),
        **({"headers.json": json.dumps(operator_headers(), separators=(",", ":"))} if packed else {}),
    }
    for name, text in files.items():
        target = home / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_if_changed(target, text)
