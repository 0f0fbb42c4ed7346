"""`torch._dynamo.backends`: the names of backends that `torch.compile` takes."""
