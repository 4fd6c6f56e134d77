"""What differs in what is checked between two states of a repository (`ciwrap changes`)."""
