"""`python -m mindtorch_v2 emulator`: where the emulator is and how programs in C and C++ are built and run on it.

A wheel has the headers of operators as one file, headers.json; they are unpacked when they are asked for.

Invariant: nothing is loaded; every answer comes from the files of the home.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from .installation import EMULATOR_CORE, emulator_home

CHIPS = ("910B", "910A", "310P", "310B", "950")
# Functions that their documents list for newer chips only run on these as well; the 310s run more than is listed.
SETTINGS = {
    "chip": "ASCEND_EMULATOR_CHIP",
    "devices": "ASCEND_EMULATOR_DEVICES",
    "memory": "ASCEND_EMULATOR_MEMORY",
    "fault": "ASCEND_EMULATOR_FAULT",
    "delay_seed": "ASCEND_EMULATOR_DELAY_SEED",
}
# Programs name headers from any of these.
INCLUDES = ("include", "include/aclnn", "include/aclnnop")
# What a program sees that is run without a number: as many as the largest machine that examples are written for.
DEVICES = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--prefix", action="store_true", help="the home: include, lib64, set_env.sh")
    asked.add_argument("--cflags", action="store_true", help="flags for the compiler")
    asked.add_argument("--libs", action="store_true", help="flags for the linker")
    asked.add_argument("--env", action="store_true", help="export lines, for eval in a shell")
    commands = parser.add_subparsers(dest="action")
    functions = commands.add_parser("functions", help="list the operator functions")
    functions.add_argument("--chip", choices=CHIPS, help="only those that this chip accepts")
    functions.add_argument("--headers", action="store_true", help="with the header of each")
    run = commands.add_parser("run", help="run a program with the emulator's libraries")
    run.add_argument("--chip", choices=CHIPS)
    run.add_argument("--devices", type=int, help=f"how many; {DEVICES} if ASCEND_EMULATOR_DEVICES says nothing")
    run.add_argument("--memory", help="of each device: 512M, 2G")
    run.add_argument("--fault", help="function:n:code[:async], several separated by ;")
    run.add_argument("--delay-seed", type=int, help="random pauses before tasks")
    run.add_argument("--lenient", action="store_true", help="memory behind an allocation may be touched")
    run.add_argument("--report", action="store_true", help="print leaks at aclFinalize")
    run.add_argument("program")
    run.add_argument("arguments", nargs=argparse.REMAINDER)


PACKED = "headers.json"
OPERATORS = Path("include", "aclnnop")
STAMP = ".unpacked"  # which text the folder was unpacked from: an installed package may be replaced by another


def with_headers(home: Path) -> Path:
    """The home, or a copy of it where nothing can be written, with the headers of operators unpacked."""
    try:
        text = (home / PACKED).read_bytes()
    except FileNotFoundError:
        return home  # they are there as they are
    digest = hashlib.sha256(text).hexdigest()
    if is_unpacked(home, digest):
        return home
    try:
        unpack(home, text, digest)
        return home
    except OSError:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "mindtorch_v2")
    copy = cache / f"emulator-{digest[:16]}"
    if not is_unpacked(copy, digest):
        shutil.copytree(home, copy, dirs_exist_ok=True)
        unpack(copy, text, digest)
    return copy


def is_unpacked(home: Path, digest: str) -> bool:
    stamp = home / OPERATORS / STAMP
    return stamp.is_file() and stamp.read_text() == digest


def unpack(home: Path, text: bytes, digest: str) -> None:
    """Beside its place and then into it: whoever looks sees all headers or none."""
    folder = home / OPERATORS
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        fresh = Path(beside, "fresh")
        for name, content in json.loads(text).items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_text(content)
        (fresh / STAMP).write_text(digest)
        if folder.exists():
            folder.rename(Path(beside, "stale"))
        try:
            fresh.rename(folder)
        except OSError:
            if not is_unpacked(home, digest):  # not by another process meanwhile
                raise


def environment(home: Path, before: dict[str, str]) -> dict[str, str]:
    """The variables that set_env.sh sets."""
    known = before.get("LD_LIBRARY_PATH")
    return {
        "ASCEND_HOME_PATH": str(home),
        "ASCEND_TOOLKIT_HOME": str(home),
        "ASCEND_AICPU_PATH": str(home),
        "ASCEND_OPP_PATH": str(home / "opp"),
        "LD_LIBRARY_PATH": f"{home / 'lib64'}:{known}" if known else str(home / "lib64"),
        SETTINGS["devices"]: before.get(SETTINGS["devices"], str(DEVICES)),
    }


def accepts(chip: str, listed: list[str]) -> bool:
    """As the emulator decides: 910B, 910A and 950 refuse what documents list, but not for them.

    What is documented for the 950 alone runs on every chip.
    """
    known = [name for name in listed if name in CHIPS and (chip == "950" or name != "950")]
    return chip in ("310P", "310B") or not known or chip in known


def list_functions(home: Path, chip: str | None, headers: bool) -> None:
    for f in json.loads((home / "functions.json").read_text()):
        if chip is None or accepts(chip, f["chips"]):
            print(f"{f['name']}  {f['header']}" if headers else f["name"])


def run_program(home: Path, options: argparse.Namespace) -> int:
    settings = {**os.environ, **environment(home, dict(os.environ))}
    for option, variable in SETTINGS.items():
        value = getattr(options, option)
        if value is not None:
            settings[variable] = str(value)
    for option in ("lenient", "report"):
        if getattr(options, option):
            settings[f"ASCEND_EMULATOR_{option.upper()}"] = "1"
    try:
        sys.stdout.flush()
        os.execvpe(options.program, [options.program, *options.arguments], settings)
    except OSError as error:
        print(f"{options.program}: {error.strerror}", file=sys.stderr)
    return 127


def main(options: argparse.Namespace) -> int:
    home = emulator_home()
    if not (home / "lib64" / EMULATOR_CORE).is_file():
        print(f"the emulator was not built: no {EMULATOR_CORE} in {home / 'lib64'}", file=sys.stderr)
        return 1
    if options.action == "functions":
        list_functions(home, options.chip, options.headers)
    elif options.action == "run":
        return run_program(home, options)
    elif options.cflags:
        home = with_headers(home)
        print(shlex.join(f"-I{home / folder}" for folder in INCLUDES))
    elif options.libs:
        library = home / "lib64"
        print(shlex.join([f"-L{library}", f"-Wl,-rpath,{library}", "-lopapi", "-lnnopbase", "-lascendcl", "-lhccl"]))
    elif options.env:
        home = with_headers(home)
        for name, value in environment(home, dict(os.environ)).items():
            print(f"export {name}={shlex.quote(value)}")
    else:
        print(with_headers(home))
    return 0
