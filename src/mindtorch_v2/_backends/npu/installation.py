"""Where the vendor's libraries are: what `MINDTORCH_NPU` asks for, the environment names and default places hold.

Invariant: looking only reads the file system and the environment; nothing is loaded, and the emulator is found only
when it was asked for.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

MODES = ("auto", "cann", "emulator", "off")
HOME_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
# Roots of the vendor's installer: for all users, and for the one who ran it.
ROOTS = ("/usr/local/Ascend", "/opt/Ascend", "~/Ascend")
# The new layout's name first: where both exist the old one is a left-over.
HOMES = ("cann", "ascend-toolkit/latest", "latest", "nnae/latest")

# The real library first; libascendcl.so is what older versions have and newer ones keep for compatibility.
RUNTIME_NAMES = ("libacl_rt.so", "libascendcl.so")
NNOPBASE = "libnnopbase.so"
# libopapi_math.so first: the others use its entry points.
SPLIT_NAMES = ("libopapi_math.so", "libopapi_nn.so", "libopapi_cv.so", "libopapi_transformer.so")
AGGREGATE = "libopapi.so"
OLD_NAMES = (
    "libaclnn_ops_infer.so",
    "libaclnn_ops_train.so",
    "libaclnn_math.so",
    "libaclnn_sparse.so",
    "libaclnn_fft.so",
    "libaclnn_rand.so",
)
CUSTOM = "op_api/lib/libcust_opapi.so"
EMULATOR_CORE = "libascend_emulator.so"


class Choice:
    """What the program itself asked for; it goes before the environment."""

    emulator = False


def mode() -> str:
    """The mode in force; a value nobody knows is an error that names the accepted ones."""
    asked = os.environ.get("MINDTORCH_NPU", "").strip().lower() or "auto"
    if asked not in MODES:
        raise RuntimeError(f"MINDTORCH_NPU={os.environ['MINDTORCH_NPU']!r} is not a mode; accepted: {', '.join(MODES)}")
    return "emulator" if Choice.emulator else asked


@dataclass(frozen=True)
class Installation:
    """One set of libraries, complete or not."""

    kind: str  # "cann" or "emulator"
    home: Path
    source: str  # what led here
    folders: tuple[Path, ...]
    runtime: Path | None
    nnopbase: Path | None
    operators: tuple[Path, ...]  # in the order symbols are looked for
    custom: tuple[Path, ...] = ()

    @property
    def layout(self) -> str:
        """`new` (split operator libraries), `old`, or `none` where there is no operator library."""
        names = {p.name for p in self.operators}
        if any(name.startswith("libopapi_") for name in names):
            return "new"
        return "old" if names else "none"

    def missing(self) -> list[str]:
        """The libraries without which nothing runs."""
        out = []
        if self.runtime is None:
            out.append(" or ".join(RUNTIME_NAMES))
        if self.nnopbase is None:
            out.append(NNOPBASE)
        if not self.operators:
            out.append(f"{SPLIT_NAMES[0]} (new layout) or {AGGREGATE} (old layout)")
        return out


@dataclass
class Search:
    """The answer and every place that was looked at, for diagnostics."""

    mode: str
    found: Installation | None = None
    looked: list[tuple[str, str]] = field(default_factory=list)  # (place, what was there)


def architecture() -> str:
    """The vendor's name of this machine's architecture."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def emulator_home() -> Path:
    """The emulator as an installed CANN: headers, libraries, scripts."""
    return Path(__file__).resolve().parents[2] / "_emulator"


def emulator_folder() -> Path:
    return emulator_home() / "lib64"


def conditions() -> tuple[object, ...]:
    """What a search of the same file system depends on."""
    names = ("MINDTORCH_NPU", "LD_LIBRARY_PATH", "HOME", *HOME_VARIABLES)
    return (Choice.emulator, ROOTS, HOMES, *[os.environ.get(name) for name in names])


def search() -> Search:
    """Look for the libraries the mode asks for."""
    out = Search(mode())
    if out.mode == "off":
        out.looked.append(("MINDTORCH_NPU", "off: nothing is looked for"))
    elif out.mode == "emulator":
        out.found = _emulator(out)
    else:
        out.found = _cann(out)
    return out


def _emulator(out: Search) -> Installation | None:
    folder = emulator_folder()
    if not (folder / EMULATOR_CORE).is_file():
        out.looked.append((str(folder), f"no {EMULATOR_CORE}"))
        return None
    return examine(folder, "emulator", "the package's own libraries")


def _cann(out: Search) -> Installation | None:
    """An installed CANN. A home the environment names is taken as it is: another one behind it would surprise."""
    for variable in HOME_VARIABLES:
        value = os.environ.get(variable)
        if value:
            home = Path(value)
            if not home.is_dir():
                out.looked.append((f"{variable}={value}", "does not exist"))
                continue
            return examine(home, "cann", variable)
    if out.looked:
        return None
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and any(Path(folder, name).is_file() for name in RUNTIME_NAMES):
            path = Path(folder)
            if path.resolve() == emulator_folder():
                out.looked.append((f"LD_LIBRARY_PATH: {folder}", "the emulator, which is used only when asked for"))
                continue
            return examine(path.parent if path.name == "lib64" else path, "cann", "LD_LIBRARY_PATH")
    for home in default_homes():
        if home.is_dir() and any((f / name).is_file() for f in library_folders(home) for name in RUNTIME_NAMES):
            return examine(home, "cann", "a default place")
        out.looked.append((str(home), "no runtime library" if home.is_dir() else "does not exist"))
    return None


def default_homes() -> list[Path]:
    return [Path(root).expanduser() / home for root in ROOTS for home in HOMES]


def library_folders(home: Path) -> tuple[Path, ...]:
    """The folders of a home that hold libraries; the home itself where someone put them flat."""
    arch = architecture()
    built_in = f"opp/built-in/op_impl/ai_core/tbe/op_api/lib/linux/{arch}"
    candidates = [home / "lib64", home / f"{arch}-linux" / "lib64", home / "opp" / "lib64", home / built_in, home]
    return tuple(f for f in candidates if f.is_dir())


def examine(home: Path, kind: str, source: str) -> Installation:
    """Which libraries a home has."""
    folders = library_folders(home)
    runtime = _first(folders, RUNTIME_NAMES)
    custom = tuple(_custom(home)) if kind == "cann" else ()
    return Installation(
        kind, home, source, folders, runtime, _first(folders, (NNOPBASE,)), (*custom, *_operators(folders)), custom
    )


def _first(folders: tuple[Path, ...], names: tuple[str, ...]) -> Path | None:
    for name in names:
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
    return None


def _operators(folders: tuple[Path, ...]) -> list[Path]:
    """Operator libraries in the documented order. The aggregate must not be used beside the split ones."""
    split: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("libopapi_*.so")):
            split.setdefault(path.name, path)
    ordered = [split.pop(name) for name in SPLIT_NAMES if name in split] + list(split.values())
    if not ordered:
        whole = _first(folders, (AGGREGATE,))
        ordered = [whole] if whole is not None else []
    for name in OLD_NAMES:
        old = _first(folders, (name,))
        if old is not None:
            ordered.append(old)
    return ordered


def _custom(home: Path) -> list[Path]:
    """Users' own operators: the paths of the environment, then the vendors of the package in their priority."""
    out = [Path(p) / CUSTOM for p in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if p]
    opp = Path(os.environ.get("ASCEND_OPP_PATH") or home / "opp")
    config = opp / "vendors" / "config.ini"
    if config.is_file():
        for line in config.read_text(errors="replace").splitlines():
            key, _, names = line.partition("=")
            if key.strip() == "load_priority":
                out += [opp / "vendors" / name.strip() / CUSTOM for name in names.split(",") if name.strip()]
    return [p for p in out if p.is_file()]
