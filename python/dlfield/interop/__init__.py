"""Arrays of other libraries, and what fields have of theirs: conversions, element types, flags, statistics."""
