"""What errors call by keys of ciwrap.yaml, `compare` calls by its options."""

from __future__ import annotations

import pytest

from ciwrap.cli.remedies import in_options

OPTIONS = {"exclude": "--exclude", "mask": "--mask", "duplicates": "--duplicates"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: is bad; leave it out with 'exclude'", "x: is bad; leave it out with --exclude"),
        ("no table; set 'format: tokens'", "no table; set --format 'GLOB=tokens'"),
        ("empty (set 'empty_is_nan: true')", "empty (set --option empty_is_nan=true)"),
        ("twice; say 'duplicates: last'", "twice; say --duplicates last"),
        # A name, a key of another command, what says already where it is a key.
        ("its mask 'exclude' is lost; fix 'mask'", "its mask 'exclude' is lost; fix --mask"),
        ("no data; set 'evidence: data'", "no data; set 'evidence: data'"),
        ("odd; --x (ciwrap.yaml: 'exclude')", "odd; --x (ciwrap.yaml: 'exclude')"),
    ],
)
def test_keys_become_options(text: str, said: str) -> None:
    assert in_options(text, OPTIONS) == said
