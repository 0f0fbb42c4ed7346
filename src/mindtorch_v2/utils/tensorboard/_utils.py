"""Pictures: figures drawn, several put side by side, axes in the order that PNGs have."""

from __future__ import annotations

from typing import Any

import numpy as np


def figure_to_image(figures: Any, close: bool = True) -> Any:
    """A matplotlib figure, or a list of them, as an array of channels, rows and columns."""
    import matplotlib.pyplot as plt
    from matplotlib.backends import backend_agg

    def draw(figure: Any) -> Any:
        canvas = backend_agg.FigureCanvasAgg(figure)
        canvas.draw()
        data = np.frombuffer(canvas.buffer_rgba(), dtype=np.uint8)
        width, height = figure.canvas.get_width_height()
        if close:
            plt.close(figure)
        return np.moveaxis(data.reshape([height, width, 4])[:, :, :3], 2, 0)

    return np.stack([draw(f) for f in figures]) if isinstance(figures, list) else draw(figures)


def _prepare_video(video: Any) -> Any:
    """(batch, time, channel, height, width) as (time, height, width, channel): the batch is spread over a grid, whose
    size is a power of two; free places are black."""
    batch, time, channels, height, width = video.shape
    if video.dtype == np.uint8:
        video = np.float32(video) / 255.0
    if batch == 0 or batch & (batch - 1):
        missing = 2 ** batch.bit_length() - batch
        video = np.concatenate((video, np.zeros((missing, time, channels, height, width))), axis=0)
    rows = 2 ** ((batch.bit_length() - 1) // 2)
    columns = video.shape[0] // rows
    grid = video.reshape(rows, columns, time, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(time, rows * height, columns * width, channels)


def make_grid(images: Any, ncols: int = 8) -> Any:
    """Pictures (N, 1 or 3, H, W) in rows of `ncols`, as one picture of three channels."""
    if not isinstance(images, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if images.shape[1] == 1:
        images = np.concatenate([images, images, images], 1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = images.shape
    ncols = min(count, ncols)
    nrows = int(np.ceil(float(count) / ncols))
    canvas = np.zeros((3, height * nrows, width * ncols), dtype=images.dtype)
    for i in range(count):
        y, x = i // ncols * height, i % ncols * width
        canvas[:, y : y + height, x : x + width] = images[i]
    return canvas


def convert_to_HWC(tensor: Any, input_format: str) -> Any:
    """A picture, or a grid of several, as rows, columns and channels; `input_format` names the axes, such as CHW."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            f"You can not use the same dimension shorthand twice.             input_format: {input_format}"
        )
    if len(tensor.shape) != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different.         tensor shape: "
            f"{tensor.shape}, input_format: {input_format}"
        )
    axes = input_format.upper()
    if len(axes) == 4:
        return make_grid(tensor.transpose([axes.find(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(axes) == 3:
        picture = tensor.transpose([axes.find(c) for c in "HWC"])
        return np.concatenate([picture] * 3, 2) if picture.shape[2] == 1 else picture
    if len(axes) == 2:
        return np.stack([tensor.transpose([axes.find(c) for c in "HW"])] * 3, 2)
    return None
