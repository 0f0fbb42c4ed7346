"""`torch.distributed.nn.api`: what needs `rpc`."""
