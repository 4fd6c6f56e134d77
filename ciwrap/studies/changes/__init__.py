"""`ciwrap changes`: what is checked differently since another commit.

Read first `find`, then `state`, which reads configuration and manifests of a commit.
"""
