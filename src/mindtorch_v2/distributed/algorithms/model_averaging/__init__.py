"""Models that are averaged from time to time, in place of gradients at every step."""
