"""The metaclasses of datapipes: they wrap `__iter__` and `reset` of every class."""

from __future__ import annotations

import functools
from abc import ABCMeta
from typing import Any

from ._hook_iterator import _SnapshotState, hook_iterator


class GenericMeta(ABCMeta):
    """The base of the metaclasses."""


class _DataPipeMeta(GenericMeta):
    """The class of `MapDataPipe` classes."""


class _IterDataPipeMeta(_DataPipeMeta):
    """The class of `IterDataPipe` classes."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        if "reset" in namespace:
            reset = namespace["reset"]

            @functools.wraps(reset)
            def conditional_reset(*args: Any, **kwargs: Any) -> None:
                datapipe = args[0]
                # A restored datapipe goes on where its snapshot stands.
                if datapipe._snapshot_state is not _SnapshotState.Restored:
                    datapipe._number_of_samples_yielded = 0
                    datapipe._fast_forward_iterator = None
                    reset(*args, **kwargs)
                datapipe._snapshot_state = _SnapshotState.Iterating

            namespace["reset"] = conditional_reset
        if "__iter__" in namespace:
            hook_iterator(namespace)
        return super().__new__(cls, name, bases, namespace, **kwargs)
