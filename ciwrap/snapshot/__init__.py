"""Environments: which libraries, processor and settings a run had, and what differs between two.

Uses `base`, `model` and `golden`. Read first `take`, then `difference`.
"""
