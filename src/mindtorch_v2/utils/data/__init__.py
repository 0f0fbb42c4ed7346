"""`torch.utils.data`: datasets, samplers, and loaders that fetch batches, in worker processes if asked to.

Invariant: datapipes are loaded when first asked for.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from .dataloader import DataLoader as DataLoader
from .dataloader import _DatasetKind as _DatasetKind
from .dataloader import default_collate as default_collate
from .dataloader import default_convert as default_convert
from .dataloader import get_worker_info as get_worker_info
from .dataset import ChainDataset as ChainDataset
from .dataset import ConcatDataset as ConcatDataset
from .dataset import Dataset as Dataset
from .dataset import IterableDataset as IterableDataset
from .dataset import StackDataset as StackDataset
from .dataset import Subset as Subset
from .dataset import TensorDataset as TensorDataset
from .dataset import random_split as random_split
from .distributed import DistributedSampler as DistributedSampler
from .sampler import BatchSampler as BatchSampler
from .sampler import RandomSampler as RandomSampler
from .sampler import Sampler as Sampler
from .sampler import SequentialSampler as SequentialSampler
from .sampler import SubsetRandomSampler as SubsetRandomSampler
from .sampler import WeightedRandomSampler as WeightedRandomSampler

_LAZY = dict.fromkeys("DataChunk DFIterDataPipe IterDataPipe MapDataPipe".split(), "datapipes.datapipe")
_LAZY.update(
    dict.fromkeys(
        (
            "argument_validation functional_datapipe guaranteed_datapipes_determinism non_deterministic "
            "runtime_validation runtime_validation_disabled"
        ).split(),
        "datapipes._decorator",
    )
)
_SUBMODULES = ("backward_compatibility", "datapipes", "graph", "graph_settings")

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return getattr(_import_module("." + _LAZY[name], __name__), name)
    if name in _SUBMODULES:
        return _import_module("." + name, __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_SUBMODULES})
