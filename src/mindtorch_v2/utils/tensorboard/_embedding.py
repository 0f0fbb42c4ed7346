"""The files that TensorBoard's projector reads: vectors, their labels and pictures, and where they are."""

from __future__ import annotations

import io
import math
import os
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np
from ._utils import make_grid


def _write(folder: str, name: str, data: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def make_tsv(metadata: Any, save_path: str, metadata_header: Any = None) -> None:
    """A label for each vector, or with a header several."""
    if not metadata_header:
        lines = [str(x) for x in metadata]
    else:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        lines = ["\t".join(str(e) for e in row) for row in [metadata_header, *metadata]]
    _write(save_path, "metadata.tsv", ("\n".join(lines) + "\n").encode())


def make_sprite(label_img: Any, save_path: str) -> None:
    """All pictures in one square."""
    from PIL import Image

    arranged = make_grid(make_np(label_img), ncols=math.ceil(label_img.size(0) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((arranged.shape[1], arranged.shape[1], 3))
    square[: arranged.shape[0]] = arranged
    out = io.BytesIO()
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(out, format="PNG")
    _write(save_path, "sprite.png", out.getvalue())


def get_embedding_info(metadata: Any, label_img: Any, subdir: str, global_step: Any, tag: str) -> Any:
    info = EmbeddingInfo()
    info.tensor_name = f"{tag}:{str(global_step).zfill(5)}"
    info.tensor_path = os.path.join(subdir, "tensors.tsv")
    if metadata is not None:
        info.metadata_path = os.path.join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = os.path.join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.size(3), label_img.size(2)])
    return info


def write_pbtxt(save_path: str, contents: str) -> None:
    _write(save_path, "projector_config.pbtxt", contents.encode())


def make_mat(matlist: Any, save_path: str) -> None:
    """The vectors, one on a line."""
    rows = ["\t".join(str(x.item()) for x in row) + "\n" for row in matlist]
    _write(save_path, "tensors.tsv", "".join(rows).encode())
