"""Devices: one folder each. Importing this package registers what each device can do; no hardware is touched."""
