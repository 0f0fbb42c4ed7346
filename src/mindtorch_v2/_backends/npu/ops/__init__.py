"""The NPU's lines, one file per family of operators."""
