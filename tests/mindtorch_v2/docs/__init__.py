"""The documentation: what its pages promise can be built, holds, and works in a browser."""
