"""Datapipes of data frames, which are not supported here: every name of PyTorch's refuses to be used."""

from __future__ import annotations

from typing import Any

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "DataFramesAsTuplesPipe"]


def __getattr__(name: str) -> Any:
    if name == "DFIterDataPipe":
        from ..datapipe import DFIterDataPipe

        return DFIterDataPipe
    if name in __all__:
        raise NotImplementedError(f"torch.utils.data.datapipes.dataframe.{name}: data frames are not supported here")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
