"""keras on its torch backend: fit, evaluate, predict, save and load weights."""

import os
import tempfile
from typing import Any

from _stages import run


def importing(kept: dict[str, Any]) -> Any:
    import keras

    assert keras.backend.backend() == "torch"
    return keras.__version__


def build(kept: dict[str, Any]) -> Any:
    import keras
    import numpy

    keras.utils.set_random_seed(0)
    values = numpy.random.default_rng(0)
    kept["x"], kept["y"] = values.random((32, 4), dtype="float32"), values.integers(0, 3, 32)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3)])
    model.set_weights([values.random(w.shape, dtype="float32") - 0.5 for w in model.get_weights()])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    kept["model"] = model
    return model.predict(kept["x"], verbose=0)[:4]


def training(kept: dict[str, Any]) -> Any:
    found = kept["model"].fit(kept["x"], kept["y"], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return found.history["loss"]


def evaluate(kept: dict[str, Any]) -> Any:
    return kept["model"].evaluate(kept["x"], kept["y"], verbose=0)


def save(kept: dict[str, Any]) -> Any:
    import keras

    path = os.path.join(tempfile.mkdtemp(), "model.keras")
    kept["model"].save(path)
    return keras.models.load_model(path).predict(kept["x"], verbose=0)[:4]


run(importing, build, training, evaluate, save)
