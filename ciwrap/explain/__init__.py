"""What the values that differ have in common, and pictures of them.

Uses what `check` uses, and `check`. It is asked only where something differs, so it is imported
then. Read first `hypotheses.explain`.
"""
