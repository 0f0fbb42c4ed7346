"""Options of a command line whose defaults stand in the environment, as `PET_NAME`."""

from __future__ import annotations

import os
from argparse import Action
from typing import Any


class env(Action):
    """A value: the command line's, the environment's, the default."""

    def __init__(self, dest: str, default: Any = None, required: bool = False, **kwargs: Any) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A flag: set by the command line, or by a number other than 0 in the environment."""

    def __init__(self, dest: str, default: bool = False, **kwargs: Any) -> None:
        given = bool(int(os.environ.get(f"PET_{dest.upper()}", "1" if default else "0")))
        super().__init__(dest=dest, const=True, default=given, nargs=0, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, self.const)
