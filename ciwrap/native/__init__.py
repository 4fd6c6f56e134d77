"""Recording inside running programs: the library that they load, and its face in Python."""
