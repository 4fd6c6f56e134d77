"""Taking run times of two commands, or of two revisions, in pairs."""
