"""What stands in examples/ runs, and does what it says."""
