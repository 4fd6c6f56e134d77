"""Captures: the trees of a run's checkpoints, in one file, and how long they hold."""
