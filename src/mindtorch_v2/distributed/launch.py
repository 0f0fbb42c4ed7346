"""The former name of `torch.distributed.run`: tells workers their place by `--local-rank`, unless asked not to."""

from __future__ import annotations

import argparse
import warnings

from .run import get_args_parser as _options
from .run import parsed as _parsed
from .run import run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The arguments of torchrun, and `--use-env`."""
    parser = _options()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="LOCAL_RANK says the place, and no argument does"
    )
    return _parsed(parser, args)


def launch(args: argparse.Namespace) -> None:
    """Start what the arguments say."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    run(args)


def main(args: list[str] | None = None) -> None:
    """Start what the command line says."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.\n"
        "Note that --use-env is set by default in torchrun: a script that expects `--local-rank` may read\n"
        "os.environ['LOCAL_RANK'] instead.",
        FutureWarning,
        stacklevel=2,
    )
    launch(parse_args(args))


if __name__ == "__main__":
    main()
