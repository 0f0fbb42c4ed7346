"""`torch.ao.nn`: quantized modules are not served."""
