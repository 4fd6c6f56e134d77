"""One result, shown: terminal, page, JSON, Markdown, JUnit, SARIF, annotations.

Uses `base`, `model` and `snapshot`. Read first `document.to_document`, then `view`, which orders
what differs once for all outputs, and the file of the output you want.
"""
