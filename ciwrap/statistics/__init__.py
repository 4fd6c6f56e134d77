"""Statistics as pure functions over NumPy arrays: no files, no results, nothing is printed.

SciPy is imported by the functions that need it, through `ciwrap.statistics.library`.
"""
