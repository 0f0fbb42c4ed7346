"""`torch.distributed.elastic`: what programs started by torchrun use."""
