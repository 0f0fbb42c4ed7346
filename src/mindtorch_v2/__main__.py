"""`python -m mindtorch_v2 doctor`: what of an Ascend installation was found, and the next thing to do."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mindtorch_v2")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="look at the Ascend installation; exit code 1 if something is wrong")
    parser.parse_args()
    from ._backends.npu.doctor import main as doctor

    return doctor()


if __name__ == "__main__":
    sys.exit(main())
