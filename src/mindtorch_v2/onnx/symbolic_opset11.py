"""`torch.onnx.symbolic_opset11`: importable; PyTorch's counterparts of operators are not here."""
