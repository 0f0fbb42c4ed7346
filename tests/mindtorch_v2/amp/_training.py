"""Small models that are trained under autocast, in either library and on any device."""

from __future__ import annotations

from typing import Any


def mlp(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))


def cnn(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 4)
    )


MODELS = {"mlp": (mlp, (12, 8)), "cnn": (cnn, (12, 2, 4, 4))}


def losses(
    library: Any, name: str, device: str, dtype: str, steps: int, state: Any, scaled: bool = False, on: bool = True
) -> list[float]:
    """The losses of a model trained from `state`, a list of NumPy arrays: parameters and buffers, inputs, targets."""
    build, _ = MODELS[name]
    model = build(library).to(device)
    *values, x, y = (library.from_numpy(v.copy()).to(device) for v in state)
    with library.no_grad():
        for t, value in zip(model.state_dict().values(), values):
            t.copy_(value)
    optimizer = library.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    scaler = library.amp.GradScaler(device, init_scale=1024.0, enabled=scaled)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        with library.autocast(device, getattr(library, dtype), enabled=on):
            loss = library.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(float(loss.item()))
    return found


def start(library: Any, name: str) -> list[Any]:
    """Values that a training starts from."""
    library.manual_seed(3)
    build, shape = MODELS[name]
    x = library.randn(shape)
    y = library.arange(shape[0]) % 4
    return [t.detach().numpy() for t in build(library).state_dict().values()] + [x.numpy(), y.numpy()]


__all__ = ["MODELS", "losses", "start"]
