"""Summaries: TensorBoard's messages, made from numbers, tensors and pictures."""

from __future__ import annotations

import io
import json
import logging
import struct
import tempfile
import wave
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

import mindtorch_v2 as torch

from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC

__all__ = [
    "half_to_int",
    "int_to_half",
    "hparams",
    "scalar",
    "histogram_raw",
    "histogram",
    "make_histogram",
    "image",
    "image_boxes",
    "draw_boxes",
    "make_image",
    "video",
    "make_video",
    "audio",
    "custom_scalars",
    "text",
    "tensor_proto",
    "pr_curve_raw",
    "pr_curve",
    "compute_curve",
    "mesh",
]

logger = logging.getLogger(__name__)


def half_to_int(f: float) -> int:
    """The bits of a float32 as an integer, which is how half-precision values are written here."""
    bits: int = struct.unpack("i", struct.pack("f", f))[0]
    return bits


def int_to_half(i: int) -> float:
    """The number that `half_to_int` was given."""
    value: float = struct.unpack("f", struct.pack("i", i))[0]
    return value


def _summary(tag: str, plugin: str | None = None, content: bytes | None = None, **value: Any) -> Any:
    """A summary of one value, for a plugin of TensorBoard if it is named."""
    if plugin is not None:
        data = {"plugin_name": plugin} if content is None else {"plugin_name": plugin, "content": content}
        value["metadata"] = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(**data))
    return Summary(value=[Summary.Value(tag=tag, **value)])


def _shape(sizes: Any) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


# -- numbers ------------------------------------------------------------------------------------------------------
def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """One number."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions).             Was given size: "
            f"{array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return _summary(name, simple_value=value)
    if double_precision:
        return _summary(name, "scalars", tensor=TensorProto(double_val=[value], dtype="DT_DOUBLE"))
    return _summary(name, "scalars", tensor=TensorProto(float_val=[value], dtype="DT_FLOAT"))


def _halves(t: Any) -> list[int]:
    return [half_to_int(x) for x in t.flatten().tolist()]


def _values(t: Any) -> Any:
    return t.flatten().tolist()


def _parts(t: Any) -> Any:
    return torch.view_as_real(t).flatten().tolist()


# By the dtype's name: TensorFlow's, the field of the message, and how it is filled.
_TENSORS: dict[str, tuple[str, str, Any]] = {
    "float16": ("DT_HALF", "half_val", _halves),
    "bfloat16": ("DT_BFLOAT16", "half_val", _halves),
    "float32": ("DT_FLOAT", "float_val", _values),
    "float64": ("DT_DOUBLE", "double_val", _values),
    "int8": ("DT_INT8", "int_val", _values),
    "uint8": ("DT_UINT8", "uint32_val", _values),
    "int16": ("DT_INT16", "int_val", _values),
    "int32": ("DT_INT32", "int_val", _values),
    "int64": ("DT_INT64", "int64_val", _values),
    "complex32": ("DT_COMPLEX32", "scomplex_val", _parts),
    "complex64": ("DT_COMPLEX64", "scomplex_val", _parts),
    "complex128": ("DT_COMPLEX128", "dcomplex_val", _parts),
    "bool": ("DT_BOOL", "bool_val", _values),
}


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A whole tensor."""
    if tensor.numel() * tensor.itemsize >= (1 << 31):
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    known = _TENSORS.get(str(tensor.dtype).rpartition(".")[2])
    if known is None:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field, values = known
    message = TensorProto(dtype=kind, tensor_shape=_shape(tensor.shape), **{field: values(tensor)})
    return _summary(tag, "tensor", tensor=message)


def histogram_raw(
    name: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram that somebody has counted already."""
    counted = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _summary(name, histo=counted)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How often values fall into each bin."""
    return _summary(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """Counts without the empty bins at both ends, but for one before the first; at most about `max_bins` of them."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        if len(counts) % step:
            counts = np.pad(counts, pad_width=[[0, step - len(counts) % step]], mode="constant", constant_values=0)
        counts = counts.reshape(-1, step).sum(axis=-1)
        limits = np.append(limits[:-1:step], limits[-1])
    # TensorBoard wants the left edge of the first bin too: an empty bin before it.
    filled = np.flatnonzero(counts > 0)
    first, last = int(filled[0]), int(filled[-1]) + 1
    counts = counts[first - 1 : last] if first > 0 else np.concatenate([[0], counts[:last]])
    limits = limits[first : last + 1]
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits.tolist(),
        bucket=counts.tolist(),
    )


# -- pictures, sound and text -------------------------------------------------------------------------------------
def _calc_scale_factor(tensor: Any) -> int:
    """What makes the values of a picture bytes: they are bytes, or go from 0 to 1."""
    return 1 if (tensor.numpy() if isinstance(tensor, torch.Tensor) else tensor).dtype == np.uint8 else 255


def _bytes(picture: Any) -> Any:
    """Values from 0 to 1, or bytes, as bytes."""
    return (picture.astype(np.float32) * _calc_scale_factor(picture)).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or several in a grid."""
    return _summary(tag, image=make_image(_bytes(convert_to_HWC(make_np(tensor), dataformats)), rescale=rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Any:
    """A picture with boxes drawn on it."""
    picture = _bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    return _summary(tag, image=make_image(picture, rescale=rescale, rois=make_np(tensor_boxes), labels=labels))


def draw_boxes(disp_image: Any, boxes: Any, labels: Any = None) -> Any:
    """Boxes (left, top, right, bottom) in red, with their labels."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default()
    for i in range(boxes.shape[0]):
        draw = ImageDraw.Draw(disp_image)
        left, top, right, bottom = (boxes[i, k] for k in range(4))
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            width, height = x1 - x0, y1 - y0
            margin = np.ceil(0.05 * height)
            draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
            draw.text((left + margin, bottom - height - margin), labels[i], fill="black", font=font)
    return disp_image


def make_image(tensor: Any, rescale: float = 1, rois: Any = None, labels: Any = None) -> Any:
    """An array of rows, columns and channels as a PNG in a message."""
    from PIL import Image

    height, width, channel = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels=labels)
    picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channel, encoded_image_string=out.getvalue())


def video(tag: str, tensor: Any, fps: int = 4) -> Any:
    """A film (batch, time, channel, height, width); needs the package moviepy."""
    return _summary(tag, image=make_video(_bytes(_prepare_video(make_np(tensor))), fps))


def make_video(tensor: Any, fps: int) -> Any:
    """Frames as a GIF in a message; None, and a line on the screen, without moviepy."""
    try:
        import moviepy  # noqa: F401
    except ImportError:
        print("add_video needs package moviepy")
        return None
    try:
        from moviepy import editor
    except ImportError:
        print(
            "moviepy is installed, but can't import moviepy.editor.",
            "Some packages could be missing [imageio, requests]",
        )
        return None
    _, height, width, channels = tensor.shape
    with tempfile.NamedTemporaryFile(suffix=".gif") as f:
        editor.ImageSequenceClip(list(tensor), fps=fps).write_gif(f.name, verbose=False, logger=None)
        f.seek(0)
        data = f.read()
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=data)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Sound of one channel, values from -1 to 1."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    array = (array * np.iinfo(np.int16).max).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(sample_rate)
        f.writeframes(array.tobytes())
    message = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=array.shape[-1],
        encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=message)


def text(tag: str, text: str) -> Any:
    message = TensorProto(dtype="DT_STRING", string_val=[text.encode("utf_8")], tensor_shape=_shape([1]))
    content = TextPluginData(version=0).SerializeToString()
    return _summary(tag + "/text_summary", "text", content, tensor=message)


# -- charts -------------------------------------------------------------------------------------------------------
def custom_scalars(layout: Any) -> Any:
    """Charts of several series: `{category: {title: ["Multiline" or "Margin", tags]}}`."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in ((title, chart[:2]) for title, chart in charts.items()):
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                made.append(layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags)))
        categories.append(layout_pb2.Category(title=category, chart=made))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    message = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _summary("custom_scalars__config__", "custom_scalars", tensor=message)


def _curve(tag: str, data: Any, num_thresholds: int) -> Any:
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    message = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(data.shape[:2]))
    return _summary(tag, "pr_curves", content, tensor=message)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """Precision and recall that somebody has counted already."""
    return _curve(tag, np.stack((tp, fp, tn, fn, precision, recall)), min(num_thresholds, 127))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall at thresholds between 0 and 1; the format has room for 127."""
    num_thresholds = min(num_thresholds, 127)
    return _curve(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


def compute_curve(labels: Any, predictions: Any, num_thresholds: Any = None, weights: Any = None) -> Any:
    """True and false positives and negatives, precision and recall, at each threshold."""
    weights = 1.0 if weights is None else weights
    at = np.int32(np.floor(predictions * (num_thresholds - 1)))
    truth = labels.astype(np.float64)

    def from_above(weight: Any) -> Any:
        """The sum of weights at each threshold and above."""
        found, _ = np.histogram(at, bins=num_thresholds, range=(0, num_thresholds - 1), weights=weight)
        return np.cumsum(found[::-1])[::-1]

    tp, fp = from_above(truth * weights), from_above((1.0 - truth) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    return np.stack((tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)))


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Any,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """Points in space, with colours and the triangles between them."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    kinds = ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR))
    given = [(torch.as_tensor(value), kind) for value, kind in kinds if value is not None]
    components = metadata.get_components_bitmask([kind for _, kind in given])
    values = []
    for tensor, kind in given:
        about = metadata.create_summary_metadata(
            tag, display_name, kind, components, tensor.shape, description, json_config=config
        )
        message = TensorProto(
            dtype="DT_FLOAT", float_val=tensor.reshape(-1).tolist(), tensor_shape=_shape(tensor.shape[:3])
        )
        values.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=message, metadata=about))
    return Summary(value=values)


# -- hyperparameters ----------------------------------------------------------------------------------------------
def _check_hparams(hparam_dict: Any, metric_dict: Any, domains: Any) -> None:
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            said = f"parameter: {name} should be a dictionary, nothing logged."
            logger.warning("%s", said)
            raise TypeError(said)
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for k, v in domains.items():
        if k not in hparam_dict or not isinstance(v, list) or not all(isinstance(d, type(hparam_dict[k])) for d in v):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{k}] should be a list of same type as hparam_dict[{k}]."
            )


def hparams(hparam_dict: Any, metric_dict: Any, hparam_domain_discrete: Any = None) -> tuple[Any, Any, Any]:
    """Three summaries: what the experiment varies, the values of this run, and that it ended well."""
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    domains = hparam_domain_discrete or {}
    _check_hparams(hparam_dict, metric_dict, domains)
    infos = []
    begun = plugin_data_pb2.SessionStartInfo()
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, (int, float)):
            field, kind = "number_value", "DATA_TYPE_FLOAT64"
        elif isinstance(value, str):
            field, kind = "string_value", "DATA_TYPE_STRING"
        elif isinstance(value, torch.Tensor):
            value, field, kind = make_np(value)[0], "number_value", "DATA_TYPE_FLOAT64"
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        setattr(begun.hparams[name], field, value)
        domain = None
        if name in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: d}) for d in domains[name]])
        infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kind), domain_discrete=domain))

    def about(tag: str, **what: Any) -> Any:
        content = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **what)
        return _summary(tag, metadata.PLUGIN_NAME, content.SerializeToString())

    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    return (
        about(metadata.EXPERIMENT_TAG, experiment=experiment),
        about(metadata.SESSION_START_INFO_TAG, session_start_info=begun),
        about(metadata.SESSION_END_INFO_TAG, session_end_info=ended),
    )
