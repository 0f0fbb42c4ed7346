"""What a pickle holds, as text; nothing that it names is imported or called.

Invariant: every class of a pickle is a stand-in, so a file from anywhere can be looked at.
"""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from collections.abc import Callable
from typing import IO, Any

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]

# Without this there is none that is written in Python, whose steps can be replaced.
_Unpickler: Any = pickle._Unpickler

_USAGE = """\
usage: show_pickle PICKLE_FILE
  PICKLE_FILE can be any of:
    path to a pickle file
    file.zip@member.pkl
    file.zip@*/pattern.*
      (shell glob pattern for members)
      (only first match will be shown)
"""


class FakeObject:
    """Stands for an object: its class by name, the arguments it was made with, its state."""

    def __init__(self, module: str, name: str, args: Any) -> None:
        self.module = module
        self.name = name
        self.args = args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state

    @staticmethod
    def pp_format(
        printer: Any, obj: FakeObject, stream: IO[str], indent: int, allowance: int, context: Any, level: int
    ) -> None:
        """Arguments or state on lines of their own."""
        title = f"{obj.module}.{obj.name}"
        if obj.state is None:
            stream.write(title if obj.args else repr(obj))
            if obj.args:
                printer._format(obj.args, stream, indent + 1, allowance + 1, context, level)
        elif obj.args:
            raise Exception("Need to implement")
        else:
            indent += printer._indent_per_level
            stream.write(f"{title}()(state=\n{' ' * indent}")
            printer._format(obj.state, stream, indent, allowance + 1, context, level + 1)
            stream.write(")")


class FakeClass:
    """Stands for a class or function: calling it makes a FakeObject."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
        # Protocol 2 makes objects by `cls.__new__(cls, ...)`.
        setattr(self, "__new__", self.fake_new)

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        return self(*args[1:])


class DumpUnpickler(_Unpickler):  # type: ignore[misc]
    """Reads a pickle into stand-ins. `catch_invalid_utf8`: so for text that is none."""

    dispatch: dict[int, Callable[..., None]] = dict(_Unpickler.dispatch)

    def __init__(self, file: IO[bytes], *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> FakeClass:
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        return FakeObject("pers", "obj", (pid,))

    def load_binunicode(self) -> None:
        (length,) = struct.unpack("<I", self.read(4))
        encoded = self.read(length)
        text: Any
        try:
            text = str(encoded, "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            text = FakeObject("builtin", "UnicodeDecodeError", (str(error),))
        self.append(text)

    dispatch[pickle.BINUNICODE[0]] = load_binunicode

    @classmethod
    def dump(cls, in_stream: IO[bytes], out_stream: IO[str] | None) -> Any:
        """Print what a pickle holds."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv: list[str], output_stream: IO[str] | None = None) -> int | None:
    """Print what the pickle named by the one argument holds."""
    if len(argv) != 2:
        if output_stream is not None:
            raise Exception("Pass argv of length 2.")
        sys.stderr.write(_USAGE)
        return 2
    file, at, pattern = argv[1].partition("@")
    if not at:
        with open(file, "rb") as handle:
            DumpUnpickler.dump(handle, output_stream)
        return None
    with zipfile.ZipFile(file) as archive:
        member: Any = pattern
        if "*" in pattern:
            found = (info for info in archive.infolist() if fnmatch.fnmatch(info.filename, pattern))
            member = next(found, None)
            if member is None:
                raise Exception(f"Could not find member matching {pattern} in {file}")
        with archive.open(member) as handle:
            DumpUnpickler.dump(handle, output_stream)
    return None


if __name__ == "__main__":
    pprint.PrettyPrinter._dispatch[FakeObject.__repr__] = FakeObject.pp_format  # type: ignore[attr-defined]
    sys.exit(main(sys.argv))
