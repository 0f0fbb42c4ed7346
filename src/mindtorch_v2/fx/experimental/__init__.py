"""What is built on graphs."""
