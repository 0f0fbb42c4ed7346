"""`python -m mindtorch_v2 doctor`: what of an Ascend installation was found, and the next thing to do.
`python -m mindtorch_v2 emulator`: where the emulator of its libraries is, for programs in C and C++."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    from ._backends.npu import emulator_tool

    parser = argparse.ArgumentParser(prog="python -m mindtorch_v2")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="look at the Ascend installation; exit code 1 if something is wrong")
    emulator_tool.add_arguments(commands.add_parser("emulator", help="build and run C and C++ programs without an NPU"))
    options = parser.parse_args()
    if options.command == "emulator":
        return emulator_tool.main(options)
    from ._backends.npu.doctor import main as doctor

    return doctor()


if __name__ == "__main__":
    sys.exit(main())
