"""Files: which of them a check compares, which reader opens each, and what is in them.

Uses `base`, `model` and `arrays`. Read first `reader.Reader`, which each format has one of, and
`npy` as an example; `find_outputs` finds the files, and `catalog.Catalog` lists the variables of
all of them. Formats are registered in `OWN_FORMATS` of `model/settings.py`.
"""
