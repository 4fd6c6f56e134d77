"""Finding the commit that moved a number."""
