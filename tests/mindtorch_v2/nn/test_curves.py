"""Thirty training steps from the same seed: the losses of every step are PyTorch's.

Invariant: a program takes a library and a device and returns its losses; nothing else of one library reaches the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .. import _npu, _oracle
from .._subject import mindtorch_only, subject

STEPS = 30
Program = Callable[[Any, str], list[float]]
PROGRAMS: dict[str, Program] = {}


def program(fn: Program) -> Program:
    PROGRAMS[fn.__name__] = fn
    return fn


def steps(model: Any, optimizer: Any, loss_of: Callable[[int], Any]) -> list[float]:
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def mlp(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(1)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4)).to(device)
    x, y = lib.randn(64, 10).to(device), lib.randint(0, 4, (64,)).to(device)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return steps(model, optimizer, lambda _: loss(model(x), y))


@program
def cnn(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, stride=2), nn.BatchNorm2d(8, momentum=None), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 3),
    ).to(device)  # fmt: skip
    x, y = lib.randn(8, 1, 12, 12).to(device), lib.randint(0, 3, (8,)).to(device)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = steps(model, optimizer, lambda _: nn.functional.cross_entropy(model(x), y))
    model.eval()
    with lib.no_grad():
        losses.append(nn.functional.cross_entropy(model(x), y).item())
    return losses


@program
def resnet(lib: Any, device: str) -> list[float]:
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, width: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.relu = nn.ReLU(inplace=True)
            self.down: Any = nn.Identity()
            if stride != 1 or width != out:
                self.down = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y += self.down(x)
            return self.relu(y)

    lib.manual_seed(3)
    blocks = [
        Block(a, b, s)
        for a, b, s in ((4, 4, 1), (4, 4, 1), (4, 8, 2), (8, 8, 1), (8, 8, 2), (8, 8, 1), (8, 8, 2), (8, 8, 1))
    ]
    stem = [nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).to(device)
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    # In double precision: normalization over few values makes of rounding errors what no tolerance covers.
    model.double()
    x, y = lib.randn(8, 3, 16, 16).double().to(device), lib.randint(0, 5, (8,)).to(device)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return steps(model, optimizer, lambda _: nn.functional.cross_entropy(model(x), y))


@program
def gan(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(4)
    maker = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2)).to(device)
    judge = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(12, 1)).to(device)
    optimizers = lib.optim.SGD(maker.parameters(), lr=0.05), lib.optim.SGD(judge.parameters(), lr=0.05, momentum=0.5)
    loss = nn.BCEWithLogitsLoss()
    losses = []
    for _ in range(STEPS):
        real = lib.randn(16, 2).to(device) * 0.5 + 1.0
        made = maker(lib.randn(16, 3).to(device))
        ones, zeros = lib.ones(16, 1, device=device), lib.zeros(16, 1, device=device)
        optimizers[1].zero_grad()
        judged = loss(judge(real), ones) + loss(judge(made.detach()), zeros)
        judged.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        fooled = loss(judge(made), ones)
        fooled.backward()
        optimizers[0].step()
        losses += [judged.item(), fooled.item()]
    return losses


@program
def vae(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(5)
    encoder = nn.Sequential(nn.Linear(12, 16), nn.SiLU(), nn.Linear(16, 6)).to(device)
    decoder = nn.Sequential(nn.Linear(3, 16), nn.ELU(), nn.Linear(16, 12)).to(device)
    x = lib.rand(32, 12).to(device)
    optimizer = lib.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)

    def loss_of(_: int) -> Any:
        mean, log_variance = encoder(x).chunk(2, dim=1)
        noise = lib.randn(mean.shape).to(device)
        code = mean + (0.5 * log_variance).exp() * noise
        error = nn.functional.binary_cross_entropy_with_logits(decoder(code), x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        return (error + divergence) / x.shape[0]

    return steps(nn.ModuleList([encoder, decoder]), optimizer, loss_of)


@program
def lstm(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(6)
    embed, layer, head = nn.Embedding(11, 8).to(device), nn.LSTM(8, 12, 2).to(device), nn.Linear(12, 11).to(device)
    model = nn.ModuleList([embed, layer, head])
    tokens = lib.randint(0, 11, (10, 6)).to(device)
    optimizer = lib.optim.Adam(model.parameters(), lr=0.02)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)

    def loss_of(step: int) -> Any:
        if step:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            schedule.step()
        out, _ = layer(embed(tokens[:-1]))
        return nn.functional.cross_entropy(head(out).flatten(0, 1), tokens[1:].flatten())

    return steps(model, optimizer, loss_of)


def block(lib: Any, width: int, heads: int, causal: bool) -> Any:
    """Attention and a perceptron, each behind a normalization and beside the input."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.before(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=causal)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            return x + self.perceptron(self.between(x))

    return Block()


@program
def gpt(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(7)
    embed, place = nn.Embedding(13, 16), nn.Parameter(lib.randn(9, 16) * 0.02)
    body = nn.Sequential(block(lib, 16, 2, True), block(lib, 16, 2, True), nn.LayerNorm(16))
    head = nn.Linear(16, 13, bias=False)
    head.weight = embed.weight
    model = nn.ModuleList([embed, body, head, nn.ParameterList([place])]).to(device)
    tokens = lib.randint(0, 13, (4, 10)).to(device)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = lib.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    def loss_of(step: int) -> Any:
        if step:
            schedule.step()
        x = embed(tokens[:, :-1]) + model[3][0]
        return nn.functional.cross_entropy(head(body(x)).flatten(0, 1), tokens[:, 1:].flatten())

    return steps(model, optimizer, loss_of)


@program
def vit(lib: Any, device: str) -> list[float]:
    nn = lib.nn
    lib.manual_seed(8)
    patches, body = nn.Conv2d(3, 16, 4, 4), nn.Sequential(block(lib, 16, 4, False), nn.LayerNorm(16))
    own = nn.ParameterList([nn.Parameter(lib.zeros(1, 1, 16)), nn.Parameter(lib.randn(1, 10, 16) * 0.02)])
    model = nn.ModuleList([patches, body, own, nn.Linear(16, 5)]).to(device)
    x, y = lib.randn(6, 3, 12, 12).to(device), lib.randint(0, 5, (6,)).to(device)
    optimizer = lib.optim.RAdam(model.parameters(), lr=2e-3)

    def loss_of(_: int) -> Any:
        flat = patches(x).flatten(2).transpose(1, 2)
        tokens = lib.cat([own[0].expand(6, -1, -1), flat], dim=1) + own[1]
        return nn.functional.cross_entropy(model[3](body(tokens)[:, 0]), y)

    return steps(model, optimizer, loss_of)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name: str) -> None:
    expected = PROGRAMS[name](_oracle.load(), "cpu")
    actual = PROGRAMS[name](subject, "cpu")
    assert actual == pytest.approx(expected, rel=2e-3, abs=2e-4)
    # The first steps see no more than rounding.
    assert actual[:5] == pytest.approx(expected[:5], rel=2e-5, abs=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["gpt", "vit", "vae"])
def test_under_autocast(name: str) -> None:
    """In bfloat16, whose rounding grows from step to step."""

    def run(lib: Any) -> list[float]:
        with lib.autocast("cpu", dtype=lib.bfloat16):
            return PROGRAMS[name](lib, "cpu")

    expected, actual = run(_oracle.load()), run(subject)
    assert actual == pytest.approx(expected, rel=5e-2, abs=5e-2)
    assert actual[0] == pytest.approx(expected[0], rel=1e-2)


@mindtorch_only
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "gpt"])
def test_on_npu(name: str) -> None:
    _npu.start()
    assert PROGRAMS[name](subject, "npu") == pytest.approx(PROGRAMS[name](subject, "cpu"), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet", "vae", "lstm", "gpt", "vit"])
def test_it_learns(name: str) -> None:
    losses = PROGRAMS[name](subject, "cpu")
    assert losses[STEPS - 1] < 0.97 * losses[0]
