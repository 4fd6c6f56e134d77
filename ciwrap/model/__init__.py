"""The plain data that ciwrap's parts hand to each other: bounds, variables, verdicts, results.

No behaviour beyond validation and text forms, and nothing heavy to import. Everything is frozen;
numbers are plain Python numbers, never NumPy scalars.
"""

from ciwrap.model.coverage import Coverage
from ciwrap.model.divergence import Divergence, DivergenceKind
from ciwrap.model.ensemble import EnsembleFacts, Shift
from ciwrap.model.fill_values import fit_fill_values
from ciwrap.model.results import (
    CheckResult,
    CommandOutcome,
    EnvironmentDifference,
    Message,
    MessageLevel,
    RunResult,
    Unlisted,
)
from ciwrap.model.rules import (
    ErrorBound,
    Evidence,
    EvidencePolicy,
    VariableId,
    number_text,
    two_digits_above,
)
from ciwrap.model.strictness import STRICT_KEYS, Strictness, StrictVariables
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
    severity,
    worst_first,
    worst_of,
)
from ciwrap.model.variable_settings import (
    BOUND_PARTS,
    NO_ALIGNMENT,
    SETTINGS,
    SettingArguments,
    SettingsLayer,
    VariableSettings,
)
from ciwrap.model.verdict import Verdict

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
    "VariableResult",
    "Verdict",
    "severity",
    "worst_first",
    "worst_of",
]
