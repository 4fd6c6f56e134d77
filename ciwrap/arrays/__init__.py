"""Values in memory: what a value is, and how those of other libraries are taken over.

Uses `base` and `model`. Read first `values.Values`, which a comparison reads piece by piece,
then `intake`, which makes one of what a test hands over.
"""
