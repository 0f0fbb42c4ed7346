"""Making objects of the bytes of files, by their extension."""

from __future__ import annotations

import io
import json
import os.path
import pickle
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]


def basichandlers(extension: str, data: Any) -> Any:
    """Text, class numbers, JSON, pickles and tensors; None for other extensions. Pickles run code: trust them."""
    if extension in "txt text transcript":
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in "json jsn":
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return torch.load(io.BytesIO(data))
    return None


# What is made, its elements, and the mode of the image.
imagespecs = {
    prefix + mode + suffix: (kind, etype, mode)
    for prefix, kind in (("", "numpy"), ("torch", "torch"))
    for suffix, etype in (("8", "uint8"), ("", "float"))
    for mode in ("l", "rgb", "rgba")
} | {"torch": ("torch", "float", "rgb"), "pil": ("pil", "", "rgb")}
imagespecs |= {f"pil{mode}": ("pil", "", mode) for mode in ("l", "rgb", "rgba")}


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler that calls `f` for names that end in one of the extensions."""
    targets = [target.split(".") for target in extensions.lower().split()]

    def handler(key: str, data: Any) -> Any:
        found = key.lower().split(".")
        for target in targets:
            if len(target) <= len(found):
                # Only the first that is short enough is looked at, as in PyTorch.
                return f(data) if found[-len(target) :] == target else None
        return None

    return handler


class ImageHandler:
    """Decodes images into arrays, tensors or images of PIL, which must be installed."""

    def __init__(self, imagespec: str) -> None:
        if imagespec not in imagespecs:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        try:
            from importlib import import_module

            opened: Any = import_module("PIL.Image")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder."
                "Please use `pip install Pillow` to install the package"
            ) from error
        import numpy

        kind, etype, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            image = opened.open(stream)
            image.load()
            image = image.convert(mode.upper())
        if kind == "pil":
            return image
        array: Any = numpy.asarray(image)
        if array.dtype != numpy.uint8:
            raise AssertionError(f"numpy image array should be type uint8, but got {array.dtype}")
        if kind == "torch":
            made = torch.tensor(numpy.array(array.transpose(2, 0, 1)))
            return made if etype == "uint8" else made / 255.0
        return array if etype == "uint8" else array.astype("f") / 255.0


def imagehandler(imagespec: str) -> ImageHandler:
    """A handler for images."""
    return ImageHandler(imagespec)


def _refuse(what: str, package: str, extensions: str, extension: str) -> None:
    if extension in extensions.split():
        raise NotImplementedError(f"torch.utils.data: {what} files need {package}, which is not supported here")


def videohandler(extension: str, data: bytes) -> None:
    """Videos are refused; None for other extensions."""
    _refuse("video", "torchvision", "mp4 ogv mjpeg avi mov h264 mpg webm wmv", extension)


def audiohandler(extension: str, data: bytes) -> None:
    """Sounds are refused; None for other extensions."""
    _refuse("audio", "torchaudio", "flac mp3 sox wav m4a ogg wma", extension)


class MatHandler:
    """Reads Matlab's files."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        from scipy import io as files

        with io.BytesIO(data) as stream:
            return files.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A handler for Matlab's files."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The extension of a path, without its dot."""
    return os.path.splitext(pathname)[1][1:]


class Decoder:
    """Asks handlers, one after another, until one makes something of a file."""

    def __init__(self, *handler: Callable[..., Any], key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Ask more handlers, before the others."""
        self.handlers = [*handler, *self.handlers]

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        file = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(file, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """One file; as it is where no handler wants it."""
        if not data:
            return data
        if Decoder._is_stream_handle(data):
            stream, data = data, b"".join(data)
            stream.close()
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """What was made of each file, by its path."""
        result: dict[str, Any] = {}
        for key, value in [data] if isinstance(data, tuple) else data or ():
            if key[0] == "_" and isinstance(value, bytes):
                result[key] = value.decode("utf-8")
            else:
                result[key] = self.decode1(self.key_fn(key), value)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
