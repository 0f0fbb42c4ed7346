"""Switches of what computes: `mha` for the fast way of attention."""

from . import mha

__all__ = ["mha"]
