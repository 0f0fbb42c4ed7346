"""`FileCheck`: assertions about what a text contains and in which order, as LLVM's tool of that name has them.

Checks are matched one after another, each from where the last match ended. Consecutive DAG checks form a group whose
members match in any order, and NOT checks look between the matches around them. Invariant: an error shows the place in
the text, with lines around it and PyTorch's marks below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FileCheck"]

# What can stand after CHECK in a line of instructions.
_KINDS = ("", "-NEXT", "-SAME", "-NOT", "-DAG", "-COUNT", "-SOURCE-HIGHLIGHTED", "-REGEX")
_CONTEXT = 3
_CHECK = re.compile(r"#[ \t]{0,6}CHECK")


@dataclass(frozen=True)
class _Check:
    kind: str
    text: str
    count: int | None = None

    def __str__(self) -> str:
        count = "" if self.count is None else f"-{self.count}"
        return f"CHECK{self.kind}{count}: {self.text}"


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"}
    escapes |= {"\t": "\\t", "\v": "\\v"}
    plain = (escapes.get(c) or (c if c.isprintable() else "".join(f"\\{b:03o}" for b in c.encode())) for c in text)
    return '"' + "".join(plain) + '"'


def _highlighted(text: str, start: int, end: int) -> str:
    """The lines around `text[start:end]`, with a row of marks below each line of it."""
    if end - start == len(text):
        return text
    end = min(end, len(text))
    before = text.rfind("\n", 0, start) + 1
    first = before
    lines = 0
    while first > 0:
        lines += text[first - 1] == "\n"
        if lines >= _CONTEXT:
            break
        first -= 1
    last = _line_end(text, end)
    lines = 0
    while last < len(text):
        lines += text[last] == "\n"
        if lines >= _CONTEXT:
            break
        last += 1
    out = [text[first:start]]
    place = start
    while place < end:
        stop = _line_end(text, place)
        out.append(text[place : stop + 1])
        if not out[-1].endswith("\n"):
            out.append("\n")
        # PyTorch looks one character beyond the range, and beyond the text, for more to mark.
        out.append(_marks(text, place, start, end, last_line=not (text + "\0")[stop + 1 : end + 1].strip(" \n")))
        place = stop + 1
    # A range that ends before it starts (PyTorch's searches make some) shows the rest of the text.
    rest = text[place : last if last >= place else len(text)]
    return "".join(out) + rest + ("\n" if rest and not rest.endswith("\n") else "")


def _line_end(text: str, place: int) -> int:
    found = text.find("\n", place)
    return len(text) if found < 0 else found


def _marks(text: str, place: int, start: int, end: int, last_line: bool) -> str:
    begin = text.rfind("\n", 0, place) + 1
    stop = min(_line_end(text, place), end)
    blank = 0
    while begin + blank < stop and (text[begin + blank] == " " or begin + blank < start):
        blank += 1
    marked = stop - begin - blank
    if marked <= 0:
        return ""
    return " " * blank + "~" * marked + (" <--- HERE" if last_line else "") + "\n"


class FileCheck:
    """A list of checks; `run` applies them to a text and raises a RuntimeError at the first that fails."""

    def __init__(self) -> None:
        self._groups: list[list[_Check]] = []
        self._has_run = False

    def __del__(self) -> None:
        # Checks that are never run test nothing.
        if not self._has_run:
            checks = "".join(f"\t{check}\n" for group in self._groups for check in group)
            print(f"You have not run this instance of FileCheck!\nFileCheck checks:\n{checks}", end="")

    # -- checks -------------------------------------------------------------------------------------------------------
    def check(self, test_string: str) -> FileCheck:
        """The text occurs after the last match."""
        return self._add(_Check("", test_string))

    def check_not(self, test_string: str) -> FileCheck:
        """The text does not occur between the last match and the next one."""
        return self._add(_Check("-NOT", test_string))

    def check_same(self, test_string: str) -> FileCheck:
        """The text occurs after the last match, and on its line."""
        return self._add(_Check("-SAME", test_string))

    def check_next(self, test_string: str) -> FileCheck:
        """The text occurs on the line after the last match."""
        return self._add(_Check("-NEXT", test_string))

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text occurs `count` times after the last match; with `exactly`, not once more before the next match."""
        if count == 0 and not exactly:
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._add(_Check("-COUNT", test_string, count))
        return self.check_not(test_string) if exactly else self

    def check_dag(self, test_string: str) -> FileCheck:
        """The text occurs after the last match; DAG checks that follow each other match in any order."""
        return self._add(_Check("-DAG", test_string))

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """The text occurs after the last match with marks (`~`) below it, and none beside them."""
        return self._add(_Check("-SOURCE-HIGHLIGHTED", test_string))

    def check_regex(self, test_string: str) -> FileCheck:
        """The regular expression matches after the last match."""
        return self._add(_Check("-REGEX", test_string))

    def _add(self, check: _Check) -> FileCheck:
        last = self._groups[-1] if self._groups else None
        if last is not None and check.kind in ("-NOT", "-DAG") and last[0].kind == check.kind:
            last.append(check)
        else:
            self._groups.append([check])
        self._has_run = False
        return self

    # -- running ------------------------------------------------------------------------------------------------------
    def run(self, *args: str, **kwargs: str) -> None:
        """`run(text)`, or `run(checks_file, test_file)` with the checks as lines `# CHECK: ...` of a first text."""
        names = ("test_file",) if len(args) + len(kwargs) == 1 else ("checks_file", "test_file")
        given = dict(zip(names, args), **kwargs)
        if len(args) > len(names) or set(given) != set(names):
            raise TypeError("run(): incompatible function arguments: expected (test_file) or (checks_file, test_file)")
        for name, value in given.items():
            if not isinstance(value, str):
                raise TypeError(f"run(): incompatible function arguments: {name} is {type(value).__name__}, not str")
        self._has_run = True
        if "checks_file" in given:
            self._parse(given["checks_file"])
        self._has_run = True
        if not self._groups:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        self._match(given["test_file"])

    def _match(self, text: str) -> None:
        end = 0
        nots: list[_Check] = []
        for group in self._groups:
            if group[0].kind == "-NOT":
                nots = group
                continue
            start, stop = _match_group(group, text, end)
            for check in nots:
                _refuse(text, check.text, end, start, check)
            nots, end = [], stop
        for check in nots:
            _refuse(text, check.text, end, len(text) + 1, check)

    def _parse(self, text: str) -> None:
        """Add the checks of lines like `# CHECK-NEXT: text`."""
        place = _next_check(text, 0)
        while place is not None:
            place = _next_check(text, self._parse_one(text, place))

    def _parse_one(self, text: str, place: int) -> int:
        for kind in _KINDS:
            prefix = kind + ("-" if kind == "-COUNT" else ": ")
            if not text.startswith(prefix, place):
                continue
            begin = place + len(prefix)
            stop = _line_end(text, begin)
            if kind != "-COUNT":
                self._add(_Check(kind, text[begin:stop]))
                return stop
            exactly = text.startswith("EXACTLY-", begin)
            begin += len("EXACTLY-") if exactly else 0
            colon = _find(text, ":", begin, None, stop)
            number = re.match(r"\s*[+-]?\d+", text[begin:colon])
            if number is None:
                raise ValueError("stoll")
            self.check_count(text[colon + 2 : stop], int(number[0]), exactly)
            return stop
        raise RuntimeError(f"Could not parse check at:\n{_highlighted(text, place, place + 1)}Check for bad input.")


def _next_check(text: str, place: int) -> int | None:
    """Where the word CHECK after a `#` and at most a few blanks ends."""
    found = _CHECK.search(text, place)
    return None if found is None else found.end()


def _place(text: str, part: str, start: int) -> int:
    # As in PyTorch nothing is found at the beginning of the text, wherever the search starts.
    return text.find(part, start) if part else 0


def _find(text: str, part: str, start: int, check: _Check | None, stop: int | None = None) -> int:
    stop = len(text) if stop is None else stop
    place = _place(text, part, start)
    if place < 0 or place + len(part) > stop:
        origin = "" if check is None else f"From {check}\n"
        # PyTorch takes the length of what it looked for as the end of the range it shows.
        raise RuntimeError(
            f"Expected to find {_quoted(part)} but did not find it\nSearched string:\n"
            f"{_highlighted(text, start, len(part))}{origin}"
        )
    return place


def _refuse(text: str, part: str, start: int, stop: int, check: _Check) -> None:
    place = _place(text, part, start)
    if stop >= start and place >= 0 and place + len(part) <= stop:
        raise RuntimeError(
            f"Expected to not find {_quoted(part)} but found it\n"
            f"{_highlighted(text, place, place + len(part))}From {check}\n"
        )


def _match_group(group: list[_Check], text: str, start: int) -> tuple[int, int]:
    """Where a check, or a group of DAG checks, matches at or after `start`."""
    check = group[0]
    size = len(check.text)
    if check.kind == "-DAG":
        places = [_find(text, member.text, start, member) for member in group]
        return min(places), max(place + len(member.text) for place, member in zip(places, group))
    if check.kind == "-COUNT":
        first, place = -1, start
        for _ in range(check.count or 0):
            place = _find(text, check.text, place, check) + size
            first = place - size if first < 0 else first
        return first, place
    if check.kind == "-SOURCE-HIGHLIGHTED":
        _find_highlighted(check, text, start)
        # As in PyTorch the next check begins where this one did.
        return start, start
    if check.kind == "-REGEX":
        try:
            found = re.compile(check.text).search(text, start)
        except re.error as error:
            raise RuntimeError(f"Invalid regular expression in {check}: {error}") from None
        if found is None:
            raise RuntimeError(
                f"Expected to find regex {_quoted(check.text)} but did not find it\nSearched string:\nFrom {check}\n"
            )
        # As in PyTorch the place of a regular expression counts from where the search began.
        return found.start() - start, found.end() - start
    if check.kind == "-NEXT":
        start = _find(text, "\n", start, check) + 1
    place = _find(text, check.text, start, check)
    if check.kind in ("-NEXT", "-SAME"):
        _refuse(text, "\n", start, place, check)
    return place, place + size


def _find_highlighted(check: _Check, text: str, start: int) -> None:
    def fail(place: int) -> RuntimeError:
        return RuntimeError(
            f"Expected to find {_quoted(check.text)}highlighted but it is not.\n"
            f"{_highlighted(text, place, len(check.text))}"
        )

    size = len(check.text)
    place = _find(text, check.text, start, check)
    while place >= 0:
        column = place - (text.rfind("\n", 0, place) + 1)
        begin = _line_end(text, place) + 1 + column
        if begin + size >= len(text):
            raise fail(place)
        if text[begin : begin + size] == "~" * size:
            _refuse(text, "~", begin - 1, begin, check)
            _refuse(text, "~", begin + size, begin + size + 1, check)
            return
        place = text.find(check.text, place + 1)
    raise fail(start)
