"""Asks PyTorch for the answers of every call in the tables and writes them down.

`python -m tests.mindtorch_v2.limits.ask [group ...]`; with `--compare` nothing is written and ours is shown where it
differs.
"""

from __future__ import annotations

import sys

from ._table import groups, read, run, write


def main(arguments: list[str]) -> None:
    compare = "--compare" in arguments
    for group in [a for a in arguments if not a.startswith("--")] or groups():
        calls = read(group)
        sources = [call.source for call in calls]
        answers = run("mindtorch_v2" if compare else "torch", "cpu", sources)
        for call, answer in zip(calls, answers, strict=True):
            if not compare:
                call.answer = answer
            elif answer != call.expected:
                print(f"{group}: {call.source}\n  = {call.expected}\n  - {answer}")
        if not compare:
            write(group, calls)


if __name__ == "__main__":
    main(sys.argv[1:])
