"""An LSTM learns the fables of demo_text.txt, letter by letter, and carries its state from batch to batch.

The text is cut into a few long strips that are read in parallel. The state is kept and the graph is cut after each
stretch (truncated back-propagation through time).
"""

from __future__ import annotations

import math
from pathlib import Path

from common import arguments

import mindtorch_v2 as torch
from mindtorch_v2 import nn

TEXT = Path(__file__).with_name("demo_text.txt").read_text()
STRIPS, STRETCH = 16, 32


class Reader(nn.Module):
    def __init__(self, letters: int, width: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, 24)
        self.lstm = nn.LSTM(24, width, num_layers=2, dropout=0.1)
        self.head = nn.Linear(width, letters)

    def forward(
        self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        hidden, state = self.lstm(self.letters(x), state)
        return self.head(hidden), state


def main() -> None:
    given = arguments(__doc__, steps=120)
    alphabet = sorted(set(TEXT))
    text = torch.tensor([alphabet.index(letter) for letter in TEXT])
    strips = text[: len(text) // STRIPS * STRIPS].view(STRIPS, -1).t().contiguous().to(given.device)
    model = Reader(len(alphabet)).to(given.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    state, at, first = None, 0, 0.0
    for step in range(1, given.steps + 1):
        if at + STRETCH + 1 > len(strips):
            state, at = None, 0
        x, y = strips[at : at + STRETCH], strips[at + 1 : at + STRETCH + 1]
        expected, state = model(x, state)
        state = (state[0].detach(), state[1].detach())
        loss = nn.functional.cross_entropy(expected.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        at += STRETCH
        first = first or loss.item()
        if step % max(1, given.steps // 8) == 0:
            print(f"step {step:4}  loss {loss.item():.3f}  perplexity {math.exp(loss.item()):5.1f}")

    model.eval()
    written, letter, state = [], text[:1].to(given.device), None
    with torch.no_grad():
        for _ in range(80):
            expected, state = model(letter.view(1, 1), state)
            letter = torch.multinomial((expected[0, 0] / 0.7).softmax(0), 1)
            written.append(alphabet[letter.item()])
    print("It writes: " + "".join(written).replace("\n", " "))
    print(f"loss from {first:.3f} to {loss.item():.3f}")


if __name__ == "__main__":
    main()
