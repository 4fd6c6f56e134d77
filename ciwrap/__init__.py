"""Are the numbers still the same? Golden trees with error bounds, for continuous integration.

PYTEST_DONT_REWRITE: there is nothing to rewrite, and a program may import this before pytest.

The functions of the Python API are loaded on first use; `import ciwrap` loads next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as Python itself
if TYPE_CHECKING:
    from typing import Any

    from ciwrap.api import Golden, build_tree, check_array, compare_arrays, make_golden, read_golden
    from ciwrap.arrays.taught import register_type
    from ciwrap.base.errors import CiwrapError, GoldenMismatch
    from ciwrap.model import ErrorBound, Evidence, VariableResult, Verdict
    from ciwrap.recording.native import Recorder

# As pyproject.toml has it. To look it up in what is installed takes as long as to load click.
__version__ = "0.1.0"

_API = (
    "Golden",
    "build_tree",
    "check_array",
    "compare_arrays",
    "make_golden",
    "read_golden",
)

# Where each public name lives; and what stands for the compiled core, which loads it on first use.
_HOMES = {
    "_core": "ciwrap.base.late",
    "Recorder": "ciwrap.recording.native",
    "register_type": "ciwrap.arrays.taught",
    **dict.fromkeys(_API, "ciwrap.api"),
    "CiwrapError": "ciwrap.base.errors",
    "GoldenMismatch": "ciwrap.base.errors",
    "ErrorBound": "ciwrap.model",
    "Evidence": "ciwrap.model",
    "VariableResult": "ciwrap.model",
    "Verdict": "ciwrap.model",
}

__all__ = [
    "CiwrapError",
    "ErrorBound",
    "Evidence",
    "Golden",
    "GoldenMismatch",
    "Recorder",
    "VariableResult",
    "Verdict",
    "__version__",
    "build_tree",
    "check_array",
    "compare_arrays",
    "make_golden",
    "read_golden",
    "register_type",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ciwrap' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
