"""Documents that are read back, checked against the types that state them.

Errors are one line that names the place within the document. Nothing here knows of files: who has
read the file adds its name.
"""

from ciwrap.documents.records import (
    DocumentError,
    DocumentHead,
    NewerFormatError,
    Step,
    to_plain,
    to_record,
    to_versioned_record,
)

__all__ = [
    "DocumentError",
    "DocumentHead",
    "NewerFormatError",
    "Step",
    "to_plain",
    "to_record",
    "to_versioned_record",
]
