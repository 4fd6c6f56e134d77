"""Goldens: what they hold, how they are made, where they lie and how they are replaced."""
