"""The former name of `torch.distributed.run`: one attempt, and the port of the first node."""

from __future__ import annotations

import warnings

from .run import main as _run

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Start what the command line says."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.",
        FutureWarning,
        stacklevel=2,
    )
    _run(args)


if __name__ == "__main__":
    main()
