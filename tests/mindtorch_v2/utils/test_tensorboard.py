"""`torch.utils.tensorboard`: the messages in the files are PyTorch's, and a missing package is named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._subject import SUBJECT_NAME, mindtorch_only, submodule
from .._subject import subject as torch

INSTALLED = importlib.util.find_spec("tensorboard") is not None


def _ramp(t: Any, *shape: int) -> Any:
    n = 1
    for s in shape:
        n *= s
    return t.arange(n, dtype=t.float32).reshape(shape) / max(n - 1, 1)


def scalars(t: Any, w: Any) -> None:
    for i, value in enumerate((1.5, t.tensor(2.0), t.tensor([3], dtype=t.int64), t.tensor(1.1, dtype=t.bfloat16))):
        w.add_scalar("loss", value, i, walltime=1.0)
        w.add_scalar("new", value, t.tensor(i), walltime=1.0, new_style=True, double_precision=i % 2 == 0)
    w.add_scalars("run/both", {"a": 1.0, "b": t.tensor(2.0)}, 3, walltime=2.0)


def histograms(t: Any, w: Any) -> None:
    t.manual_seed(0)
    for i, values in enumerate((t.randn(500), t.zeros(3), t.ones(4, 2) * 5, t.arange(9), -t.rand(50) * 1e-3)):
        for j, bins in enumerate(("tensorflow", "auto", 7, "sqrt")):
            w.add_histogram(f"h{j}", values, i, bins=bins, walltime=1.0)
        w.add_histogram("few", values, i, walltime=1.0, max_bins=10)
        w.add_histogram("some", values, i, bins=13, walltime=1.0, max_bins=5)
    w.add_histogram_raw("raw", 0.0, 1.0, 3, 1.5, 1.0, [0.0, 0.5, 1.0], [0, 2, 1], 1, walltime=1.0)


def tensors(t: Any, w: Any) -> None:
    for name in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"):
        w.add_tensor(name, t.arange(6).reshape(2, 3).to(getattr(t, name)), 1, walltime=1.0)
    w.add_tensor("complex64", t.ones(2, dtype=t.complex64) * 2j, 1, walltime=1.0)


def images(t: Any, w: Any) -> None:
    w.add_image("chw", _ramp(t, 3, 6, 5), 1, walltime=1.0)
    w.add_image("gray", _ramp(t, 1, 6, 5), 1, walltime=1.0)
    w.add_image("hwc", (_ramp(t, 6, 5, 3) * 255).to(t.uint8), 1, walltime=1.0, dataformats="HWC")
    w.add_image("hw", _ramp(t, 6, 5), 1, walltime=1.0, dataformats="HW")
    w.add_images("nchw", _ramp(t, 11, 3, 4, 5), 1, walltime=1.0)
    w.add_images("nhwc", _ramp(t, 2, 4, 5, 1), 1, walltime=1.0, dataformats="NHWC")
    boxes = t.tensor([[1.0, 1.0, 8.0, 7.0], [4.0, 2.0, 18.0, 15.0]])
    for labels in (None, ["a", "b"], "one"):
        w.add_image_with_boxes("boxes", _ramp(t, 3, 20, 20), boxes, 1, walltime=1.0, labels=labels)


def texts(t: Any, w: Any) -> None:
    w.add_text("words", "a *b* \u00fc", 1, walltime=1.0)
    w.add_audio("sound", _ramp(t, 1, 100) * 2 - 1, 1, sample_rate=8000, walltime=1.0)
    w.add_audio("loud", _ramp(t, 100) * 3, 1, walltime=1.0)


def charts(t: Any, w: Any) -> None:
    labels, predictions = t.tensor([0, 1, 1, 0, 1]), t.tensor([0.1, 0.9, 0.4, 0.6, 1.0])
    w.add_pr_curve("curve", labels, predictions, 1, walltime=1.0)
    w.add_pr_curve("fewer", labels, predictions, 1, num_thresholds=9, walltime=1.0)
    counts = [[1.0, 2.0]] * 6
    w.add_pr_curve_raw("raw", *counts, 1, num_thresholds=2, walltime=1.0)
    w.add_custom_scalars({"c": {"t": ["Multiline", ["a", "b"]], "u": ["Margin", ["a", "b", "c"]]}})
    w.add_custom_scalars_multilinechart(["x", "y"])
    w.add_custom_scalars_marginchart(["x", "y", "z"], "cat", "title")
    points = t.tensor([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    colors, faces = t.tensor([[[255, 0, 0]] * 3]), t.tensor([[[0, 1, 2]]])
    w.add_mesh("mesh", points, colors, faces, {"camera": {"cls": "PerspectiveCamera"}}, 1, walltime=1.0)
    w.add_mesh("points", points, global_step=1, walltime=1.0)


def runs(t: Any, w: Any) -> None:
    w.add_hparams(
        {"lr": 0.1, "name": "sgd", "deep": True, "n": 3, "t": t.tensor([2.0]), "none": None},
        {"loss": 0.5, "acc": t.tensor(0.9)},
        hparam_domain_discrete={"name": ["sgd", "adam"], "lr": [0.1, 0.2]},
        run_name="run",
        global_step=4,
    )


def vectors(t: Any, w: Any) -> None:
    w.add_embedding(_ramp(t, 5, 3), ["a", "b", "c", "d", "e"], _ramp(t, 5, 3, 4, 4), 2, "some/tag")
    w.add_embedding(_ramp(t, 2, 3), [[1, "x"], [2, "y"]], global_step=None, metadata_header=["number", "letter"])
    w.add_embedding(_ramp(t, 2, 3), global_step=7)


def purges(t: Any, w: Any) -> None:
    again = type(w)(w.log_dir + "/purged", purge_step=5, filename_suffix=".end")
    again.add_scalar("x", 1, 6, walltime=1.0)
    again.close()
    again.add_scalar("x", 2, 7, walltime=1.0)
    again.close()


PROGRAMS: list[Callable[[Any, Any], None]] = [
    scalars,
    histograms,
    tensors,
    images,
    texts,
    charts,
    runs,
    vectors,
    purges,
]


def written(t: Any, folder: Path, program: Callable[[Any, Any], None]) -> dict[str, Any]:
    """What a program leaves in each file: events as messages, other files as bytes."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    tensorboard = importlib.import_module(f"{t.__name__}.utils.tensorboard")
    with tensorboard.SummaryWriter(str(folder)) as w:
        program(t, w)
    found: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if "tfevents" not in name:
            found[name] = path.read_bytes()
            continue
        events = []
        for raw in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(raw)
            if event.wall_time > 10:
                event.wall_time = 0
            # The writer's name is the library's; TensorBoard writes it at the head of each file.
            event.ClearField("source_metadata")
            events.append(event)
        where = str(path.relative_to(folder).parent)
        found.setdefault(where, []).extend(events)
    return found


# Where the package is missing there are no cases, rather than skipped ones.
if INSTALLED:

    @pytest.mark.oracle
    @pytest.mark.parametrize("program", PROGRAMS)
    def test_files_are_pytorchs(program: Callable[[Any, Any], None], tmp_path: Path) -> None:
        mine = written(torch, tmp_path / "mine", program)
        theirs = written(_oracle.load(), tmp_path / "theirs", program)
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert mine[name] == theirs[name], name
        assert sum(len(found) for found in mine.values()) > 1

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_files_are_written(program: Callable[[Any, Any], None], tmp_path: Path) -> None:
        assert sum(len(found) for found in written(torch, tmp_path, program).values()) > 1

    def _writer(t: Any, folder: Path) -> Any:
        return importlib.import_module(f"{t.__name__}.utils.tensorboard").SummaryWriter(str(folder))

    WRONG: list[Any] = [
        lambda t, w: w.add_scalar("a", t.ones(2)),
        lambda t, w: w.add_scalar("a", [1]),
        lambda t, w: w.add_histogram("a", t.ones(0)),
        lambda t, w: w.add_histogram_raw("a", 0, 1, 2, 3, 4, [1], [1, 2]),
        lambda t, w: w.add_image("a", t.ones(3, 4)),
        lambda t, w: w.add_image("a", t.ones(3, 4, 5), dataformats="CCW"),
        lambda t, w: w.add_images("a", t.ones(2, 2, 4, 5)),
        lambda t, w: w.add_audio("a", t.ones(2, 3)),
        lambda t, w: w.add_hparams([], {}),
        lambda t, w: w.add_hparams({"a": []}, {}),
        lambda t, w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}),
        lambda t, w: w.add_embedding(t.ones(2, 3), ["a"]),
        lambda t, w: w.add_embedding(t.ones(2)),
        lambda t, w: w.add_custom_scalars_marginchart(["a"]),
    ]

    @pytest.mark.oracle
    @pytest.mark.parametrize("i", range(len(WRONG)))
    def test_errors_are_pytorchs(i: int, tmp_path: Path) -> None:
        said = []
        for t in (torch, _oracle.load()):
            with _writer(t, tmp_path / t.__name__) as w, pytest.raises(Exception) as caught:
                WRONG[i](t, w)
            said.append((caught.type, str(caught.value)))
        assert said[0] == said[1]

    @mindtorch_only
    def test_graphs_are_refused(tmp_path: Path) -> None:
        with _writer(torch, tmp_path) as w:
            with pytest.raises(NotImplementedError, match="SummaryWriter.add_graph"):
                w.add_graph(torch.nn.Linear(2, 2), torch.ones(1, 2))
            with pytest.raises(NotImplementedError, match="SummaryWriter.add_onnx_graph"):
                w.add_onnx_graph("file")

    def test_names() -> None:
        found = submodule("utils.tensorboard")
        assert sorted(found.__all__) == ["FileWriter", "RecordWriter", "SummaryWriter"]


def test_a_missing_package_is_named() -> None:
    code = f"import sys; sys.modules['tensorboard'] = None; import {SUBJECT_NAME}.utils.tensorboard"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0 and "tensorboard" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not INSTALLED, reason="tensorboard is not installed")
def test_the_scale_of_a_picture() -> None:
    scale = submodule("utils.tensorboard.summary")._calc_scale_factor
    assert scale(torch.ones(2, dtype=torch.uint8)) == 1 == scale(torch.ones(2, dtype=torch.uint8).numpy())
    assert scale(torch.ones(2)) == 255


@mindtorch_only
@pytest.mark.skipif(not INSTALLED, reason="tensorboard is not installed")
def test_graphs_of_models_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="_pytorch_graph.graph: models are not traced into graphs here"):
        submodule("utils.tensorboard._pytorch_graph").graph(torch.nn.Linear(1, 1), torch.ones(1))
