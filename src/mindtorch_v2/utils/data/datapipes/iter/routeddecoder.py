"""Files decoded by their extension."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import no_length
from ..utils.decoder import Decoder, extension_extract_fn, imagehandler
from ..utils.decoder import basichandlers as decoder_basichandlers

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[Any]):
    """Each path with what the first fitting handler makes of its file."""

    def __init__(self, datapipe: Any, *handlers: Callable[..., Any], key_fn: Any = extension_extract_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (decoder_basichandlers, imagehandler("torch"))), key_fn=key_fn)
        warnings.warn(
            f"`{type(self).__name__}()` and its functional API `.routed_decode()` are deprecated since 1.12 and will "
            "be removed in 1.13.\nSee https://github.com/pytorch/data/issues/163 for details.",
            FutureWarning,
            stacklevel=2,
        )

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Ask more handlers, before the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise no_length(self)
