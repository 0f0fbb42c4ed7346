"""Datapipes of data frames: pandas', or whatever `dataframe_wrapper.set_df_wrapper` was told about.

A datapipe of frames remembers what is done to "the frame" (`dataframes`) and does it to every frame that comes.
"""

from __future__ import annotations

from ..datapipe import DFIterDataPipe
from .dataframes import CaptureDataFrame
from .datapipes import DataFramesAsTuplesPipe

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "DataFramesAsTuplesPipe"]
