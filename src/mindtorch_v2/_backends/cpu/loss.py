"""CPU lines of losses and embedding."""
from __future__ import annotations

from .lines import cpu
from .nn_glue import Embedding, EmbeddingBackward, Mse, MseBackward, Nll, NllBackward

cpu("nll_loss_forward", Nll())
cpu("nll_loss_backward", NllBackward())
cpu("mse_loss", Mse())
cpu("mse_loss_backward", MseBackward())
cpu("embedding", Embedding())
cpu("embedding_dense_backward", EmbeddingBackward())
