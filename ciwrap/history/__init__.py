"""Whole runs: captures of histories, first divergence, and comparisons that read little."""
