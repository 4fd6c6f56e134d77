"""Goldens that wait to be accepted: looking at them, accepting and rejecting them."""
