"""What can be ignored until it is needed: repeated runs, run times, trends, bisection,
ensembles, self-tests, maps of variability, changes of configuration, importers, the
demonstration.

Uses all rooms before it; only `cli`, `pytest_plugin` and `action` use it. Each study is a module
or a folder of its own.
"""
