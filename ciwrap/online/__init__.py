"""Comparing a run with another one while it still runs."""
