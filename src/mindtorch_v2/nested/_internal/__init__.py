"""What PyTorch's jagged nested tensors are made of, by PyTorch's names."""
