"""What a field looks like: as text, in a notebook, drawn, explained."""
