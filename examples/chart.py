"""Draws curves into a PNG file: axes, ticks, a legend, smooth lines. Nothing but tensors and zlib is needed.

Invariant: everything on the canvas is a set of strokes, drawn by the distance of each pixel from them; letters too.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mindtorch_v2 as torch

Point = tuple[float, float]
Colour = tuple[int, int, int]

INK, GREY, FAINT, PAPER = (40, 44, 52), (110, 116, 128), (226, 229, 235), (255, 255, 255)
BLUE, ORANGE, GREEN = (37, 99, 235), (234, 110, 20), (22, 145, 90)

# A stroke is a list of points on a grid: baseline 0, small letters 4 high, ascenders 6. After `~` corners are rounded.
_RING = "~2,4 0,4 0,0 2,0 4,0 4,4 2,4"
GLYPHS: dict[str, str] = {
    "a": f"{_RING}|4,4 4,0",
    "b": f"{_RING}|0,6 0,0",
    "c": "~4,3.3 3.6,4 2,4 0,4 0,0 2,0 3.6,0 4,0.7",
    "d": f"{_RING}|4,6 4,0",
    "e": "0.1,2 4,2|~4,2 4,4 2,4 0,4 0,0 2.2,0 3.5,0 4,0.8",
    "f": "~3.2,6 1.2,6.2 1.2,4 1.2,0|0,4 2.8,4",
    "g": f"{_RING}|~4,4 4,-2 2,-2 0.8,-2 0.2,-1.4",
    "h": "0,6 0,0|~0,2 0,4 2.2,4 4,4 4,2 4,0",
    "i": "0,4 0,0|0,5.8 0,5.9",
    "j": "~1,4 1,-2 0,-2|1,5.8 1,5.9",
    "k": "0,6 0,0|3.6,4 0,1.5|1.2,2.3 3.8,0",
    "l": "0,6 0,0",
    "m": "0,4 0,0|~0,2 0,4 1.8,4 3,4 3,2 3,0|~3,2 3,4 4.8,4 6,4 6,2 6,0",
    "n": "0,4 0,0|~0,2 0,4 2.2,4 4,4 4,2 4,0",
    "o": _RING,
    "p": f"{_RING}|0,4 0,-2",
    "q": f"{_RING}|4,4 4,-2",
    "r": "0,4 0,0|~0,2 0,4 1.6,4 2.6,4",
    "s": "~3.6,3.4 3,4 1.8,4 0.2,4 0.2,2.2 2,2 3.8,1.8 3.8,0 1.8,0 0.6,0 0,0.7",
    "t": "~1.2,5.4 1.2,1 1.2,0 3,0|0,4 2.8,4",
    "u": "~0,4 0,2 0,0 1.8,0 4,0 4,2|4,4 4,0",
    "v": "0,4 2,0 4,4",
    "w": "0,4 1.5,0 3,4 4.5,0 6,4",
    "x": "0,4 3.6,0|3.6,4 0,0",
    "y": "0,4 2,0|4,4 2,0 1.2,-2",
    "z": "0,4 3.6,4 0,0 3.6,0",
    "0": "~2,6 0,6 0,0 2,0 4,0 4,6 2,6",
    "1": "0.4,4.8 2,6 2,0",
    "2": "~0.2,4.6 0.2,6 2,6 4,6 4,4 3,2.8 0,0|0,0 4,0",
    "3": "~0.2,5.2 0.6,6 2,6 3.8,6 3.8,3.2 1.6,3.2|~1.6,3.2 4,3.2 4,0 2,0 0.4,0 0,1",
    "4": "3,0 3,6 0,1.8 4.2,1.8",
    "5": "3.7,6 0.6,6 0.3,3.3|~0.3,3.3 1,3.8 2,3.8 4,3.8 4,0 1.8,0 0.6,0 0,0.8",
    "6": "~3.6,5.4 3,6 2,6 0,5.6 0,0 2,0 4,0 4,3.6 2,3.6 0.4,3.6 0.1,2",
    "7": "0,6 4,6 1.4,0",
    "8": "~2,6 0.3,6 0.3,3.2 2,3.2 3.7,3.2 3.7,6 2,6|~2,3.2 0,3.2 0,0 2,0 4,0 4,3.2 2,3.2",
    "9": "~0.4,0.6 1,0 2,0 4,0.4 4,6 2,6 0,6 0,2.4 2,2.4 3.6,2.4 3.9,4",
    ".": "0,0 0,0.1",
    ",": "0.4,0.1 0,-1",
    ":": "0,0.2 0,0.3|0,3.4 0,3.5",
    "-": "0,2.2 2.6,2.2",
    "/": "0,-0.6 2.6,6.2",
    "%": "0,0 4,6|~1,6 0.1,6 0.1,4.2 1,4.2 1.9,4.2 1.9,6 1,6|~3,1.8 2.1,1.8 2.1,0 3,0 3.9,0 3.9,1.8 3,1.8",
    "(": "~1.4,6.6 0,5 0,0.2 1.4,-1.4",
    ")": "~0,6.6 1.4,5 1.4,0.2 0,-1.4",
    " ": "",
}


def rounded(points: list[Point]) -> list[Point]:
    """The corners cut off, three times over: a smooth curve with the same ends (Chaikin)."""
    for _ in range(3):
        cut = [points[0]]
        for (ax, ay), (bx, by) in zip(points, points[1:]):
            cut.append((0.75 * ax + 0.25 * bx, 0.75 * ay + 0.25 * by))
            cut.append((0.25 * ax + 0.75 * bx, 0.25 * ay + 0.75 * by))
        points = [*cut, points[-1]]
    return points


def glyph(letter: str) -> list[list[Point]]:
    strokes = []
    for text in filter(None, GLYPHS[letter].split("|")):
        x_y = (pair.split(",") for pair in text.lstrip("~").split())
        points = [(float(x), float(y)) for x, y in x_y]
        strokes.append(rounded(points) if text.startswith("~") else points)
    return strokes


def text_strokes(text: str, size: float) -> tuple[list[list[Point]], float]:
    """The strokes of a line of text, `size` pixels for six units of the grid, from x = 0; and its width."""
    unit, x, strokes = size / 6, 0.0, []
    for letter in text:
        made = glyph(letter)
        strokes += [[(x + px * unit, -py * unit) for px, py in stroke] for stroke in made]
        x += (max((px for stroke in made for px, _ in stroke), default=1.2) + 1.9) * unit
    return strokes, x - 1.9 * unit


class Canvas:
    """A picture to draw on: height x width x 3, numbers from 0 to 255."""

    def __init__(self, width: int, height: int) -> None:
        self.pixels = torch.full((height, width, 3), 255.0)

    def stroke(self, strokes: Sequence[Sequence[Point]], colour: Colour, width: float, strength: float = 1.0) -> None:
        """Lines with round ends. The cover of a pixel is what its distance from the nearest line says."""
        reach = width / 2 + 1
        xs, ys = [x for points in strokes for x, _ in points], [y for points in strokes for _, y in points]
        if not xs:
            return
        x0, y0 = max(0, int(min(xs) - reach)), max(0, int(min(ys) - reach))
        window = self.pixels[y0 : int(max(ys) + reach) + 2, x0 : int(max(xs) + reach) + 2]
        cover = torch.zeros(window.shape[:2])
        for points in strokes:
            for (ax, ay), (bx, by) in zip(points, points[1:]):
                left, top = max(0, int(min(ax, bx) - reach) - x0), max(0, int(min(ay, by) - reach) - y0)
                box = cover[top : int(max(ay, by) + reach) + 2 - y0, left : int(max(ax, bx) + reach) + 2 - x0]
                x = torch.arange(box.shape[1]) + (x0 + left + 0.5 - ax)
                y = (torch.arange(box.shape[0]) + (y0 + top + 0.5 - ay)).unsqueeze(1)
                dx, dy = bx - ax, by - ay
                along = ((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-9)).clamp(0, 1)
                distance = torch.hypot(x - along * dx, y - along * dy)
                torch.maximum(box, (width / 2 + 0.5 - distance).clamp(0, 1), out=box)
        window.lerp_(torch.tensor(colour, dtype=torch.float32), (cover * strength).unsqueeze(2))

    def text(
        self, x: float, y: float, text: str, size: float = 11, colour: Colour = GREY, anchor: float = 0.0
    ) -> float:
        """A line of text on the baseline y; anchor 0 begins at x, 0.5 is centred, 1 ends there. Gives its width."""
        strokes, width = text_strokes(text, size)
        self.stroke([[(x - anchor * width + px, y + py) for px, py in s] for s in strokes], colour, max(1.2, size / 8))
        return width

    def save(self, path: Path) -> None:
        path.write_bytes(png(self.pixels))


def png(pixels: torch.Tensor) -> bytes:
    """A PNG file of height x width x 3 numbers from 0 to 255."""
    height, width, _ = pixels.shape
    rows = pixels.round().clamp(0, 255).to(torch.uint8).view(height, width * 3)
    filtered = torch.cat([torch.zeros(height, 1, dtype=torch.uint8), rows], 1)  # filter 0 in front of each row

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(filtered.numpy().tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


@dataclass
class Curve:
    name: str
    points: list[Point]
    colour: Colour
    width: float = 2.2
    strength: float = 1.0
    dots: bool = False


def ticks(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers in a range: steps of 1, 2 or 5 times a power of ten."""
    raw = max(high - low, 1e-9) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    return [round(n * step, 10) for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


@dataclass
class Chart:
    """A chart of curves over one pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: list[Curve] = field(default_factory=list)
    note: str = ""
    width: int = 920
    height: int = 520

    def draw(self) -> Canvas:
        canvas = Canvas(self.width, self.height)
        left, right, top, bottom = 74, self.width - 34, 84, self.height - 66
        points = [p for curve in self.curves for p in curve.points if math.isfinite(p[1])]
        x0, x1 = 0.0, max(x for x, _ in points)
        low, high = min(y for _, y in points), max(y for _, y in points)
        y_ticks = ticks(low - 0.06 * (high - low), high + 0.06 * (high - low), 8)
        y0, y1 = low - 0.08 * (high - low), high + 0.08 * (high - low)

        def place(p: Point) -> Point:
            return left + (p[0] - x0) / (x1 - x0) * (right - left), bottom - (p[1] - y0) / (y1 - y0) * (bottom - top)

        digits = max(0, -math.floor(math.log10(y_ticks[1] - y_ticks[0]) + 1e-9)) if len(y_ticks) > 1 else 2
        for value in y_ticks:
            y = round(place((x0, value))[1]) + 0.5
            canvas.stroke([[(left, y), (right, y)]], FAINT, 1)
            canvas.text(left - 12, y + 4.5, f"{value:.{digits}f}", anchor=1)
        for value in ticks(x0, x1, 8):
            x = round(place((value, y0))[0]) + 0.5
            canvas.stroke([[(x, bottom), (x, bottom + 5)]], GREY, 1)
            canvas.text(x, bottom + 24, f"{value:.0f}", anchor=0.5)
        canvas.stroke([[(left, bottom + 0.5), (right, bottom + 0.5)]], GREY, 1.2)
        canvas.text(left, 34, self.title, size=16, colour=INK)
        canvas.text(left, 60, self.y_label, size=11.5)
        canvas.text(right, bottom + 48, self.x_label, size=11.5, anchor=1)
        canvas.text(left, bottom + 48, self.note, size=11)
        for curve in self.curves:
            line = [place(p) for p in curve.points if math.isfinite(p[1])]
            canvas.stroke([line], curve.colour, curve.width, curve.strength)
            if curve.dots:
                canvas.stroke([[p, p] for p in line], curve.colour, 7)
        self._legend(canvas, right, 60)
        return canvas

    def _legend(self, canvas: Canvas, right: float, y: float) -> None:
        for curve in reversed(self.curves):
            right -= canvas.text(right, y, curve.name, size=11.5, colour=INK, anchor=1) + 10
            canvas.stroke([[(right - 22, y - 4), (right, y - 4)]], curve.colour, 3.4, curve.strength)
            right -= 44
