"""Running the configured command once, and telling what it wrote from what lay there."""
