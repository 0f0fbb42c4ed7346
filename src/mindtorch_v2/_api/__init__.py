"""How rows become public functions: names, signatures, texts, stubs, and tables that are loaded when asked for."""
