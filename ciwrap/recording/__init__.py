"""Runs that record themselves: the library that a program loads, its journals, and comparing
while it runs.

Uses all rooms before it. Read first `journal`, then `recorded_run`, which makes a capture of a
run's journals.
"""
