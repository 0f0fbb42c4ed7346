"""Helpers for training networks: `rnn` packs and pads sequences."""

from . import rnn

__all__ = ["rnn"]
