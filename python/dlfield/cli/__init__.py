"""What `dlfield` runs."""
