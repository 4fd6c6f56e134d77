"""The program: a run's files are paired with their golden, each pair is judged, and the results
make a verdict. Start here.

Uses `base`, `model`, `arrays`, `formats`, `golden` and `project`. Read first
`check.check_outputs`, then `judge`: what it decides holds for files, tests, captured and
recorded runs alike.
"""
