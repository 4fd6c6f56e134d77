"""What `ciwrap variability` found, as the record that its JSON document is made of."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.documents.records import DocumentHead
from ciwrap.variability.curve import Curve
from ciwrap.variability.influence import Influences
from ciwrap.variability.validation import Score


class Parameter(msgspec.Struct, frozen=True):
    """A parameter that varies. levels: how many different values. is_log: whether it counts by its
    logarithm.
    """

    name: str
    low: float
    high: float
    levels: int
    is_log: bool


class MapPoint(msgspec.Struct, frozen=True):
    """A measured configuration, values in the order of the parameters.

    sigma: the standard deviation of its runs. predicted: of the map when it had not seen this
    configuration, the geometric mean over the rounds of the cross-validation.
    """

    values: tuple[float, ...]
    runs: int
    sigma: float
    predicted: float


class Slice(msgspec.Struct, frozen=True):
    """The map over two parameters while the others are held.

    x, y: names. held: values of the others. x_values, y_values: where sigma is predicted, a row for
    each y.
    """

    x: str
    y: str
    held: dict[str, float]
    x_values: tuple[float, ...]
    y_values: tuple[float, ...]
    sigma: tuple[tuple[float, ...], ...]


class MapSummary(msgspec.Struct, frozen=True):
    """One map. category: which one it is. predictor: whose map it is. error: its mean of |predicted
    - measured| / measured over unseen configurations. floor: by estimate, the error that a
    perfect map would have. few: whether there are so few configurations that the error is probably
    optimistic. factor: a prediction divided and multiplied by it holds 90 % of unseen
    configurations. scores: all predictors, the best first. kurtosis: of the runs, the median.
    fixed: parameters with one value.
    """

    category: dict[str, str]
    configurations: int
    runs: int
    predictor: str
    error: float
    floor: float
    few: bool
    factor: float | None
    kurtosis: float
    scores: tuple[Score, ...]
    parameters: tuple[Parameter, ...]
    fixed: dict[str, float]
    notes: tuple[str, ...]
    influences: Influences | None
    points: tuple[MapPoint, ...]
    slices: tuple[Slice, ...]


class Prediction(msgspec.Struct, frozen=True):
    """The variability of one configuration.

    sigma: as predicted. lower, upper: hold it with this confidence; null with too few
    configurations to tell. extrapolated: whether it lies beyond what was measured. mean: the
    predicted mean, null where means are not all above 0. measured_sigma, measured_runs: of this
    configuration, where it was measured.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    sigma: float
    confidence: float
    extrapolated: bool
    predictor: str
    error: float
    few: bool
    lower: float | None = None
    upper: float | None = None
    mean: float | None = None
    seconds: float | None = None
    measured_sigma: float | None = None
    measured_runs: int | None = None


class Repeats(msgspec.Struct, frozen=True):
    """How many repeats of a configuration a wanted precision takes.

    error: to within which share, with this confidence. for_sigma, for_mean: repeats in all.
    more_for_sigma, more_for_mean: those that are not there yet. kurtosis: what the number for sigma
    rests on. half_width: to within which share sigma is known after the repeats that are there.
    seconds_per_run, seconds_for_sigma, seconds_for_mean: what these repeats cost.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    error: float
    confidence: float
    sigma: float
    is_measured: bool
    extrapolated: bool
    kurtosis: float
    for_sigma: int
    more_for_sigma: int
    curve: Curve
    half_width: float | None = None
    for_mean: int | None = None
    more_for_mean: int | None = None
    seconds_per_run: float | None = None
    seconds_for_sigma: float | None = None
    seconds_for_mean: float | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A configuration to measure next. uncertainty: the factor within which the map knows its
    sigma, with 90 % confidence. repeats: for sigma to the wanted precision. seconds: what these
    cost.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    sigma: float
    uncertainty: float
    repeats: int
    seconds: float | None = None


class VariabilityDocument(DocumentHead, frozen=True):
    """What a map of variability is, says, or is planned with. did: which command. file: of the
    table, or of the map. value: what was measured.
    """

    kind: Literal["variability"]
    did: Literal["fit", "predict", "plan"]
    file: str
    value: str
    seed: int
    maps: tuple[MapSummary, ...]
    predictions: tuple[Prediction, ...]
    repeats: tuple[Repeats, ...]
    candidates: tuple[Candidate, ...]
    environment: dict[str, str]
    ciwrap_version: str
    started_at: str
    seconds: float
    map_file: str | None = None
