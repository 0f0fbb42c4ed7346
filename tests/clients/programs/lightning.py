"""lightning: `Trainer` with callbacks and a logger: fitting, validation, prediction, checkpoints, resuming; Fabric."""

import logging
import os
import tempfile
from typing import Any

from _stages import run, seeded


def importing(kept: dict[str, Any]) -> Any:
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    return lightning.__version__


def build(kept: dict[str, Any]) -> Any:
    torch = seeded()
    import lightning

    class Net(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self, width: int = 8, rate: float = 1e-2) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(width, 2)
            )
            self.seen: list[float] = []

        def forward(self, x: Any) -> Any:
            return self.layers(x)

        def training_step(self, batch: Any, index: int) -> Any:
            loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
            self.log("loss", loss, on_epoch=True)
            self.seen.append(float(loss.detach()))
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            out = self(batch[0])
            self.log("val", torch.nn.functional.cross_entropy(out, batch[1]))
            self.log("right", (out.argmax(-1) == batch[1]).float().mean())

        def predict_step(self, batch: Any, index: int) -> Any:
            return self(batch[0])

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    kept["class"] = Net
    data = torch.utils.data.TensorDataset(torch.rand(24, 4), torch.randint(2, (24,)))
    kept["loader"] = torch.utils.data.DataLoader(data, batch_size=6)
    kept["model"] = Net()
    return sum(p.sum() for p in kept["model"].parameters())


def trainer(folder: str, epochs: int, **options: Any) -> Any:
    import lightning
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

    return lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=[ModelCheckpoint(folder, monitor="val", save_last=True), EarlyStopping("val", patience=5)],
        logger=CSVLogger(folder),
        log_every_n_steps=1,
        gradient_clip_val=1.0,
        accumulate_grad_batches=2,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def training(kept: dict[str, Any]) -> Any:
    seeded(1)
    kept["folder"] = tempfile.mkdtemp()
    kept["trainer"] = trainer(kept["folder"], 2)
    kept["trainer"].fit(kept["model"], kept["loader"], kept["loader"])
    return {"losses": kept["model"].seen, "logged": {k: float(v) for k, v in kept["trainer"].callback_metrics.items()}}


def evaluate(kept: dict[str, Any]) -> Any:
    found = kept["trainer"].validate(kept["model"], kept["loader"], verbose=False)
    predicted = kept["trainer"].predict(kept["model"], kept["loader"])
    return {"found": found, "predicted": predicted}


def save(kept: dict[str, Any]) -> Any:
    path = os.path.join(kept["folder"], "last.ckpt")
    loaded = kept["class"].load_from_checkpoint(path)
    assert loaded.hparams.width == 8
    again = kept["class"]()
    seeded(2)
    further = trainer(tempfile.mkdtemp(), 3)
    further.fit(again, kept["loader"], kept["loader"], ckpt_path=path, weights_only=False)
    return {"weights": [p.sum() for p in loaded.parameters()], "further": again.seen, "steps": further.global_step}


def fabric(kept: dict[str, Any]) -> Any:
    torch = seeded()
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    fabric.launch()
    model = torch.nn.Linear(4, 2)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = []
    for x, y in fabric.setup_dataloaders(kept["loader"]):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        optimizer.step()
        losses.append(round(float(loss.detach()), 2))
    return losses


run(importing, build, training, evaluate, save, fabric)
