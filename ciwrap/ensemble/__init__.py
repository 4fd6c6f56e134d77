"""Ensembles of runs of chaotic programs: their features, kept as goldens."""
