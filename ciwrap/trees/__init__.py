"""Error-bounded trees of values: made by the core, in the words of the model."""
