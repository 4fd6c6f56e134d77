"""What many results say together: drift towards bounds, and run times, from commit to commit."""
