"""What the step says of a call, in one word."""

DONE, NOT_COMPARABLE, ERROR = "done", "not-comparable", "error"
# The worse, the later. `done` and `slower` are of the modes that judge no golden.
STATUSES = (
    *("match", DONE, "consistent"),
    *("inconsistent", "slower", "suspect", "differ", NOT_COMPARABLE, ERROR),
)
GOOD = STATUSES[:3]
