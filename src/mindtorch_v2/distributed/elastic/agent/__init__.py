"""`torch.distributed.elastic.agent`: what watches processes is the launcher, `distributed.run`."""
