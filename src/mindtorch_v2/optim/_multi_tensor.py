"""Optimisers of the usual names that always work on lists of tensors at once (`foreach=True`)."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from mindtorch_v2 import optim

__all__ = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


def partialclass(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A subclass whose constructor has these arguments already."""
    return type("NewCls", (cls,), {"__init__": partialmethod(cls.__init__, *args, **kwargs), "__module__": __name__})


Adam = partialclass(optim.Adam, foreach=True)
AdamW = partialclass(optim.AdamW, foreach=True)
NAdam = partialclass(optim.NAdam, foreach=True)
SGD = partialclass(optim.SGD, foreach=True)
RAdam = partialclass(optim.RAdam, foreach=True)
RMSprop = partialclass(optim.RMSprop, foreach=True)
Rprop = partialclass(optim.Rprop, foreach=True)
ASGD = partialclass(optim.ASGD, foreach=True)
Adamax = partialclass(optim.Adamax, foreach=True)
Adadelta = partialclass(optim.Adadelta, foreach=True)
Adagrad = partialclass(optim.Adagrad, foreach=True)
