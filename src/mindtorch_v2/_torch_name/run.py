"""`python -m mindtorch_v2.torch`: runs a program with this package as `torch`.

Invariant: the program sees what it would see run by Python itself: `sys.argv`, `sys.path[0]`, `__main__`, exit code.
The processes it starts find the same `torch`.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder

from . import FOLDER, PACKAGE, install, ours

USAGE = f"""usage: python -m {PACKAGE}.torch [-q] script.py [args...]
       python -m {PACKAGE}.torch [-q] -m module [args...]
       python -m {PACKAGE}.torch [-q] -c code [args...]

Runs a program written for PyTorch: `torch` and every `torch.*` module are {PACKAGE}.
-q: do not say so where PyTorch is installed as well."""


def main(argv: list[str]) -> int:
    """Run the program that the arguments name; returns an exit code only if there is none."""
    quiet = argv[:1] == ["-q"]
    rest = argv[quiet:]
    if rest[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if not rest or (rest[0].startswith("-") and (rest[0] not in ("-m", "-c") or len(rest) < 2)):
        print(USAGE, file=sys.stderr)
        return 2
    if not quiet:
        _say_which()
    install()
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{FOLDER}{os.pathsep}{before}" if before else FOLDER
    if rest[0] == "-m":
        _run_module(rest[1], rest[2:])
    elif rest[0] == "-c":
        _run_code(rest[1], rest[2:])
    else:
        _run_script(rest[0], rest[1:])
    return 0


def _say_which() -> None:
    """One line where somebody could think that PyTorch runs."""
    spec = PathFinder.find_spec("torch")
    if spec is not None and spec.origin is not None and not ours(spec.origin):
        print(
            f"{PACKAGE}: `torch` is {PACKAGE}; PyTorch in {os.path.dirname(spec.origin)} is not used", file=sys.stderr
        )


def _first_path(entry: str) -> None:
    """Python put the current folder first, for `-m`; the program has its own first entry, before everything."""
    sys.path.remove(FOLDER)
    sys.path[:1] = [entry, FOLDER]


def _run_script(path: str, args: list[str]) -> None:
    sys.argv = [path, *args]
    _first_path(os.path.dirname(os.path.realpath(path)) if not os.path.isdir(path) else path)
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        runpy.run_path(path, run_name="__main__")
        return
    _replace_main(path)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(sys.modules["__main__"]))


def _run_code(code: str, args: list[str]) -> None:
    sys.argv = ["-c", *args]
    _first_path("")
    _replace_main(None)
    exec(compile(code, "<string>", "exec", dont_inherit=True), vars(sys.modules["__main__"]))


def _run_module(name: str, args: list[str]) -> None:
    sys.argv = [name, *args]
    _first_path(os.getcwd())
    import runpy

    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _replace_main(path: str | None) -> None:
    """A fresh `__main__`, which pickle and multiprocessing know as the program's own."""
    from types import ModuleType

    module = ModuleType("__main__")
    setattr(module, "__builtins__", __builtins__)
    if path is not None:
        module.__file__ = path
    sys.modules["__main__"] = module
