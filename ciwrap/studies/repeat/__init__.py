"""`ciwrap repeat`: a command run several times, and what varies between its runs.

Read first `run`, then `measure` and `result`.
"""
