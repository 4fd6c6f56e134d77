"""Independent oracles of the tests: NumPy, Python integers, `fractions`, the `xxhash` package.

Nothing in here imports ciwrap, so an error in the product cannot hide in the truth it is held to.
"""
