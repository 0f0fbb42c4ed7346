"""The one exception for files that cannot be loaded, and the words around it.

Invariant: whatever is wrong with a file (not with the call) is a `CheckpointError`; PyTorch raises UnpicklingError or
RuntimeError there, and it is both.
"""

from __future__ import annotations

import pickle
import re

UNSAFE_MESSAGE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
_CORRUPTED = (
    ". This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)
_LONGEST = 200


class CheckpointError(pickle.UnpicklingError, RuntimeError):
    """A file is malformed, or holds what may not be loaded from it."""

    __module__ = "mindtorch_v2.serialization"


class TruncatedCheckpoint(CheckpointError, EOFError):
    """A file ends too early; PyTorch raises EOFError."""

    __module__ = "mindtorch_v2.serialization"


class UnsupportedCheckpoint(CheckpointError, NotImplementedError):
    """A file holds something that exists in PyTorch and not here."""

    __module__ = "mindtorch_v2.serialization"


class Refused(CheckpointError):
    """The restricted unpickler met something it does not do; `advised` adds PyTorch's advice."""

    __module__ = "mindtorch_v2.serialization"


def corrupted(what: str, why: str) -> CheckpointError:
    """PyTorch's words for a broken archive."""
    return CheckpointError(f"PytorchStreamReader failed {what}: {why}{_CORRUPTED}")


def shown(value: object) -> str:
    """A value of a file in a message: what may be large by its type, long texts cut."""
    if not isinstance(value, (str, bytes, int, float, type, Exception)) and not callable(value):
        return str(type(value))
    text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def advised(error: Refused) -> CheckpointError:
    """What `torch.load(weights_only=True)` says about something the unpickler refused."""
    message = str(error)
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        text = (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {UNSAFE_MESSAGE}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
            f"recommended steps in the following error message.\n\tWeightsUnpickler error: {message}"
        )
    elif re.search(r"(\S+) must be (\S+) to load", message):
        return CheckpointError(f"Weights only load failed. {message}\n {UNSAFE_MESSAGE}\n")
    else:
        text = f"Weights only load failed. {UNSAFE_MESSAGE}\n"
        if not re.search(r"whose module (\S+) is blocked", message):
            text += (
                "Please file an issue with the following so that we can make `weights_only=True` compatible with your "
                "use case: WeightsUnpickler error: "
            )
        text += f"\n\n{message}"
    return CheckpointError(text + _DOCS)
