"""Damage planted in copies of the outputs, to see that the configuration catches it."""
