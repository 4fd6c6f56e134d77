"""Sentences about maps, for every output the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import (
    grouped_number,
    percent_text,
    plural,
    safe_name,
    seconds_text,
    short_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.variability.document import (
        Candidate,
        MapSummary,
        Prediction,
        Repeats,
        VariabilityDocument,
    )
    from ciwrap.variability.influence import Influence

_RARE = 0.01
_MUCH_LEFT = 0.5


def category_words(category: Mapping[str, str]) -> str:
    """`scheduler=CFQ test=fread`; '' without categories."""
    return " ".join(
        f"{safe_name(name, 60)}={safe_name(text, 60)}" for name, text in category.items()
    )


def configuration_words(configuration: Mapping[str, float], category: Mapping[str, str]) -> str:
    """`threads=4 size=1024`."""
    numbers = " ".join(
        f"{safe_name(name, 60)}={number_words(value)}" for name, value in configuration.items()
    )
    words = category_words(category)
    return f"{words} {numbers}" if words else numbers


def number_words(value: float) -> str:
    """As it would be typed: `4`, `1048576`, `2.75`."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def error_words(error: float) -> str:
    """`5.6 %`, `340 %`."""
    return f"{short_number(float(f'{100 * error:.2g}'))} %"


def headline(document: VariabilityDocument) -> str:
    """The first sentence."""
    if document.did == "fit":
        maps = document.maps
        total = sum(one.configurations for one in maps)
        runs = sum(one.runs for one in maps)
        what = "a map" if len(maps) == 1 else f"{len(maps)} maps"
        return (
            f"{what} of the variability of {safe_name(document.value, 60)}, from"
            f" {grouped_number(total)} configurations and {grouped_number(runs)} runs"
        )
    if document.did == "predict":
        return prediction_words(document.predictions[0])
    if document.repeats:
        return repeats_words(document.repeats[0])
    return f"what to measure next: {plural(len(document.candidates), 'configuration')}"


def fit_words(one: MapSummary) -> list[str]:
    """What a map is worth."""
    optimistic = ", probably optimistic with so few configurations" if one.few else ""
    unseen = "in the mean for configurations it has not seen"
    found = [
        f"{one.predictor}: off by {error_words(one.error)} {unseen}{optimistic}",
        _floor_words(one),
    ]
    if one.factor is not None:
        found.append(
            f"90 % of unseen configurations lie within a factor of {one.factor:.2f} of what it says"
        )
    return found


def influence_words(one: MapSummary) -> list[str]:
    """Which parameters drive the variability, the strongest first."""
    found = one.influences
    if found is None:
        return ["too few configurations to tell which parameters drive the variability"]
    sure = [term for term in found.terms if term.p < _RARE]
    lines = [_influence_words(term) for term in sure]
    if not sure:
        lines.append("no parameter is seen to drive the variability")
    if found.left > _MUCH_LEFT:
        lines.append(
            f"{percent_text(found.left)} of the variance of log sigma is explained by none of these"
        )
    if found.grouped:
        names = ", ".join(safe_name(name, 60) for name in found.grouped)
        lines.append(
            f"neighbouring levels of {names} count as one here, since too few configurations were"
            " measured to tell all of them apart"
        )
    if not found.with_pairs:
        lines.append("there are too few configurations to look for interactions")
    return lines


def _influence_words(term: Influence) -> str:
    names = [safe_name(name, 60) for name in term.parameters]
    share = percent_text(term.share)
    if len(names) == 1:
        return f"{names[0]}: {share} of the variance; sigma changes {term.factor:.2g}-fold"
    return f"{names[0]} with {names[1]}: {share}; beyond each alone, {term.factor:.2g}-fold"


def score_rows(one: MapSummary) -> list[tuple[str, str, str]]:
    """Predictor, error, and a remark, for a table."""
    rows = []
    for score in one.scores:
        if score.error is None or score.deviation is None:
            rows.append((score.predictor, "-", safe_name(score.reason or "", 200)))
            continue
        remark = "chosen" if score.predictor == one.predictor else ""
        rows.append(
            (
                score.predictor,
                f"{error_words(score.error)} \u00b1 {error_words(score.deviation)}",
                remark,
            )
        )
    rows.append(
        ("noise floor", error_words(one.floor), "by estimate, what a perfect map would have")
    )
    return rows


def prediction_words(one: Prediction) -> str:
    """The first sentence about a configuration."""
    where = configuration_words(one.configuration, one.category)
    text = f"sigma of {where} is probably {short_number(one.sigma)}"
    if one.lower is not None and one.upper is not None:
        text += (
            f", between {short_number(one.lower)} and {short_number(one.upper)} with"
            f" {100 * one.confidence:g} % confidence"
        )
    return text


def prediction_notes(one: Prediction) -> list[str]:
    found = []
    if one.extrapolated:
        found.append(
            "extrapolated: it lies beyond what was measured, where neither the prediction nor its"
            " interval is to be trusted"
        )
    if one.lower is None:
        found.append(
            f"there are too few configurations for an interval with {100 * one.confidence:g} %"
            " confidence"
        )
    if one.measured_sigma is not None and one.measured_runs is not None:
        found.append(
            f"it was measured: sigma {short_number(one.measured_sigma)} from"
            f" {plural(one.measured_runs, 'run')}"
        )
    if one.mean is not None:
        found.append(
            f"that is {percent_text(one.sigma / one.mean)} of the mean, probably"
            f" {short_number(one.mean)}"
        )
    optimistic = " (probably optimistic: few configurations)" if one.few else ""
    found.append(
        f"{one.predictor}, off by {error_words(one.error)} in the mean for configurations it has"
        f" not seen{optimistic}"
    )
    return found


def repeats_words(one: Repeats) -> str:
    """The first sentence about a configuration's repeats."""
    where = configuration_words(one.configuration, one.category)
    return (
        f"sigma of {where} takes {plural(one.for_sigma, 'run')} to within"
        f" {100 * one.error:g} % with {100 * one.confidence:g} % confidence"
    )


def repeats_notes(one: Repeats) -> list[str]:
    """What it rests on, what it costs, and what the mean takes."""
    found = [_measured_words(one) if one.is_measured else _predicted_words(one)]
    if one.for_mean is not None:
        wanted = f"the mean takes {plural(one.for_mean, 'run')} to within {100 * one.error:g} %"
        found.append(wanted + _still(one, one.more_for_mean or 0, one.seconds_for_mean))
    found.append(
        "the interval of sigma comes 75 % of the way from its width at 10 runs to that at 40 after"
        f" {one.curve.at_75} runs, 90 % after {one.curve.at_90}"
    )
    # What shape the runs have is not to be told from one number.
    found.append(
        f"the kurtosis of the runs is {one.kurtosis:.2g} (evenly spread noise has 1.8, normal noise"
        " 3; far outliers make it larger)"
    )
    return found


def _measured_words(one: Repeats) -> str:
    known = f"its runs so far give {short_number(one.sigma)}, to within"
    return (
        f"{known} {percent_text(one.half_width or 0.0)}"
        f"{_still(one, one.more_for_sigma, one.seconds_for_sigma)}"
    )


def _predicted_words(one: Repeats) -> str:
    beyond = ", extrapolated beyond what was measured" if one.extrapolated else ""
    return (
        f"the map predicts {short_number(one.sigma)}{beyond}"
        f"{_still(one, one.more_for_sigma, one.seconds_for_sigma)}"
    )


def _floor_words(one: MapSummary) -> str:
    """The floor is estimated from the runs of each configuration, the error from those of others:
    either may be the smaller one.
    """
    words = (
        "sigma itself is uncertain: by estimate, a perfect map would be off by"
        f" {error_words(one.floor)}"
    )
    return words if one.floor < one.error else f"{words}, so this one cannot be told from it"


def _still(one: Repeats, more: int, seconds: float | None) -> str:
    """`: 12 more`, `: 12 more, 3.1 s in all`, `: that is enough`."""
    if one.is_measured and not more:
        return ", which its runs reach"
    cost = "" if seconds is None else f"; {_cost(seconds)}"
    return f", {plural(more, 'run')} more{cost}" if one.is_measured else cost


def _cost(seconds: float | None) -> str:
    return f"{seconds_text(seconds or 0.0)} in all"


def candidate_words(one: Candidate) -> str:
    text = (
        f"{configuration_words(one.configuration, one.category)}: sigma probably"
        f" {short_number(one.sigma)}, known within a factor of {one.uncertainty:.2f};"
        f" {plural(one.repeats, 'run')}"
    )
    return text if one.seconds is None else f"{text}, {_cost(one.seconds)}"
