"""`torch._inductor.codegen`: importable; no code is generated."""
