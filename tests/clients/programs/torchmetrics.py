"""torchmetrics: classification, regression and aggregation metrics over batches, their states, a collection."""

import copy
import io
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import torchmetrics

    return torchmetrics.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    import torchmetrics as tm

    kept["batches"] = [(torch.rand(16, 4).softmax(-1), torch.randint(4, (16,))) for _ in range(3)]
    kept["metrics"] = tm.MetricCollection(
        {
            "accuracy": tm.classification.MulticlassAccuracy(4),
            "f1": tm.classification.MulticlassF1Score(4),
            "auroc": tm.classification.MulticlassAUROC(4),
            "confusion": tm.classification.MulticlassConfusionMatrix(4),
            "precision": tm.classification.MulticlassAveragePrecision(4, thresholds=10),
        }
    )
    return len(kept["metrics"])


def evaluate(kept: dict[str, Any]) -> Any:
    for scores, labels in kept["batches"]:
        kept["metrics"].update(scores, labels)
    return kept["metrics"].compute()


def others(kept: dict[str, Any]) -> Any:
    torch = seeded(2)
    import torchmetrics as tm

    x, y = torch.rand(20), torch.rand(20)
    metrics = {
        "mse": tm.MeanSquaredError(),
        "mae": tm.MeanAbsoluteError(),
        "pearson": tm.PearsonCorrCoef(),
        "spearman": tm.SpearmanCorrCoef(),
        "r2": tm.R2Score(),
        "cosine": tm.functional.pairwise_cosine_similarity,
    }
    found = {
        name: metric(x, y) if name != "cosine" else metric(x.view(4, 5), y.view(4, 5))
        for name, metric in metrics.items()
    }
    mean = tm.MeanMetric()
    mean.update(x, weight=y)
    found["mean"] = mean.compute()
    return found


def save(kept: dict[str, Any]) -> Any:
    import torch

    stored = io.BytesIO()
    metric = kept["metrics"]["confusion"]
    metric.persistent(True)
    torch.save(metric.state_dict(), stored)
    stored.seek(0)
    fresh = copy.deepcopy(metric)
    fresh.reset()
    fresh.load_state_dict(torch.load(stored))
    return fresh.confmat


run(importing, build, evaluate, others, save)
