"""What `python -m dlfield` runs."""
