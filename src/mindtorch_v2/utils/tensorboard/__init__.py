"""`torch.utils.tensorboard`: what a program learns, written down for TensorBoard, whose package must be installed."""

from __future__ import annotations

import tensorboard as _tensorboard
from tensorboard.summary.writer.record_writer import RecordWriter

if tuple(int(part) for part in getattr(_tensorboard, "__version__", "0").split(".")[:2]) < (1, 15):
    raise ImportError("TensorBoard logging requires TensorBoard version 1.15 or above")

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
