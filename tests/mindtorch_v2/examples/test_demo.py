"""The demo: trains, samples, goes on from its checkpoint with equal losses; its picture and its trace are in order."""

from __future__ import annotations

import json
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from .. import _npu
from .._subject import mindtorch_only
from .._subject import subject as torch
from ..profiler._format import check
from ._run import ROOT, run

pytestmark = mindtorch_only


def pixels(path: Path) -> Any:
    """Height x width x 3 bytes of a PNG file with the simplest settings; every checksum is checked."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        found[kind] = body
        at += 12 + length
    width, height, *form = struct.unpack(">IIBBBBB", found[b"IHDR"])
    assert form == [8, 2, 0, 0, 0] and b"IEND" in found
    rows = torch.tensor(list(zlib.decompress(found[b"IDAT"])), dtype=torch.uint8).view(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def losses(printed: str, name: str) -> list[str]:
    return re.findall(rf"{name} +([\d. ]+)", printed)[0].split()


@pytest.mark.parametrize("device", ["cpu", pytest.param("npu", marks=_npu.emulator_only)])
def test_the_demo(device: str, tmp_path: Path) -> None:
    steps = 8 if device == "cpu" else 4
    # The tests' own setting would choose the emulator; the demo is to choose it by itself.
    printed = run(
        "demo.py", "--device", device, "--small", "--steps", steps, "--trace", "--out", tmp_path, MINDTORCH_NPU=""
    )
    assert f"{steps}/{steps}  loss" in printed and "tokens/s  0:00 left" in printed
    assert "equal, to the last bit" in printed and losses(printed, "first run") == losses(printed, "continued")
    assert (tmp_path / "sample.txt").read_text().startswith("THE ")

    state = torch.load(tmp_path / "checkpoint.pt", map_location="cpu")
    assert state["step"] == steps * 3 // 4 and set(state) == {"model", "optimizer", "schedule", "step", "random"}

    picture = pixels(tmp_path / "loss.png")
    assert picture.shape == (520, 920, 3)
    for colour in (37, 99, 235), (234, 110, 20), (255, 255, 255):
        assert (picture == torch.tensor(colour, dtype=torch.uint8)).all(2).sum().item() > 50

    events = check(json.loads((tmp_path / "trace.json").read_text()))
    names = {e["name"] for e in events}
    assert {"aten::addmm", "Optimizer.step#AdamW.step", "AddmmBackward0"} <= names
    if device == "npu":
        launched = [e for e in events if e.get("cat") == "kernel"]
        assert launched and {e["ph"] for e in events} >= {"s", "f"}


def test_letters_and_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import chart

    try:
        assert chart.ticks(0, 10, 5) == [0, 2, 4, 6, 8, 10] and chart.ticks(1.43, 4.2, 6) == [
            1.5,
            2.0,
            2.5,
            3.0,
            3.5,
            4.0,
        ]
        narrow, wide = chart.text_strokes("il", 12)[1], chart.text_strokes("mw", 12)[1]
        assert 0 < narrow < wide
        canvas = chart.Canvas(40, 20)
        canvas.stroke([[(5, 10), (35, 10)]], (0, 0, 0), 4)
        assert canvas.pixels[10, 20].tolist() == [0, 0, 0] and canvas.pixels[2, 20].tolist() == [255, 255, 255]
        canvas.stroke([[(-50, -50), (-40, -40)]], (0, 0, 0), 2)  # nothing of it is on the picture
        assert canvas.pixels[0, 0].tolist() == [255, 255, 255]
    finally:
        sys.modules.pop("chart", None)


def test_a_run_can_be_taken_up_at_any_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import demo

    try:
        settings = demo.Settings(batch=3)
        whole = list(demo.Batches(100, settings, 1, 6))
        assert whole == [*demo.Batches(100, settings, 1, 4), *demo.Batches(100, settings, 5, 6)]
        assert len(whole) == 6 and all(len(batch) == 3 for batch in whole) and len({tuple(b) for b in whole}) == 6
    finally:
        for name in ("demo", "chart", "common"):
            sys.modules.pop(name, None)
