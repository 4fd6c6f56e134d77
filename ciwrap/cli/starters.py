"""What `ciwrap init` proposes for the outputs of one run of a command, or of several."""

from __future__ import annotations

import filecmp
import shlex
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import replace

from ciwrap.base.errors import CiwrapError, OutputMissingError
from ciwrap.base.repository import ask_git
from ciwrap.formats.catalog import Catalog
from ciwrap.formats.find_outputs import Choice, ChosenBy, OutputFile, find_outputs, kind_of
from ciwrap.formats.known_logs import preset_of
from ciwrap.formats.look import MAX_FILES, Survey, survey
from ciwrap.formats.reader import VariableInfo
from ciwrap.model.settings import OWN_FORMATS
from ciwrap.project.config import options_of_preset
from ciwrap.project.starter import (
    AS_TEXT,
    MOST_CHECKS,
    FoundFile,
    FoundVariable,
    Starter,
    make_starter,
    quoted,
)
from ciwrap.report.text import plural, safe_text
from ciwrap.studies.same_runs import Noise, SomeRuns, file_noise, run_often, text_lines, text_noise

_AS_BYTES = (("format", "bytes"),)
_OTHER_BYTES = "the runs differ, in bytes that no reader knows"
ALL_NUMBERS = "a check with 'format: tokens' takes all of them"
_ONLY_THE_FIRST = (
    "only the first run differs, so the command may go on from what a run leaves; have it remove"
    " that first"
)
_APPENDED = "each run appends to it; have the command remove it first"
_BLOCK_BYTES = 1 << 20
_MAY_CHANGE = ("# options: {ignore: [dates, times]}    # what two honest runs print anew",)
_MOST_NAMED = 5
_MOST_LEFT_OUT = 20


def starter_for(
    root: Path, outputs: Sequence[str], command: str | None = None, runs: SomeRuns | None = None
) -> tuple[Starter, list[str]]:
    """A starter for the given outputs, or for whatever can be read below root or below the folders
    among them; and, in words, what was left out. command: what makes them. runs: of it.

    Raises OutputMissingError if there is nothing, and the errors of reading files that were named:
    a configuration for files that cannot be read helps nobody.
    """
    folders = [one for one in outputs if _is_looked_through(root / one)]
    named = [one for one in outputs if one not in folders]
    files = _named(root, named) if named else []
    # What a program reads and its sources are in git; what it writes is not.
    tracked = () if outputs else (ask_git(root, "ls-files", "-z") or "").split("\0")
    inputs = tracked if runs is None else runs.unwritten
    result = _looked_through(root, folders if outputs else ["."], inputs)
    files += [
        _found(one.path.as_posix(), one.variables, _keys(one.preset, one.format))
        for one in result.candidates
    ]
    if runs is not None:
        files, result = _of_runs(files, result, runs)
    named_by_command = set(map(Path, shlex.split(command or "")))  # the program's source, say
    texts = tuple(one for one in result.texts if one not in named_by_command)
    if not files:  # texts may be inputs and notes, but are all that there is
        found = [_found(one.as_posix(), (), _text_keys(one)) for one in texts]
        files = [replace(one, lines=_MAY_CHANGE if one.keys == AS_TEXT else ()) for one in found]
        texts = ()
    if not files:
        more = "".join(f" ({one})" for one in _left_out(result, texts)[:1])
        raise OutputMissingError(
            f"there is nothing here or below that ciwrap can read{more}",
            file=(root / folders[0] if folders else root).absolute(),
            remedy="run the program first, or name its outputs: ciwrap init out/*.csv",
        )
    others = [
        path.as_posix() for path in (*texts, *result.unknown, *dict(result.skipped), *result.inputs)
    ]
    unopened = [path.as_posix() for path in result.unopened]
    starter = make_starter(files, command=command, others=others, unopened=unopened)
    left_out = [*_left_out(result, texts, runs), *_ignored(files), *_without_rules(files)]
    if starter.left_out:
        left_out.append(
            f"{plural(starter.left_out, 'file')} after the first {MAX_FILES:,}, which were not"
            " looked into"
        )
    if starter.unlisted:
        count = plural(starter.unlisted, "file")
        why = f"beyond the first {MOST_CHECKS} checks; name outputs to have others"
        left_out.append(f"{count} {why}")
    text = starter.text + in_comment(left_out) + _stubs(root, result, texts)
    return replace(starter, text=text), left_out


def starter_of_runs(
    root: Path, outputs: Sequence[str], command: Sequence[str], count: int
) -> tuple[Starter, list[str]]:
    """As `starter_for`, of what a command writes: it is run `count` times, and what the runs need
    to match is proposed. Raises CommandFailedError as well, and as `run_command` does.
    """
    with tempfile.TemporaryDirectory(prefix="ciwrap-init-") as kept:
        runs = run_often(command, count, root, Path(kept))
        return starter_for(root, outputs, shlex.join(command), runs)


def _of_runs(
    files: Sequence[FoundFile], result: Survey, runs: SomeRuns
) -> tuple[list[FoundFile], Survey]:
    """The files with what the runs say of them, among them texts, unknown ones, and, by their
    bytes, those that their readers cannot read; and the others as skipped.
    """
    found: list[FoundFile] = []
    skipped: list[tuple[Path, str]] = []
    others = [_found(path.as_posix(), (), _text_keys(path)) for path in result.texts]
    others += [_found(path.as_posix(), (), _AS_BYTES) for path in result.unknown]
    for file in (*files, *others):
        noise = _noise(file, runs)
        if noise.problem is None:
            found.append(_with_noise(file, noise))
        else:
            skipped.append((Path(file.path), noise.problem))
    for path, why in result.skipped:
        file = _found(path.as_posix(), (), _AS_BYTES)
        is_equal = "{" not in file.path and _noise(file, runs).problem is None
        if is_equal:  # which says more than nothing
            found.append(replace(file, lines=(f"# {safe_text(why)}",)))
        else:
            skipped.append((path, why))
    return found, replace(result, texts=(), unknown=(), skipped=tuple(skipped))


def _noise(file: FoundFile, runs: SomeRuns) -> Noise:
    last = runs.folder / file.path
    earlier = [one / file.path for one in runs.earlier if (one / file.path).exists()]
    if len(earlier) < len(runs.earlier) or file.path not in runs.written_last:
        return Noise(problem="not every run wrote it")
    noise = _noise_between(file, earlier, last, runs.folder)
    # A program that goes on from what it finds does so in each run but the first.
    if noise.problem and earlier[1:]:
        later = _noise_between(file, earlier[1:], last, runs.folder)
        if later.problem is None:
            return Noise(problem=_ONLY_THE_FIRST)
    if noise.problem and all(map(_goes_on, (*earlier, last), (*earlier[1:], last))):
        return Noise(problem=_APPENDED)
    return noise


def _goes_on(first: Path, second: Path) -> bool:
    """Whether the second file begins with all of the first one, and goes on."""
    sizes = [one.stat().st_size if one.is_file() else 0 for one in (first, second)]
    if not 0 < sizes[0] < sizes[1]:
        return False
    with first.open("rb") as ours, second.open("rb") as theirs:
        while block := ours.read(_BLOCK_BYTES):
            if theirs.read(len(block)) != block:
                return False
    return True


def _noise_between(file: FoundFile, earlier: Sequence[Path], last: Path, folder: Path) -> Noise:
    try:
        if file.keys == AS_TEXT:
            if not last.stat().st_size:
                return Noise(problem="it is empty")
            return text_noise(earlier, last, folder)
        if file.keys == _AS_BYTES:
            is_equal = all(filecmp.cmp(one, last, shallow=False) for one in earlier)
            return Noise(problem=None if is_equal else _OTHER_BYTES)
        keys = dict(file.keys)
        options = options_of_preset(keys["use"]) if "use" in keys else None
        return file_noise(earlier, last, keys.get("format"), options)
    except CiwrapError as error:
        return Noise(problem=error.message)


def _with_noise(file: FoundFile, noise: Noise) -> FoundFile:
    ignored = {one.what: one.shown for one in noise.variables}
    if file.keys == AS_TEXT:
        return replace(file, lines=text_lines(noise))
    return replace(file, bounds=noise.bounds, ignored=ignored)


def _keys(preset: str | None, format_name: str | None = None) -> tuple[tuple[str, str], ...]:
    if preset is not None:
        return (("format", "log"), ("use", preset))
    return () if format_name is None else (("format", format_name),)


def _is_looked_through(path: Path) -> bool:
    if path.is_absolute() or not path.is_dir():
        return False
    return not Choice().is_store(path, path.name, looks_inside=False)


def _looked_through(root: Path, folders: Sequence[str], inputs: Collection[str]) -> Survey:
    """What lies below the folders, under its path from root."""
    found = Survey()
    for folder in folders:
        one = survey(root / folder, inputs=inputs)
        at = Path(folder)
        found = Survey(
            (*found.candidates, *(replace(c, path=at / c.path) for c in one.candidates)),
            (*found.skipped, *((at / path, why) for path, why in one.skipped)),
            (*found.texts, *(at / path for path in one.texts)),
            (*found.unknown, *(at / path for path in one.unknown)),
            (*found.unopened, *(at / path for path in one.unopened)),
            (*found.inputs, *(at / path for path in one.inputs)),
        )
    return found


def in_comment(left_out: Sequence[str]) -> str:
    """What is not compared, where whoever reads the configuration sees it."""
    lines = ["", "# Not compared so far:", *(f"#   {safe_text(one)}" for one in left_out)]
    return "\n".join([*lines, ""]) if left_out else ""


def _stubs(root: Path, result: Survey, texts: Sequence[Path]) -> str:
    """Checks of raw numbers and of texts to fill in and to make part of `checks`."""
    raw = []
    for path, _ in result.skipped:
        if path.suffix.lower() not in OWN_FORMATS["raw"].suffixes:
            continue
        size = _byte_count(root / path)
        scalar = next((one for one in (8, 4) if size and size % one == 0), None)
        if scalar is None:
            continue
        options = f"options: {{dtype: f{scalar}, shape: [{size // scalar}]}}"
        raw.append(f"  # {quoted(path.stem)}: {{outputs: {quoted(path.as_posix())}, {options}}}")
    said = [
        f"  # {quoted(path.name)}: {{outputs: {quoted(path.as_posix())},"
        f" format: {_format_of(path)}}}"
        for path in texts
    ]
    return _commented("Raw numbers, if these are their types and shapes:", raw) + _commented(
        "Texts, compared by their keys or token by token (`ciwrap init --logs FILE --dry-run`:"
        " single values):",
        said,
    )


# Texts whose numbers have keys. They are read if somebody asks: many are inputs.
_KEYED = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def _format_of(path: Path) -> str:
    return _KEYED.get(path.suffix.lower(), AS_TEXT[0][1])


def _text_keys(path: Path) -> tuple[tuple[str, str], ...]:
    return (("format", _format_of(path)),)


def _commented(head: str, lines: Sequence[str]) -> str:
    return f"\n  # {head}\n" + "\n".join(lines[:_MOST_NAMED]) + "\n" if lines else ""


def _byte_count(path: Path) -> int:
    """0 for what is no file, such as a link to what is not there; what was left out names it."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _left_out(result: Survey, texts: Sequence[Path], runs: SomeRuns | None = None) -> list[str]:
    lines = [f"{path}: {why}" for path, why in result.skipped]
    if len(lines) > _MOST_LEFT_OUT:
        lines[_MOST_LEFT_OUT:] = [f"and {len(lines) - _MOST_LEFT_OUT} more files"]
    if texts:
        lines.append(
            f"{plural(len(texts), 'text')}: {_kinds(texts)}; uncomment checks of them at the end of"
            " ciwrap.yaml"
        )
    if result.unknown:
        lines.append(
            f"{plural(len(result.unknown), 'file')} that no reader knows: {_kinds(result.unknown)};"
            " 'formats' names a reader, 'format: bytes' compares their bytes"
        )
    if result.inputs:
        why = "that git tracks" if runs is None else "that the command does not write"
        lines.append(f"{plural(len(result.inputs), 'file')} {why}, taken for inputs")
    return lines


def _ignored(files: Sequence[FoundFile]) -> list[str]:
    """Variables that move too far between the runs, and what to do in place of leaving them out."""
    names = sorted({name for one in files for name in one.ignored})
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    text = (
        f"{plural(len(names), 'variable')} under 'ignore', which the runs change too far for a"
        f" bound: {', '.join(names[:_MOST_NAMED])}{more}; to compare them, fix the program's seed,"
        " or take them out of 'ignore' and give them an 'atol' under 'variables'"
    )
    return [text]


def _without_rules(files: Sequence[FoundFile]) -> list[str]:
    """What shipped rules leave out of the logs that they are for."""
    counts = Counter(value for one in files for key, value in one.keys if key == "use")
    return [
        f"numbers of {plural(count, 'log')} that 'use: {preset}' does not name; {ALL_NUMBERS}"
        for preset, count in counts.items()
    ]


def _kinds(paths: Sequence[Path]) -> str:
    """`.log (2), without a suffix (1)`."""
    counts = Counter(kind_of(path) for path in paths)
    named = [f"{suffix} ({count})" for suffix, count in counts.most_common(_MOST_NAMED)]
    more = [f"and {len(counts) - _MOST_NAMED} more kinds"] if len(counts) > _MOST_NAMED else []
    return ", ".join([*named, *more])


def _named(root: Path, outputs: Sequence[str]) -> list[FoundFile]:
    """The files of outputs, each looked into alone: two of them may name the same variables."""
    files: dict[str, FoundFile] = {}
    for output in outputs:
        found = find_outputs(root, [output], trusts_suffixes=False)
        with Catalog(found) as catalog:
            if catalog.errors:
                raise catalog.errors[0]
        for file in found.files:
            path = file.path.relative_to(root).as_posix()
            files[path] = _opened(path, file)
    return list(files.values())


def _opened(path: str, file: OutputFile) -> FoundFile:
    if file.chosen_by is ChosenBy.CONTENT and file.reader.name in ("tokens", "bytes"):
        preset = preset_of(file.path)
        keys = (("format", file.reader.name),) if preset is None else _keys(preset)
        return _found(path, (), keys)
    format_name = None if file.why is None else file.reader.name
    with file.open() as source:
        return _found(path, source.variables, _keys(None, format_name))


def _found(
    path: str, variables: Sequence[VariableInfo], keys: tuple[tuple[str, str], ...] = ()
) -> FoundFile:
    """A file, its variables under the names that rules know them by in every iteration."""
    named = tuple(FoundVariable(v.called or v.name, v.dtype, v.shape) for v in variables)
    return FoundFile(path, named, keys)
