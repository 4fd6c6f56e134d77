"""Which lines of a program's text hold which numbers: templates, and the rules made of them."""
