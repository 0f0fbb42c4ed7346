"""What datapipes are written with."""
