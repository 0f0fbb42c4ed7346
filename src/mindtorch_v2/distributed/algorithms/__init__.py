"""`torch.distributed.algorithms`: joins of uneven inputs, and hooks of DDP's communication."""
