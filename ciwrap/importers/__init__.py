"""Tests of other projects' runners as checks: each file turns one kind of them into text."""
