"""Outputs against goldens, and two runs against each other. Prints nothing."""
