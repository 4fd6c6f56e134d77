"""Two whole runs compared: captured trees first, then only the chunks that may differ.

Uses all rooms before it. Read first `compare_runs`, then `comparer`. `capture` makes the trees
of a run's checkpoints, and `spread` shares the work among processes.
"""
