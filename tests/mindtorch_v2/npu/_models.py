"""Two small models and their data, for tests that train on the NPU.

Invariant: a model, its data and its optimizer are the same on every device for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2 import nn

F = nn.functional


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x)))


class Block(nn.Module):
    """Attention and a feed-forward part, normalised before each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Two layers that predict the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.one, self.two = Block(8, 2), Block(8, 2)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Any) -> Any:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.two(self.one(self.tokens(tokens) + self.places(places))))


def mlp_data() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.randn(8, 6), torch.randint(3, (8,))


def token_data() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.randint(11, (3, 5)), torch.randint(11, (3, 5))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, Any]]]] = {
    "mlp": (Mlp, mlp_data),
    "transformer": (Transformer, token_data),
}


class Training:
    """A model with its data and optimizer on a device."""

    def __init__(self, name: str, device: str, optimizer: Callable[[Any], Any] | None = None) -> None:
        make, data = MODELS[name]
        torch.manual_seed(0)
        self.model = make().to(device)
        self.x, self.y = (t.to(device) for t in data())
        made = optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
        self.optimizer = made(list(self.model.parameters()))

    def step(self) -> Any:
        """The loss before the step, on the device."""
        self.optimizer.zero_grad()
        logits = self.model(self.x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), self.y.reshape(-1))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, steps: int) -> list[float]:
        return [self.step().item() for _ in range(steps)]
