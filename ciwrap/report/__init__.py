"""Results for people and machines: one versioned document, and renderers of it."""
