"""Writes the C++ that every aclnn function shares from facts.jsonl: its parameter table and its two exported functions.

Invariant: a function is exported exactly when a line of aclnn/*.cpp that begins with a macro names it; such a line that
names none is an error.
"""
from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FUNCTION_NAME = re.compile(r"\b(?:aclnn[A-Z]\w*|aclStft)\b")  # one function has its own prefix
MACRO = re.compile(r"^[A-Z][A-Z_]*\(")
MACRO_LINE = re.compile(MACRO.pattern + ".*" + FUNCTION_NAME.pattern)
MAX_RANK = 25  # of a tensor object; a few documents say more
CHIPS = {"910B": "k910B", "910A": "k910A", "310P": "k310P", "310B": "k310B", "950": "k950"}
DTYPES = {
    "FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "UINT16": 7, "UINT32": 8, "INT64": 9,
    "UINT64": 10, "DOUBLE": 11, "BOOL": 12, "STRING": 13, "COMPLEX64": 16, "COMPLEX128": 17, "BF16": 27, "INT4": 29,
    "UINT1": 30, "COMPLEX32": 33, "HIFLOAT8": 34, "FLOAT8_E5M2": 35, "FLOAT8_E4M3FN": 36, "FLOAT8_E8M0": 37,
    "FLOAT6_E3M2": 38, "FLOAT6_E2M3": 39, "FLOAT4_E2M1": 40, "FLOAT4_E1M2": 41,
}
FORMATS = {
    "NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "HWCN": 16, "NDHWC": 27, "FRACTAL_NZ": 29,
    "NCDHW": 30, "NC": 35, "NCL": 47, "FRACTAL_NZ_C0_16": 50, "FRACTAL_NZ_C0_32": 51, "FRACTAL_NZ_C0_2": 52,
    "FRACTAL_NZ_C0_4": 53, "FRACTAL_NZ_C0_8": 54,
}
ROLES = {
    "aclTensor*": "tensor", "aclScalar*": "scalar", "aclIntArray*": "ints", "aclFloatArray*": "floats",
    "aclBoolArray*": "bools", "aclTensorList*": "tensors", "aclScalarList*": "scalars", "bool": "boolean",
    "aclDataType": "dtype", "char*": "string", "double": "real", "float": "real", "int": "integer",
    "int8_t": "integer", "int32_t": "integer", "int64_t": "integer", "uint32_t": "integer", "uint64_t": "integer",
}
PARTS = ("math", "nn", "cv", "transformer")
# The libraries of the old layout: their exact contents are not documented, so each carries the half its name suggests.
OLD_LIBRARIES = {"libaclnn_math": ("math",), "libaclnn_ops_infer": ("nn", "cv", "transformer")}
LIBRARIES = {
    "libopapi": PARTS,
    **{f"libopapi_{part}": (part,) for part in PARTS},
    **OLD_LIBRARIES,
}


def facts() -> list[dict[str, Any]]:
    """What the documents say, and where operators were seen to accept more (`accepts` of a parameter), that instead."""
    functions = [json.loads(line) for line in (HERE / "facts.jsonl").read_text().splitlines()]
    for f in functions:
        f["params"] = [{**p, **p.get("accepts", {})} for p in f["params"]]
    return functions


def implemented(folder: Path = HERE / "aclnn") -> set[str]:
    """The functions that lines of a folder's sources name; a macro that names none would lose its function."""
    names: set[str] = set()
    for source in sorted(folder.glob("*.cpp")):
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if MACRO_LINE.match(line):
                names.update(FUNCTION_NAME.findall(line))
            elif MACRO.match(line):
                raise SystemExit(f"{source.name}:{number}: {line.strip()}: the function's name must stand on this line")
    return names


def bits(names: str, codes: dict[str, int]) -> str:
    return hex(sum({1 << codes[name] for name in names.split()})) + "ull"


def rank_bits(text: str) -> str:
    ranks: set[int] = set()
    for part in text.split("|"):
        first, _, last = part.partition("-")
        ranks.update(range(int(first), min(int(last or first), MAX_RANK) + 1))
    return hex(sum(1 << r for r in ranks)) + "u"


def ranks(p: dict[str, Any]) -> str:
    """Of a private format documents give the rank of its blocks; the matrices in them have two dimensions less."""
    if "rank" not in p:
        return "0"
    blocks = rank_bits(p["rank"])
    return f"({blocks} | {blocks} >> 2)" if "FRACTAL_NZ" in p.get("formats", "") else blocks


def is_in_place(p: dict[str, Any]) -> bool:
    """Documents mark some in-place arguments as inputs; their names end in Ref."""
    return p.get("io") == "inout" or (p["type"].startswith("aclTensor") and p["name"].endswith("Ref"))


def written(f: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The names of the outputs of a function, and of those among them that are read too.

    Some documents say of no argument that it is written: then it is the first tensor of an in-place function, and
    otherwise the last tensors, as many as are called ...Out, at least one. Some forget one of several: tensors called
    ...Out before the outputs are outputs, unless a gradient is computed from them; and so are tensors between two
    outputs of which nothing is said.
    """
    both = {p["name"] for p in f["params"] if is_in_place(p)}
    outputs = both | {p["name"] for p in f["params"] if p.get("io") == "out"}
    tensors = [p["name"] for p in f["params"] if p["type"].startswith("aclTensor")]
    if outputs or not tensors:
        singles = [p["name"] for p in f["params"] if p["type"] == "aclTensor*"]
        for name in reversed(singles if not re.search("Backward|Grad", f["name"]) else []):
            if name not in outputs and not name.endswith("Out"):
                break
            outputs.add(name)
        stated = [i for i, p in enumerate(f["params"]) if p.get("io") == "out"]
        for p in f["params"][stated[0] : stated[-1]] if stated else []:
            if p["type"].startswith("aclTensor") and "io" not in p:
                outputs.add(p["name"])
        return outputs, both
    if f["name"].startswith("aclnnInplace"):
        return {tensors[0]}, {tensors[0]}
    named = list(itertools.takewhile(lambda name: name.endswith(("Out", "OutOptional")), reversed(tensors)))
    return set(named or tensors[-1:]), set()


# Flags and optional inputs of calls, and the outputs that are written only where one is true or given: without it they
# may be null.
ASKED_FOR = {
    "isOutputKv": ("kRopeOut", "cKvOut"),
    "softmaxLseFlag": ("softmaxLse",),
    "returnValues": ("sparseValuesOut",),
    "outFlag": ("outOut",),
    "kvOutput": ("kOut", "vOut"),
    "qDownOutFlag": ("qDownOut",),
    "additionalOutput": ("xOut",),
    "queryNormFlag": ("queryNormOut", "dequantScaleQNormOut", "dequantScaleQNopeOut"),
    "expertTokensNumFlag": ("expertTokensCountOrCumsumOut", "expandedScaleOut"),
    "train": ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut"),
    "queryRope": ("dqRopeOut", "dkRopeOut"),
    "queryRopeOptional": ("dqRopeOut", "dkRopeOut"),
    "pseShiftOptional": ("dpseOut",),
    "sinkInOptional": ("dsinkOut",),
    "scalesOptional": ("gradScalesOut",),
    "hasBias": ("gradBiasOut",),
    "probsOptional": ("permuteProbsOut", "probsGradOut"),
    "permutedProbsOutputGradOptional": ("probsGradOut",),
}


def must_be_given(f: dict[str, Any], p: dict[str, Any]) -> bool:
    """Whether null is refused before the kernel is asked.

    An optional argument that documents list among the checked is checked under a condition (a mask of outputs, a mode):
    its kernel decides. A function without a list of checked arguments requires every one of them, but not those that
    are called optional, nor outputs that others ask for, nor those of which nothing is said while others are
    described: these are reserved.
    """
    if not p["type"].endswith("*") or p.get("optional") or "Optional" in p["name"]:
        return False
    if f.get("null"):
        return p["name"] in f["null"]
    if any(p["name"] in ASKED_FOR.get(q["name"], ()) for q in f["params"]):
        return False
    described = any(q.get("io") == "out" and "dtypes" in q for q in f["params"])
    reserved = described and p["name"] in written(f)[0] and "dtypes" not in p
    return not reserved


def format_bits(formats: str | None) -> str:
    if formats is None:
        return "0"
    return "~0ull" if formats == "any" else bits(formats, FORMATS)


def parameter(f: dict[str, Any], p: dict[str, Any]) -> str:
    dtypes, same = "0", -1
    outputs, in_place = written(f)
    stated = p.get("dtypes", "")
    if stated.startswith("="):
        names = [q["name"] for q in f["params"]]
        same = names.index(stated[1:]) if stated[1:] in names else -1
    elif stated and all(name in DTYPES for name in stated.split()):
        dtypes = bits(stated, DTYPES)
    fields = [
        json.dumps(p["name"]), f"Role::{ROLES[p['type']]}", p["name"] in outputs, p["name"] in in_place,
        must_be_given(f, p),
        bool(p.get("contiguous")), same, dtypes, ranks(p),
        format_bits(p.get("formats")),
        [q["name"] for q in f["params"]].index(p["reuses"]) if "reuses" in p else -1,
    ]
    return "{" + ", ".join(str(x).lower() if isinstance(x, bool) else str(x) for x in fields) + "}"


def table(functions: list[dict[str, Any]]) -> str:
    lines = ['#include "aclnn/kernel.h"', "namespace emu {", "namespace {"]
    rows = []
    for f in functions:
        name = f["name"]
        parameters = ",\n    ".join(parameter(f, p) for p in f["params"])
        lines.append(f"const Parameter p_{name}[] = {{\n    {parameters}}};")
        rules = [
            f"{{Chip::{CHIPS[chip]}, {'true' if how == 'only' else 'false'}, {bits(names, DTYPES)}}}"
            for chip, said in f.get("chips", {}).items() if chip in CHIPS
            for how, names in said.items() if all(n in DTYPES for n in names.split())
        ]
        if rules:
            lines.append(f"const ChipRule r_{name}[] = {{{', '.join(rules)}}};")
        chips = " | ".join(f"1u << unsigned(Chip::{CHIPS[c]})" for c in f.get("products", []) if c in CHIPS) or "0"
        rows.append(f'    {{"{name}", "{name}GetWorkspaceSize", {len(f["params"])}, p_{name}, {chips}, {len(rules)}, '
                    f'{f"r_{name}" if rules else "nullptr"}}},')
    lines += ["const Function functions[] = {", *rows, "};", "}  // namespace"]
    lines += ["const Function& function_at(int id) { return functions[id]; }"]
    lines += [f"int function_count() {{ return {len(rows)}; }}", "}  // namespace emu", ""]
    return "\n".join(lines)


def exports(functions: list[dict[str, Any]], indices: list[int]) -> str:
    lines = ['#include "aclnn/executor.h"', "using namespace emu;", 'extern "C" {']
    for i in indices:
        f = functions[i]
        name = f["name"]
        declared = "".join(f"{'const ' if p['type'].endswith('*') else ''}{p['type']} {p['name']}_, "
                           for p in f["params"])
        packed = ", ".join(f"Raw({p['name']}_)" for p in f["params"])
        lines += [
            f"EMU_API aclnnStatus {name}GetWorkspaceSize({declared}uint64_t* size, aclOpExecutor** executor) {{",
            f"    const Raw arguments[] = {{{packed}}};",
            f"    return phase1({i}, arguments, size, executor);",
            "}",
            f"EMU_API aclnnStatus {name}(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {{",
            f"    return phase2({i}, workspace, size, executor, stream);",
            "}",
        ]
    return "\n".join([*lines, "}", ""])


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(folder: Path) -> dict[str, list[Path]]:
    """Writes functions.cpp, and exports_<parts>.cpp for the functions that are in the same parts; which of these each
    operator library is made of: every function is compiled once, however many libraries have it."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {f["name"]: f for f in facts()}
    names = sorted(implemented())
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"aclnn/*.cpp implements functions that facts.jsonl does not list: {', '.join(unknown)}")
    functions = [known[name] for name in names]
    write_if_changed(folder / "functions.cpp", table(functions))
    homes: dict[tuple[str, ...], list[int]] = {}
    for i, f in enumerate(functions):
        homes.setdefault(tuple(sorted(f.get("libs") or ["math"])), []).append(i)
    sources = {home: folder / f"exports_{'_'.join(home)}.cpp" for home in homes}
    for home, indices in homes.items():
        write_if_changed(sources[home], exports(functions, indices))
    return {
        library: [source for home, source in sources.items() if set(home) & set(parts)]
        for library, parts in LIBRARIES.items()
    }
