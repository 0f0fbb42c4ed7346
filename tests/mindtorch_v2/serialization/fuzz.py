"""Broken and hostile files for `torch.load`.

    python -m tests.mindtorch_v2.serialization.fuzz --count 100000 --first 0

Each number is one file, always the same: a good file, mutated. Files are loaded in child processes with little memory,
in batches. A finding is anything but a value or a `CheckpointError`: another exception, an import, a program started, a
file opened, memory that the file does not justify, a crash, a hang. It is printed with its number;
`--only NUMBER --write FILE` writes the file.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import pickletools
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from ._samples import WEIGHTS, Plain

ROOM = 96 << 20
SECONDS = 10
BATCH = 20_000
_NUMBERS = (0, 1, 2, 3, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
_WIDE = (*_NUMBERS, 1 << 32, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_NAMES = """os system
posix system
builtins eval
builtins exec
builtins getattr
builtins __import__
builtins bytearray
builtins set
builtins complex
builtins object
collections OrderedDict
collections Counter
collections defaultdict
subprocess Popen
_codecs encode
codecs decode
functools partial
torch Tensor
torch FloatTensor
torch FloatStorage
torch.cuda FloatStorage
torch QInt8Storage
torch.storage UntypedStorage
torch.storage TypedStorage
torch Size
torch device
torch float32
torch int64
torch bits8
torch.nn.parameter Parameter
torch.nn.modules.linear Linear
torch.serialization _get_layout
torch._tensor _rebuild_from_type_v2
torch._utils _rebuild_tensor
torch._utils _rebuild_tensor_v2
torch._utils _rebuild_tensor_v3
torch._utils _rebuild_parameter
torch._utils _rebuild_parameter_with_state
torch._utils _rebuild_meta_tensor_no_storage
torch._utils _rebuild_wrapper_subclass
torch._utils _rebuild_device_tensor_from_cpu_tensor
torch._utils _rebuild_device_tensor_from_numpy
torch._utils _rebuild_sparse_tensor
torch._utils _rebuild_qtensor
torch._utils _set_obj_state""".split("\n")
_SIMPLE = b"()]}\x8faesut\x85\x86\x87N\x88\x89RbQ\x810.12o\x93\x94\x92\x90\x91"
_TEXTS = ("", "cpu", "npu:0", "cuda:0", "meta", "storage", "module", "0", "1", "latin1", "zlib_codec", "a" * 300)


# -- good files -------------------------------------------------------------------------------------------------------
def _saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def _deflated(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return out.getvalue()


def good_files() -> list[bytes]:
    """What is mutated."""
    out = []
    for name, sample in WEIGHTS.items():
        value = sample(torch)
        if name == "nested":
            del value["many"]
        elif name == "optimizer_states":
            value = {"Adam": value["Adam"]}
        zipped = _saved(value)
        out += [zipped, _deflated(zipped)]
        if name not in ("dtypes", "small_types"):
            out.append(_saved(value, _use_new_zipfile_serialization=False))
    small = {"w": torch.ones(3), "b": torch.nn.Parameter(torch.zeros(2, 2).t())}
    out += [_saved(small), _saved(small, _use_new_zipfile_serialization=False), _deflated(_saved(small))]
    out += [_saved(small, pickle_protocol=p) for p in (3, 4, 5)]
    out += [_saved(Plain(t=torch.ones(1))), _saved([torch.ones(2).expand(4, 2), b"x" * 40])]
    return out


# -- mutations --------------------------------------------------------------------------------------------------------
Mutation = Callable[[random.Random, bytes], bytes]


def _flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data or b"\x00")
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _bytes(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))] if rng.random() < 0.7 else data[rng.randrange(len(data)) :]


def _remove(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 64) :]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    part = data[start : start + rng.randrange(1, 64)]
    return data[:start] + part * rng.choice((2, 3, 20)) + data[start:]


def _number(rng: random.Random, data: bytes) -> bytes:
    form, numbers = rng.choice((("<H", _NUMBERS), ("<I", _NUMBERS), ("<Q", _WIDE), ("<q", _WIDE)))
    value = rng.choice((*numbers, len(data), len(data) - 1, len(data) + 1)) % (1 << 8 * struct.calcsize(form) - 1)
    at = rng.randrange(len(data))
    packed = struct.pack(form, value)
    return data[:at] + packed + data[at + len(packed) :]


def _splice(rng: random.Random, data: bytes) -> bytes:
    other = rng.choice(FILES)
    start, stop = rng.randrange(len(data)), rng.randrange(len(other))
    return data[:start] + other[stop:]


def _directory(rng: random.Random, data: bytes) -> bytes:
    """Edit a field of a header of a zip."""
    magic = rng.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08"))
    places = [found.start() for found in re.finditer(re.escape(magic), data)]
    if not places:
        return _flip(rng, data)
    at = rng.choice(places) + rng.randrange(4, 46)
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice((*_WIDE, len(data), rng.randrange(len(data)), rng.choice(places)))
    return data[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + data[at + size :]


def _opcode(rng: random.Random) -> bytes:
    """Some opcode with some argument."""
    kind = rng.randrange(9)
    if kind == 0:
        module, _, name = rng.choice(_NAMES).partition(" ")
        return f"c{module}\n{name}\n".encode()
    if kind == 1:
        return b"K" + bytes([rng.choice((0, 1, 2, 4, 255))])
    if kind == 2:
        return b"J" + struct.pack("<i", rng.choice((-1, 0, 1 << 20, (1 << 31) - 1, -(1 << 31))))
    if kind == 3:
        value = rng.choice(_WIDE)
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little")
        return b"\x8a" + bytes([len(raw)]) + raw
    if kind == 4:
        text = rng.choice(_TEXTS).encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if kind == 5:
        return rng.choice((b"q", b"h")) + bytes([rng.randrange(40)])
    if kind == 6:
        return b"G" + struct.pack(">d", rng.choice((0.0, 1e300, float("nan"))))
    return bytes([rng.choice(_SIMPLE)])


@functools.lru_cache(1000)
def _split(data: bytes) -> tuple[bytes, ...]:
    """The opcodes of a pickle; nothing if it is broken."""
    try:
        places = [at or 0 for _, _, at in pickletools.genops(data)]
    except ValueError:
        return ()
    return tuple(data[a:b] for a, b in zip(places, [*places[1:], len(data)]))


def _pickle(rng: random.Random, data: bytes) -> bytes:
    """Edit a pickle opcode by opcode."""
    opcodes = list(_split(data))
    if not opcodes:
        return _flip(rng, data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, kind = rng.randrange(len(opcodes)), rng.randrange(6)
        if kind == 0:
            del opcodes[at]
        elif kind == 1:
            opcodes.insert(at, _opcode(rng))
        elif kind == 2:
            opcodes[at] = _opcode(rng)
        elif kind == 3:
            opcodes[at:at] = opcodes[at : at + rng.randrange(1, 12)] * rng.choice((1, 2, 30))
        elif kind == 4:
            other = rng.randrange(len(opcodes))
            opcodes[at], opcodes[other] = opcodes[other], opcodes[at]
        else:
            opcodes[at:at] = _bomb(rng)
        if not opcodes:
            return b"\x80\x02N."
    return b"".join(opcodes)


def _bomb(rng: random.Random) -> list[bytes]:
    """What grows: nested and shared tuples, copies of copies."""
    kind = rng.randrange(5)
    if kind == 0:
        return [b")", *[b"\x85"] * rng.choice((10, 100, 3000))]
    if kind == 1:  # a key of 2 ** n parts
        return [b"}", b"K\x01", *[b"q\xfe", b"h\xfe", b"\x86"] * rng.choice((8, 40, 200)), b"N", b"s"]
    if kind == 2:
        return [b"cbuiltins\nbytearray\n", b"J\xff\xff\xff\x7f", b"\x85", b"R"]
    if kind == 3:
        return [b"ccollections\nCounter\n", b"q\xfd", b"(", *[b"K\x01"] * 200, b"t\x85q\xfc", *[b"h\xfdh\xfcR"] * 60]
    return [b"c_codecs\nencode\n", b"X\x04\x00\x00\x00abcd", b"X\x08\x00\x00\x00punycode", b"\x86", b"R"]


def _records(rng: random.Random, data: bytes) -> bytes:
    """Write an archive again with other records."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # a file that is broken already
        records = {}
    if not records:
        return _pickle_in_stream(rng, data)
    name = rng.choice(list(records))
    kind = rng.randrange(8)
    if kind < 5:
        name = next((n for n in records if n.endswith("data.pkl")), name)
        records[name] = _pickle(rng, records[name])
    elif kind == 5:
        records[name] = rng.choice((b"", b"0", b"big", b"3\n", bytes(rng.randrange(100)), records[name] * 2))
    elif kind == 6:
        del records[name]
    else:
        records[rng.choice((name + "x", "data/0", "archive/data/0", "archive/constants.pkl", "x"))] = records[name]
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for title, content in records.items():
            archive.writestr(title, content)
    return out.getvalue()


@functools.lru_cache(1000)
def _ends(data: bytes) -> tuple[int, ...]:
    """Where the pickles of the old format begin and end."""
    ends = [0]
    for _ in range(5):
        stream = io.BytesIO(data[ends[-1] :])
        try:
            for _ in pickletools.genops(stream):
                pass
        except ValueError:
            break
        ends.append(ends[-1] + stream.tell())
    return tuple(ends)


def _pickle_in_stream(rng: random.Random, data: bytes) -> bytes:
    """Edit one of the pickles of the old format."""
    ends = _ends(data)
    if len(ends) == 1:
        return _flip(rng, data)
    which = rng.randrange(len(ends) - 1) if rng.random() < 0.4 else min(3, len(ends) - 2)
    return data[: ends[which]] + _pickle(rng, data[ends[which] : ends[which + 1]]) + data[ends[which + 1] :]


MUTATIONS: tuple[Mutation, ...] = (
    *(_flip, _bytes, _cut, _remove, _repeat, _number, _splice, _directory, _directory),
    *(_records,) * 7,
)
FILES: list[bytes] = []


def file_of(number: int) -> bytes:
    """The file with this number."""
    if not FILES:
        torch.manual_seed(0)
        FILES.extend(good_files())
    rng = random.Random(number)
    data = rng.choice(FILES)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(rng, data) or b"\x00"
    return data


# -- judging ----------------------------------------------------------------------------------------------------------
class Hang(BaseException):
    """A load took too long."""


PACKAGE = str(Path(torch.__file__).parent)


class Watch:
    """What the interpreter does while a file is loaded."""

    on = False
    seen: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not Watch.on or event in ("mmap.__new__", "object.__getattr__", "object.__setattr__", "builtins.id"):
            return
        if event == "open" and isinstance(args[2], int) and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            if str(args[0]).startswith(tempfile.gettempdir()):
                return
        if event.startswith(("ctypes.", "sys._getframe", "marshal.")):
            return
        # Parts of the package that are loaded when first needed.
        if event == "import" and str(args[0]).startswith("mindtorch_v2."):
            return
        if event == "compile" and str(args[1]).startswith(PACKAGE):
            return
        Watch.seen.append(f"{event} {args!r:.100}")


def _alarm(signum: int, frame: Any) -> None:
    raise Hang()


def judged(data: bytes, path: Path, number: int) -> str | None:
    """What is wrong with how a file is loaded, if anything."""
    error = torch.serialization.CheckpointError
    mapped = number % 13 == 0 and data.startswith(b"PK\x03\x04")
    source: Any = io.BytesIO(data)
    if mapped:
        path.write_bytes(data)
        source = path
    Watch.seen.clear()
    Watch.on = True
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        if number % 17 == 0 and data.startswith(b"PK\x03\x04"):
            torch.serialization.get_unsafe_globals_in_checkpoint(source)
        else:
            _use(torch.load(source, mmap=True if mapped else None))
    except error:
        pass
    except Hang:
        return "hang"
    except ValueError as wrong:
        if "torchscript checkpoint" not in str(wrong):
            return f"{type(wrong).__name__}: {wrong}"
    except BaseException as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        Watch.on = False
    return f"did {Watch.seen[0]}" if Watch.seen else None


def _use(value: Any) -> None:
    """Read every element that the file gave."""
    level, seen = [value], 0
    while level and seen < 500:
        item = level.pop()
        seen += 1
        if isinstance(item, torch.Tensor):
            if item.device.type == "cpu" and item.numel() <= 10_000:
                item.detach().clone()
        elif isinstance(item, dict):
            level.extend(list(item.values())[:100])
        elif isinstance(item, (list, tuple)):
            level.extend(item[:100])


def _child(first: int, count: int) -> None:
    """Load files; the number being loaded is always in front of the pipe."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.pt")
        assert torch.npu  # a module of our own, which a location in a file may ask for
        for number in range(40):  # loads what is loaded with the first use
            judged(file_of(number), path, number)
        for data in FILES:
            path.write_bytes(data)
            judged(data, path, 0)
            judged(data, path, 1)
            judged(data, path, 17)
        "".encode(
            "raw_unicode_escape"
        )  # of text opcodes, which pickletools knows; the codec is loaded by its first use
        sys.addaudithook(Watch())
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        out = sys.stdout
        for number in range(first, first + count):
            if number % 256 == 0 or count < 1000:
                out.write(f"{number}\n")
                out.flush()
            wrong = judged(file_of(number), path, number)
            if wrong is not None:
                out.write(json.dumps([number, wrong[:300]]) + "\n")
                out.flush()
    print("done")


def run(first: int, count: int, batch: int = BATCH) -> list[tuple[int, str]]:
    """Findings among `count` files."""
    findings: list[tuple[int, str]] = []
    start = first
    while start < first + count:
        size = min(batch, first + count - start)
        command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--child", str(start), str(size)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300 + size / 5, check=False)
            output, why = done.stdout, f"exit {done.returncode}: {done.stderr[-500:]}"
        except subprocess.TimeoutExpired as late:
            output, why = (late.stdout or b"").decode(), "hang"
        lines = output.split("\n")
        findings += [(n, text) for n, text in (json.loads(line) for line in lines if line.startswith("["))]
        if "done" not in lines:
            numbers = [int(line) for line in lines if line.isdigit()]
            last = numbers[-1] if numbers else start
            findings.append((last, f"{why} (within {256} after this number)"))
            start = last + 256
            continue
        start += size
    return findings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--child", type=int, nargs=2)
    given = parser.parse_args()
    if given.child:
        _child(*given.child)
        return
    if given.only is not None:
        data = file_of(given.only)
        if given.write:
            given.write.write_bytes(data)
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGALRM, _alarm)
        with tempfile.TemporaryDirectory() as folder:
            print(len(data), judged(data, Path(folder, "f.pt"), given.only))
        return
    begun, total = time.monotonic(), 0
    for start in range(given.first, given.first + given.count, BATCH):
        size = min(BATCH, given.first + given.count - start)
        found = run(start, size)
        total += len(found)
        for number, text in found:
            print(f"{number}: {text}")
        print(f"{start + size - given.first} files, {total} findings, {time.monotonic() - begun:.0f} s", flush=True)
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
