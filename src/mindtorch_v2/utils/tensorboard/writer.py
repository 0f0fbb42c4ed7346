"""`SummaryWriter`: puts summaries into the event files of a folder, where TensorBoard finds them."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any, NoReturn

from google.protobuf import text_format
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np
from ._embedding import get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._utils import figure_to_image

__all__ = ["FileWriter", "SummaryWriter"]


NO_GRAPH = "models are not traced into graphs here; torch.profiler.tensorboard_trace_handler shows operators that run"


class FileWriter:
    """Writes events into one file of a folder, from a thread of its own."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        # A path is not what TensorBoard expects.
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        folder: str = self.event_writer.get_logdir()
        return folder

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            # A tensor or NumPy number may count steps.
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """A graph and what its steps took, both as messages of TensorFlow."""
        graph, stats = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on in a new file after `close`."""
        self.event_writer.reopen()


def _default_bins() -> list[float]:
    """TensorFlow's: each limit is a tenth larger than the one before, from 1e-12 to 1e20, on both sides of zero."""
    limits = []
    v = 1e-12
    while v < 1e20:
        limits.append(v)
        v *= 1.1
    return [-v for v in reversed(limits)] + [0] + limits


class SummaryWriter:
    """Writes what a program measures into `log_dir`, by default `runs/<date>_<host><comment>`.

    Events from `purge_step` on that an earlier run left there are hidden. `max_queue` events wait for at most
    `flush_secs` seconds before they are written.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")  # noqa: DTZ005 (the user's own time, as in PyTorch)
            log_dir = os.path.join("runs", now + "_" + socket.gethostname() + comment)
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _get_file_writer(self) -> FileWriter:
        """The writer, opened again if it was closed."""
        if self.file_writer is None or self.all_writers is None:
            made = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.file_writer = made
            self.all_writers = {made.get_logdir(): made}
            if self.purge_step is not None:
                made.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                made.add_event(Event(step=self.purge_step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def _add(self, message: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(message, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder that is written to."""
        return self.log_dir

    # -- numbers ----------------------------------------------------------------------------------------------------
    def add_hparams(
        self,
        hparam_dict: Any,
        metric_dict: Any,
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """What this run was made with and what came out, to be compared with other runs."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer._add(message, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number of a series."""
        message = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(message, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Numbers of several series in one chart; each has a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            name = folder + "/" + main_tag.replace("/", "_") + "_" + tag
            if self.all_writers is None:
                raise AssertionError("self.all_writers is None")
            if name not in self.all_writers:
                self.all_writers[name] = FileWriter(name, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """A whole tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How values are spread; `bins` are limits, a number of them, or a rule that NumPy knows."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins=max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that has been counted already; the first limit belongs to an empty bin before the values."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        counted = min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        self._add(summary.histogram_raw(tag, *counted), global_step, walltime)

    # -- pictures, films, sound, text -------------------------------------------------------------------------------
    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture, values from 0 to 1 or bytes."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures, in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """A picture with boxes (left, top, right, bottom) and labels, unless there is not one for each box."""
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        message = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(message, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib, or a list of them."""
        axes = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats=axes)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: int = 4, walltime: float | None = None
    ) -> None:
        """A film; needs the package moviepy."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound of one channel, values from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        self._add(summary.text(tag, text_string), global_step, walltime)

    # -- graphs -----------------------------------------------------------------------------------------------------
    def add_onnx_graph(self, prototxt: Any) -> NoReturn:
        """Refused: ONNX files are not read here."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph: ONNX graphs are not supported")

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> NoReturn:
        """Refused: PyTorch traces the model into a script for this, and programs are not traced here."""
        raise NotImplementedError("SummaryWriter.add_graph: " + NO_GRAPH)

    # -- vectors, charts and meshes ---------------------------------------------------------------------------------
    @staticmethod
    def _encode(rawstr: str) -> str:
        """A tag as the name of a folder."""
        return rawstr.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Vectors, one in each row, with labels or pictures, for the projector."""
        mat = make_np(mat)
        if global_step is None:
            global_step = 0
        subdir = f"{str(global_step).zfill(5)}/{self._encode(tag)}"
        folder = os.path.join(self._get_file_writer().get_logdir(), subdir)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        elif os.path.exists(folder):
            raise NotADirectoryError(f"Path: `{folder}` exists, but is a file. Cannot proceed.")
        else:
            os.makedirs(folder)
        if metadata is not None:
            if mat.shape[0] != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, folder, metadata_header=metadata_header)
        if label_img is not None:
            if mat.shape[0] != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, folder)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        make_mat(mat, folder)
        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig()
        self._projector_config.embeddings.extend([get_embedding_info(metadata, label_img, subdir, global_step, tag)])
        write_pbtxt(self._get_file_writer().get_logdir(), text_format.MessageToString(self._projector_config))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision against recall, from labels and probabilities."""
        message = summary.pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision against recall, counted already."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        message = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of several series."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of a series between two others."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: Any) -> None:
        """Charts of several series: `{category: {title: ["Multiline" or "Margin", tags]}}`."""
        self._add(summary.custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Points in space, with colours and the triangles between them."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # -- files ------------------------------------------------------------------------------------------------------
    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits; a later call of `add_...` opens a new file."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()
