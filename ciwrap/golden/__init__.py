"""Golden trees on disk: made, described, stored, and replaced.

Uses `base`, `model` and `arrays`. Read first `store.GoldenStore`, which reads and replaces the
golden of a check, then `trees.build_tree`. `goldens_of_tests` and `shared_file` do the same for
tests, whose small goldens share one file.
"""
