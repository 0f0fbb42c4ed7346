"""Shape rules: shape, stride and dtype of results, decided once for every device."""
