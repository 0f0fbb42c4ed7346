"""How families of distributions hold their parameters: probabilities or logits, and those of a base distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._size import Size
from .._tensor import Tensor
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def one_of(probs: Any, logits: Any) -> str:
    """Which of the two was given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class Binary(Distribution):
    """Probabilities of single events, or their log odds; the one that was given is `_param`, the other is lazy."""

    _param: Tensor

    def _take(self, probs: Any, logits: Any, total_count: Any = None) -> None:
        """Keep what was given, broadcast against the number of trials where there is one."""
        name = one_of(probs, logits)
        given = logits if probs is None else probs
        if total_count is None:
            (self._param,) = broadcast_all(given)
        else:
            count, self._param = broadcast_all(total_count, given)
            self.total_count = count.type_as(self._param)
        setattr(self, name, self._param)

    def _expanded(
        self, cls: type, batch_shape: Sequence[int], _instance: Any, *names: str, kept: tuple[str, ...] = ()
    ) -> Any:
        new = super()._expanded(cls, batch_shape, _instance, "probs", "logits", *names, kept=kept)
        new._param = new.__dict__["logits" if "logits" in new.__dict__ else "probs"]
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        return self._param.size()


class OverCategorical(Distribution):
    """Parameters are those of the `Categorical` beneath."""

    _categorical: Any

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape


def of_base(name: str) -> Any:
    """A parameter that the base distribution holds."""
    return property(lambda self: getattr(self.base_dist, name))
