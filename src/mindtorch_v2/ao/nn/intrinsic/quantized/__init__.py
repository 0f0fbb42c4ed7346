"""`torch.ao.nn.intrinsic.quantized`: fused modules over quantized tensors: importable, and raise when they are made."""
