"""What every room uses: errors, documents, archives, git repositories, patterns of names.

Uses no other room. Read first `errors`: each failure is a class with an exit code and a slug,
and its message names file, variable and remedy.
"""
