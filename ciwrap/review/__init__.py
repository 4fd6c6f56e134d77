"""Goldens accepted: what would change, what waits for review, and writing it.

Uses all rooms before it. Read first `change`, then `accept`; `pending` keeps the goldens that
wait.
"""
