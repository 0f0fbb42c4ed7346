"""The CPU: memory and kernels of the native module; NumPy and SciPy for what it does not have."""
