"""What ciwrap.yaml may hold: the one place that names its keys, but for the settings of variables.

Those are stated in ciwrap.model.variable_settings. The help ends up in the JSON Schema, which
editors show.
"""

from __future__ import annotations

from ciwrap.config.log_schema import LOG_KEYS, SOURCE_KEYS, refuse_two_bounds
from ciwrap.config.scalars import (
    ANY_TEXT,
    BYTE_ORDER,
    COLUMN_TYPE,
    COMMAND,
    CONFIDENCE,
    FLAG_OR_TEXTS,
    FORMAT_VERSION,
    HEADER_WORD,
    LENGTHS,
    MARGIN,
    MARK_BYTES,
    MARKS,
    OFFSET,
    RECORDS,
    SECONDS,
    SHORT_COMMANDS,
    STEP_SIZE,
    TEXTS,
    VARIABLE_NAME,
)
from ciwrap.config.sections import ANY_MAPPING, Key, MappingOf, MappingOrList, Section
from ciwrap.model import SETTINGS, STRICT_KEYS
from ciwrap.model.forms import DUPLICATES, FLAG, TEXT, one_of, whole

ENVIRONMENT = Key(MappingOf(ANY_TEXT, VARIABLE_NAME), "environment variables to set")
_SETTINGS = {name: Key(one.form, one.help) for name, one in SETTINGS.items()}

BOUND = Section(
    "BoundSection", "Settings that apply to values.", _SETTINGS, check=refuse_two_bounds
)

RUN = Section(
    "RunSection",
    "A command to run before checking.",
    {
        "command": Key(
            COMMAND, "a text for the shell, or a list of words without one", is_required=True
        ),
        "working_dir": Key(TEXT, "where it runs, from the configuration's folder", "."),
        "timeout_seconds": Key(SECONDS, "after which it is ended"),
        "env": ENVIRONMENT,
    },
    short=lambda value: {"command": value} if isinstance(value, (str, list)) else value,
    short_schema=SHORT_COMMANDS,
)

MOST_RUNS = 2000

LEVEL = Section(
    "LevelSection",
    "What is different while a factor is off, or on.",
    {
        "env": ENVIRONMENT,
        "command": Key(COMMAND, "the command to run in place of the configured one"),
        "reserve_core": Key(FLAG, "whether one core is left to the system"),
    },
)

FACTOR = Section(
    "FactorSection",
    "Something that may change results, switched off and on.",
    {
        "off": Key(LEVEL, "while it is off; nothing is different if this is not given"),
        "on": Key(LEVEL, "while it is on", is_required=True),
    },
)

PERTURB = Section(
    "PerturbSection",
    "Input files whose numbers `ciwrap repeat --perturb` changes by a hair for each run.",
    {
        "files": Key(TEXTS, "input files (.npy, HDF5, NetCDF-4), as globs", is_required=True),
        "relative": Key(
            STEP_SIZE, "by how much at most; default: 1e-14 for doubles, 1e-6 for shorter types"
        ),
    },
)

REPEAT = Section(
    "RepeatSection",
    "How `ciwrap repeat` runs the command.",
    {
        "runs": Key(whole(2, MOST_RUNS), "how many runs", 10),
        "reference": Key(
            one_of("first", "golden"), "what runs are compared with: the first one, or the golden"
        ),
        "factors": Key(MappingOf(FACTOR), "what `--vary` can switch, by name"),
        "design": Key(
            one_of("full", "fractional", "one-at-a-time"),
            "which combinations of factors are run: all (up to 4 factors), a fraction of resolution"
            " IV (5 to 8), or each factor alone",
        ),
        "perturb": Key(PERTURB, "input files that `--perturb` changes by a hair"),
    },
)

TIMING = Section(
    "TimingSection",
    "How `ciwrap time` takes run times.",
    {
        "command": Key(COMMAND, "what is timed, instead of the command of `run`"),
        "build": Key(COMMAND, "builds a revision in its working tree, before it is timed"),
        "pairs": Key(whole(1, 1000), "how many pairs of runs", 10),
        "margin": Key(
            MARGIN,
            "the smallest change that matters, as more time of the slower side; 0.05: 5 %",
            0.05,
        ),
        "confidence": Key(
            CONFIDENCE, "of the interval and the verdict; 0.95, or 0.99 where the verdict gates"
        ),
        "gate": Key(FLAG, "exit code 1 where B takes longer, by the margin or more", False),
        "warm_up": Key(whole(0, 100), "runs of either side before those that count", 1),
        "reserve_core": Key(FLAG, "leave one core to the operating system", False),
        "duet": Key(
            FLAG, "run both sides of a pair at the same time, each on half of the cores", False
        ),
        "timeout_seconds": Key(SECONDS, "after which a run is ended"),
    },
)

SNAPSHOT = Section(
    "SnapshotSection",
    "What snapshots of the environment hold (docs/how-to/snapshots.md).",
    {
        "objects": Key(
            FLAG,
            "look at the command's processes while it runs, for the libraries that they load",
            True,
        ),
        "keep_files": Key(
            FLAG, "`ciwrap snapshot save` keeps the libraries themselves, too", False
        ),
    },
)

STRICT = Section(
    "StrictSection",
    "Which mismatches make a check not comparable.",
    {name: Key(form, text) for name, (form, text) in STRICT_KEYS.items()},
)

_REGION = Section(
    "RegionSection",
    "A region of a VELOC checkpoint.",
    {
        "dtype": Key(TEXT, "such as float64", is_required=True),
        "shape": Key(LENGTHS, "lengths; one may be -1"),
        "name": Key(TEXT, "what the variable is called"),
    },
    short=lambda value: {"dtype": value} if isinstance(value, str) else value,
    short_schema=({"type": "string"},),
)

OPTIONS = Section(
    "OptionsSection",
    "Options of ciwrap's own readers.",
    {
        "dtype": Key(TEXT, "raw: such as float32, '>f8', bfloat16"),
        "shape": Key(LENGTHS, "raw: lengths; one may be -1 (as the file's size says)"),
        "offset": Key(OFFSET, "raw: bytes before the array"),
        "byte_order": Key(BYTE_ORDER, "raw: little (default) or big; fortran: what fits"),
        "records": Key(
            RECORDS, "fortran: for each record names and dtype, or of each variable its dtype"
        ),
        "first_records": Key(RECORDS, "fortran: records that come once, before 'records'"),
        "mark_bytes": Key(MARK_BYTES, "fortran: length of a record's marks; what fits"),
        "delimiter": Key(ANY_TEXT, "text: between columns; 'space' for blanks"),
        "header": Key(HEADER_WORD, "text: whether the first line names columns"),
        "comment": Key(MARKS, "text: what comment lines begin with, or a list of such marks"),
        "skip_rows": Key(whole(0, 1 << 31), "text: lines at the start that are no part of it"),
        "iteration": Key(TEXT, "text: the column whose whole numbers are the steps of the rows"),
        "types": Key(MappingOf(COLUMN_TYPE), "text: types of columns"),
        "empty_is_nan": Key(FLAG, "text: read empty cells as NaN"),
        "final_newline": Key(FLAG, "text: a last line without a line break is an error (true)"),
        "ignore": Key(
            TEXTS, "tokens: what is not compared (dates, times, paths, hosts, pids, memory)"
        ),
        "ignore_lines": Key(TEXTS, "tokens: lines that are left out; `*` stands for any text"),
        "iterations": Key(
            TEXT, "files with a history: 'auto', 'none', or the dimension that is time"
        ),
        "iteration_variable": Key(
            TEXT, "files with a history: the variable whose values number the iterations"
        ),
        "iteration_step": Key(
            STEP_SIZE, "files with a history: what one iteration adds to that variable"
        ),
        "attributes": Key(
            FLAG_OR_TEXTS,
            "names of attributes that belong to a variable as its dtype does (units, calendar,"
            " _FillValue, scale_factor and others); true: compare all others, too; false: none",
        ),
        "regions": Key(
            MappingOf(_REGION), "veloc: dtype, and name and shape, of each region by its id"
        ),
    },
)

FORMAT_RULE = Section(
    "FormatSection",
    "The reader of some files.",
    {
        "format": Key(TEXT, "the reader", is_required=True),
        "options": Key(ANY_MAPPING, "options of that reader, in place of those of the check"),
    },
    short=lambda value: {"format": value} if isinstance(value, str) else value,
    short_schema=({"type": "string"},),
)

_CHECK_KEYS = {
    **_SETTINGS,
    "outputs": Key(
        TEXTS,
        "files, folders, globs, or templates such as out/iter_{iteration:d}/{name}.npy",
        is_required=True,
    ),
    "exclude": Key(TEXTS, "files to leave out, as globs", ()),
    "layout": Key(TEXT, "where iteration, rank and name are in a path, if 'outputs' does not say"),
    "format": Key(TEXT, "the reader, if the suffix does not tell"),
    "formats": Key(
        MappingOf(FORMAT_RULE),
        'readers of the files that a glob means, such as `"*.e": netcdf`; of several globs that'
        " fit, the first counts",
    ),
    # Foreign readers have options of their own; see `loading`.
    "options": Key(ANY_MAPPING, "options of the reader"),
    **SOURCE_KEYS,
    **LOG_KEYS,
    "run": Key(RUN, "a command of this check's own"),
    "ignore": Key(TEXTS, "variables to leave out, as names or globs", ()),
    "until_iteration": Key(
        whole(0, 1 << 53), "the last iteration to compare; later ones count as ignored"
    ),
    "ensemble": Key(
        TEXTS,
        "folders of runs, as globs; each holds these outputs of one run, and their statistics are"
        " compared with an ensemble",
    ),
    "duplicates": Key(
        DUPLICATES, "which counts of what was written twice: an error, the first, the last"
    ),
    "strict": Key(STRICT, "which mismatches are errors"),
    "variables": Key(
        MappingOf(BOUND),
        "settings by name or glob; of several that match, the last counts, and a name before any"
        " glob",
    ),
}

CHECK = Section("CheckSection", "One check.", _CHECK_KEYS, check=refuse_two_bounds)

NAMED_CHECK = Section(
    "NamedCheckSection",
    "One check of a list.",
    {**_CHECK_KEYS, "name": Key(TEXT, "the check's name", is_required=True)},
    check=refuse_two_bounds,
)

CONFIG = Section(
    "ConfigSection",
    "ciwrap.yaml",
    {
        "version": Key(FORMAT_VERSION, "version of this format", 1),
        "golden_dir": Key(TEXT, "folder of the goldens", "golden"),
        "defaults": Key(BOUND, "settings for all checks"),
        "run": Key(RUN, "the command that makes the outputs"),
        "repeat": Key(REPEAT, "what `ciwrap repeat` does"),
        "timing": Key(TIMING, "what `ciwrap time` does"),
        "snapshot": Key(SNAPSHOT, "what snapshots of the environment hold"),
        "checks": Key(
            MappingOrList(MappingOf(CHECK), NAMED_CHECK), "the checks, by name", is_required=True
        ),
    },
)
