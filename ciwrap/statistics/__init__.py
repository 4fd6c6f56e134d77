"""Statistics as pure functions of NumPy arrays: no files, no results, nothing is printed.

Uses `base`. `spread` and `factors` are of repeated runs, `change_points` of results in a row;
only here SciPy is imported, by the functions that need it.
"""
