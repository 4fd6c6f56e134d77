"""The variables that a run left, in whatever files, by identity; rows in order if asked for."""
