"""What the step says of a call, in one word."""

NOT_COMPARABLE, ERROR = "not-comparable", "error"
# The worse, the later.
STATUSES = ("match", "consistent", "inconsistent", "differ", NOT_COMPARABLE, ERROR)
GOOD = STATUSES[:2]
