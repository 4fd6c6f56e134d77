"""The plain data that ciwrap's parts hand to each other: bounds, variables, verdicts, results.

No behaviour beyond validation and text forms, and nothing heavy to import. Everything is frozen;
numbers are plain Python numbers, never NumPy scalars. Read first `results`, then `variable_result`.
"""

from __future__ import annotations

from ciwrap.model.fill_values import fit_fill_values
from ciwrap.model.results import (
    CheckResult,
    CommandOutcome,
    Coverage,
    Divergence,
    DivergenceKind,
    EnsembleFacts,
    EnvironmentDifference,
    Message,
    MessageLevel,
    RunResult,
    Shift,
    Unlisted,
    Used,
)
from ciwrap.model.settings import (
    BOUND_PARTS,
    NO_ALIGNMENT,
    SETTINGS,
    STRICT_KEYS,
    ErrorBound,
    Evidence,
    EvidencePolicy,
    SettingArguments,
    SettingsLayer,
    Strictness,
    StrictVariables,
    VariableId,
    VariableSettings,
    number_text,
    two_digits_above,
)
from ciwrap.model.variable_result import (
    ChunkRange,
    Details,
    DifferingElement,
    DifferingInSeries,
    MovedElement,
    NewValues,
    NumberInText,
    SeriesResult,
    VariableResult,
    Verdict,
    severity,
    worst_first,
    worst_of,
)

__all__ = [
    # what is asked
    "BOUND_PARTS",
    "NO_ALIGNMENT",
    "SETTINGS",
    "STRICT_KEYS",
    "ErrorBound",
    "Evidence",
    "EvidencePolicy",
    "SettingArguments",
    "SettingsLayer",
    "StrictVariables",
    "Strictness",
    "VariableId",
    "VariableSettings",
    "fit_fill_values",
    "number_text",
    "two_digits_above",
    # what is found
    "CheckResult",
    "ChunkRange",
    "CommandOutcome",
    "Coverage",
    "Details",
    "DifferingElement",
    "DifferingInSeries",
    "Divergence",
    "DivergenceKind",
    "EnsembleFacts",
    "EnvironmentDifference",
    "Message",
    "MessageLevel",
    "MovedElement",
    "NewValues",
    "NumberInText",
    "RunResult",
    "SeriesResult",
    "Shift",
    "Unlisted",
    "Used",
    "VariableResult",
    "Verdict",
    "severity",
    "worst_first",
    "worst_of",
]
