"""The compiled core: quantising, hashing, trees, golden files, streaming comparison.

Arrays go in as anything with the buffer protocol (C-contiguous) and come out as NumPy arrays. Long calls release
the GIL and stop at Ctrl-C. Errors are those of `ciwrap.base.errors`, made by `ciwrap.base.errors` from these codes:
invalid_argument, io, corrupt_file, unsupported, too_large, not_available, interrupted, internal.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from ciwrap.base.errors import CiwrapError

__version__: str

CoreError = CiwrapError  # the common base of all that the core raises

@final
class TreeParameters:
    """Everything that decides the digests of an array (docs/reference/cell-codes.md).

    dtype: NumPy's array-protocol string with byte order ("<f4", ">i8", "|b1", "<c16", "|S12", "<U5") or "<bf2".
    atol, rtol: finite, >= 0. ulps: a ULP bound (excludes atol and rtol). The bound is reduced to what the type allows,
    which is stricter, and the attributes tell what is left: only floats and complex numbers have rtol and ulps,
    booleans, bytes and text have no atol either. residue_levels: 1 or odd 3..255, as asked; the effective one may be
    smaller (`steps`) or 1 (`exact`).
    Raises CoreError("invalid_argument").
    """

    def __init__(
        self,
        dtype: str,
        *,
        atol: float = 0.0,
        rtol: float = 0.0,
        ulps: int = 0,
        residue_levels: int = 1,
        chunk_bytes: int = 4096,
        arity: int = 16,
        equal_nan: bool = True,
        fill_values: Sequence[float | int] = (),
    ) -> None: ...
    dtype: str
    atol: float
    rtol: float
    ulps: int
    requested_residue_levels: int
    residue_levels: int
    chunk_bytes: int
    arity: int
    equal_nan: bool
    fill_values: tuple[float | int, ...]
    kind: Literal["exact", "absolute", "relative", "steps"]
    scalar_bytes: int
    scalars_per_element: int  # 2 for complex, else 1
    chunk_scalars: int
    code_bytes: int
    # Share of the bound that never raises a false alarm against residues (exact: 1.0).
    guaranteed_share: float
    exact_above: float  # magnitudes from here on are compared exactly (inf: none)
    # Whether a chunk whose digests differ surely holds a differing element: bounds of zero, exact types, and bounds in
    # steps whose residues tell every step apart (of a tree made against the other). Elsewhere it may be a false alarm.
    suspect_is_proof: bool
    is_narrowed: bool  # whether digests leave out a part of the bound
    def __eq__(self, other: object) -> bool: ...

@final
class Tree:
    """Merkle tree of one array. Immutable."""

    parameters: TreeParameters
    scalar_count: int
    leaf_count: int
    level_counts: tuple[int, ...]  # root first; sum = node count
    root: bytes  # 16 bytes, canonical XXH3-128
    digests: NDArray[np.uint8]  # (nodes, 16), root first, leaves last; read-only
    leaf_digests: NDArray[np.uint8]  # (leaf_count, 16) view
    residues: NDArray[np.uint8] | None  # packed, see cell-codes.md section 8
    @staticmethod
    def from_parts(
        parameters: TreeParameters,
        scalar_count: int,
        leaf_digests: NDArray[np.uint8],
        residues: NDArray[np.uint8] | None = None,
    ) -> Tree:
        """Builds the upper levels anew. Raises CoreError if the sizes do not fit scalar_count."""
    def leaf_residues(self, leaf: int) -> NDArray[np.uint8]:
        """Unpacked residues of one leaf, one per scalar."""

@final
class Drift:
    """How far a run moved from a golden with residues, over the *matching* chunks only."""

    scalar_count: int  # scalars in matching chunks that were rounded (not special)
    max_level: int  # largest |delta| in fine steps, 0..h
    # max_level / (h + 1): share of the error bound used up, to within one fine step.
    max_share: float
    histogram: NDArray[np.int64]  # (h + 1,): scalars with |delta| = 0..h
    leaf_max_level: NDArray[np.uint8]  # (leaf_count,), 255 for leaves that do not match

@final
class DeviceArray:
    """An array of another library, held where it lies until this is gone; never copied, never written to.

    dtype: as for TreeParameters. device_type, device_id: as DLPack numbers them (-1: not told).
    """

    dtype: str
    shape: tuple[int, ...]
    device_type: int
    device_id: int
    is_contiguous: bool
    @staticmethod
    def from_dlpack(capsule: Any, *, stream: int = 0) -> DeviceArray:
        """Takes a DLPack capsule over. stream: whose work makes the data, as CUDA numbers it; 0: they are there.

        Raises CoreError("unsupported") for types without a comparison.
        """
    @staticmethod
    def from_address(
        address: int,
        shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: str,
        *,
        stream: int = 0,
        owner: Any = None,
    ) -> DeviceArray:
        """CUDA memory by its address; strides in bytes. owner: kept as long as this is."""
    def host_view(self) -> NDArray[Any]:
        """The memory as a read-only array, if it is the host's; bfloat16 as <u2."""
    def read(self, first_element: int, count: int, *, backend: str) -> NDArray[np.uint8]:
        """A copy of some elements' bytes in C order, on the host."""

@final
class FileStamp:
    """Which file a path names and when it was last changed (device, inode, size, mtime, ctime), taken when this is made.

    Raises an error of code "io" if the file cannot be examined. A write in the same tick of the system's clock (some
    milliseconds) as an earlier one may go unnoticed.
    """

    path: str
    size: int
    modified_ns: int
    def __init__(self, path: str | os.PathLike[str]) -> None: ...
    def require_unchanged(self) -> None:
        """Raises an error of code "corrupt_file" ("FILE: was written while it was read") unless the file is as it was."""
    def __eq__(self, other: object) -> bool: ...

@final
class TreeBuilder:
    """Builds a tree from a stream; memory is bounded by the slab, not by the array.

    golden: a tree to be compared with. With residues the new run is rounded relative to it (section 4), and `drift`
    tells the rest. Raises CoreError if golden's parameters or scalar_count differ.
    """

    def __init__(
        self,
        parameters: TreeParameters,
        scalar_count: int,
        *,
        golden: Tree | None = None,
        backend: str = "auto",
        threads: int = 0,
        summaries: bool = False,
    ) -> None: ...
    def update(self, data: Any) -> None:
        """Takes the next bytes (any split is fine)."""
    def update_device(self, array: DeviceArray) -> None:
        """All of the array, hashed on the device it lies on: `backend` has to be that device's."""
    def finish(self) -> Tree:
        """Raises CoreError("invalid_argument") unless exactly scalar_count scalars were given."""
    @property
    def drift(self) -> Drift | None: ...  # after finish(), if golden has residues
    # After finish(): (leaves, 10), as of `summarize_chunks`; None if not asked for, or codes have none.
    @property
    def summaries(self) -> NDArray[np.int64] | None: ...

def update_builders(
    builders: Sequence[TreeBuilder],
    path: str,
    offset: int,
    byte_count: int,
    *,
    engine: str = "auto",
    slab_bytes: int = 0,
    direct: Literal["auto", "always", "never"] = "auto",
    stamp: FileStamp | None = None,
) -> str:
    """Gives all of them the next bytes from a file, which is read once, and ahead while they are hashed. Returns the
    engine used. Raises an error of code "corrupt_file" ("FILE: was written while it was read") if the file was written,
    replaced or removed since it was opened here, or is not what it was at `stamp`; the builders are of no use then."""

def build_tree(
    parameters: TreeParameters,
    data: Any,
    *,
    golden: Tree | None = None,
    backend: str = "auto",
    threads: int = 0,
) -> Tree: ...
def cell_codes(
    parameters: TreeParameters, data: Any, golden_residues: NDArray[np.uint8] | None = None
) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
    """Codes of every scalar (int32/int64/raw bytes) and, if k > 1 and none were given, the unpacked residues."""

def diff_trees(golden: Tree, new: Tree, *, start_level: int = -1) -> NDArray[np.int64]:
    """Suspect leaves, ascending. Breadth-first from start_level (-1: a middle level; 0: the root).
    Raises CoreError if parameters or sizes differ, or if each tree has residues of its own (one has to be made against
    the other)."""

def solve_chunk(
    golden: Tree, leaf: int, data: Any, *, most_trials: int = ...
) -> list[tuple[int, int, int]]:
    """Scalars of a new chunk that are in another cell than the golden's, as (index in the chunk, golden code, golden
    residue): one, or two, whose codes put back give the golden's digest. Empty: not found, which proves nothing.
    data: the new chunk's scalars. Raises CoreError if these are not as many."""

def summarize_chunks(
    parameters: TreeParameters, data: Any, *, golden: Tree | None = None, first_leaf: int = 0
) -> NDArray[np.int64]:
    """What the codes of whole chunks come to (docs/reference/cell-codes.md, section 9): (chunks, 10), least, greatest,
    sum and moment of the rounded ones; counts of NaN, +inf, -inf, missing, zero and huge ones. golden: rounds relative
    to its residues, from its chunk first_leaf on. Raises CoreError("invalid_argument") for codes of the kind `exact`."""

def least_share(parameters: TreeParameters, codes_apart: int) -> float:
    """A share of the bound that digests are made with, by which values surely differ whose codes are so many apart."""

def least_shares(
    parameters: TreeParameters,
    scalar_count: int,
    leaves: NDArray[np.int64],
    golden: NDArray[np.int64],
    other: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What summaries of both sides prove of these chunks of an array of so many scalars: by how large a share of its
    bound a value of each moved, at least (infinite: it is no number on one side alone; 0: nothing is proved), and
    whether that is a distance for sure. golden, other: of these chunks. Raises CoreError("invalid_argument") unless
    these are as many."""

def diff_leaves(golden: Any, new: Any) -> NDArray[np.int64]:
    """Which of two equally long rows of leaf digests (16 bytes each, back to back) do not match, ascending."""

@final
class Comparison:
    """Result of an element comparison (both sides' data at hand).

    Means run over the scalars that are finite on both sides (relative: with a golden other than 0), histogram and
    max_bound_share over elements (the larger part of a complex one).
    """

    element_count: int  # elements compared (complex: elements, not scalars)
    differing_count: int
    first_index: int  # flat element index, -1 if none
    indices: NDArray[np.int64]  # first differing elements, ascending, up to max_indices
    # Over finite pairs, all elements compared; complex: the larger of re/im.
    max_abs_difference: float
    max_abs_index: int
    mean_abs_difference: float
    max_rel_difference: float  # |v-g|/|g| over finite pairs with g != 0
    max_rel_index: int
    mean_rel_difference: float
    # What the means are made of: of several comparisons they add up.
    sum_abs_difference: float
    finite_count: int
    sum_rel_difference: float
    nonzero_count: int  # of the finite pairs, those with a golden other than 0
    max_bound_share: float  # largest |v-g| / (atol + rtol|g|) (or steps/n); inf if the bound is 0 and they differ
    nan_mismatch_count: int  # NaN on one side only (or either, if equal_nan is false)
    inf_mismatch_count: int  # infinities not matched by the same infinity
    missing_mismatch_count: int
    histogram: NDArray[
        np.int64
    ]  # (34,): counts of |v-g|/bound: [0] = 0, [1] < 2^-16, then [2^(i-18), 2^(i-17)) for i = 2..32, [33] = beyond or not finite
    differing_leaves: NDArray[
        np.int64
    ]  # chunks that hold a differing element, ascending; numbered as in the array's tree

@final
class ElementComparer:
    """Element-wise comparison of two streams; exact in the sense of the contract (no rounding of the verdict)."""

    def __init__(
        self,
        parameters: TreeParameters,
        *,
        max_indices: int = 100,
        backend: str = "auto",
        threads: int = 0,
    ) -> None: ...
    def update(self, golden: Any, new: Any, *, first_element: int) -> None:
        """Two equally long pieces of whole elements; pieces in ascending order, gaps allowed."""
    def update_device(
        self, golden: Any, new: Any, *, first_element: int, element_count: int
    ) -> None:
        """The same where at least one is a DeviceArray (as a whole) of the backend's device, the other that or the
        elements' bytes. What has no kernel on devices is brought over and compared on the host."""
    def finish(self) -> Comparison: ...

def check_deciders(
    parameters: TreeParameters,
    comparison: Comparison,
    suspects: NDArray[np.int64],
    *,
    compared_leaves: NDArray[np.int64] | None = None,
) -> None:
    """Holds what digests and elements say of the chunks against each other.

    suspects: chunks whose digests differ, ascending (as `diff_trees` gives them). compared_leaves: those whose elements
    were compared, ascending; None: all. Raises an error of code "internal" if an element differs in a chunk whose
    digests agree, or if a suspect that was compared holds no differing element though `suspect_is_proof`.
    """

def compare_arrays(
    parameters: TreeParameters, golden: Any, new: Any, *, max_indices: int = 100
) -> Comparison: ...
def compare_each(
    parameters: TreeParameters, golden: Any, new: Any
) -> list[tuple[float | None, float | None, float | None, int | None]]:
    """Of every element: |difference|, its share of the bound, the relative difference (None beside a golden of zero),
    and ULPs (real floats but bfloat16). All None where differences have no meaning."""

class StreamTotals(TypedDict):
    bytes_read: int  # asked of the files, alignment included
    direct_bytes_read: int  # of these, past the system's cache
    read_count: int
    buffer_bytes: int
    engine: str

@final
class StreamSession:
    """Compares many pairs of arrays in one stream, on a thread of its own: scattered reads, many in flight, while
    others are compared.

    direct: reads past the system's cache; "auto" where most of a file is not in it. sink: called with every
    differing element, (job, flat indices, both sides' bytes), ascending within a job. What is wrong with a job's
    files is its error; other CoreErrors are raised by the calls, and so is what the sink raises."""

    def __init__(
        self,
        *,
        engine: str = "auto",
        queue_depth: int = 128,
        memory_bytes: int = 1 << 28,
        direct: Literal["auto", "always", "never"] = "auto",
        max_indices: int = 100,
        backend: str = "auto",
        threads: int = 0,
        sink: Callable[[int, NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]], None]
        | None = None,
    ) -> None: ...
    def add(
        self,
        parameters: TreeParameters,
        golden_path: str,
        golden_offset: int,
        new_path: str,
        new_offset: int,
        byte_count: int,
        leaves: NDArray[np.int64] | None = None,
        *,
        golden_stamp: FileStamp | None = None,
        new_stamp: FileStamp | None = None,
    ) -> int:
        """Two stored arrays of byte_count bytes, back to back in C order. leaves: the chunks to compare, ascending;
        None: all. Returns the job's number: 0, 1, ... The job's error is of code "corrupt_file" ("FILE: was written while
        it was read") if a file was written, replaced or removed between its opening and the job's last read, or is not
        what it was at its stamp."""
    def take_done(
        self, wait: bool = False, tick: Callable[[], object] | None = None
    ) -> list[tuple[int, Comparison | None, CiwrapError | None, tuple[bytes, bytes]]]:
        """Jobs that are done since the last call: number, comparison or error, both sides' bytes of the first 10 of
        its indices. wait: for at least one, unless all are done. tick: called now and then meanwhile."""
    @property
    def bytes_compared(self) -> int: ...  # of both sides, so far
    def close(self) -> StreamTotals:
        """Waits for the jobs that are not done yet; there will be no more."""
    def give_up(self) -> None:
        """Ends at once, whatever is not done."""

@final
class GoldenVariable:
    """One variable of a golden file (docs/reference/tree-format.md)."""

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        tree: Tree,
        *,
        iteration: int | None = None,
        rank: int | None = None,
        data: Any | None = None,
        summaries: Any | None = None,
    ) -> None: ...
    name: str
    iteration: int | None
    rank: int | None
    shape: tuple[int, ...]
    tree: Tree
    evidence: Literal["data", "residues", "tree"]
    data: bytes | None  # the golden's own bytes, in the dtype of the parameters
    summaries: NDArray[np.int64] | None  # (leaves, 10), as of `summarize_chunks`

def write_golden(path: str, variables: Sequence[GoldenVariable]) -> bytes:
    """Writes the file (plainly; atomic replacement is the caller's) and returns its 16-byte root."""

def encode_golden(variables: Sequence[GoldenVariable]) -> bytes: ...
def decode_golden(
    data: Any, *, source: str = "<memory>", max_decoded_bytes: int = 1 << 34
) -> list[GoldenVariable]:
    """Raises CoreError("corrupt_file"/"unsupported") with one line naming `source` and what is wrong."""

def golden_root(data: Any) -> bytes: ...
def read_golden_header(path: str) -> bytes: ...  # the root, from the first few KiB only
def xxh3_128(data: Any) -> bytes: ...
def joined_planes(planes: Any, unit: int) -> NDArray[np.uint8]:
    """Numbers of `unit` bytes out of planes of bytes (all first ones, all second ones, and so on),
    as the shuffle filter of HDF5 stores them. Raises ValueError for no whole number of them.
    """

def backends() -> list[dict[str, Any]]: ...  # name, usable, reason, concurrency
def io_engines() -> list[dict[str, Any]]: ...  # name, usable, reason
def cpu_levels() -> list[
    dict[str, Any]
]: ...  # name ("v1", "v3", "v4"; "neon"), usable, reason, active
def set_cpu_level(name: str) -> None:
    """Forces a CPU level (tests); "auto" returns to the best one."""

def library_versions() -> dict[str, str]: ...  # kokkos, liburing, zstd, compiler

ignored_text_sets: tuple[str, ...]  # the names that `ignore` takes

def text_places(
    text: Any,
    *,
    ignore: Sequence[str] = (),
    ignore_lines: Sequence[str] = (),
    ignore_places: Sequence[str] = (),
    sections: Sequence[tuple[str, Sequence[tuple[int, int]], Sequence[tuple[int, int]]]] = (),
    most: int = 1 << 16,
) -> list[dict[str, Any]]:
    """The numbers of a text in memory, one for each template and place: the fields of NumberPlace
    (csrc/text/text_places.hpp), texts as bytes. left_out_by: a set, "ignore_places", "ignore_lines", or None.

    Raises errors of code "invalid_argument" as `compare_texts` does.
    """

def scan_table(
    lines: bytes, delimiter: str, comments: Sequence[str], is_known: Sequence[bool]
) -> tuple[int, list[tuple[bool, bool, bool, int]]] | None:
    """The number of rows in whole lines of ASCII without quotes, and of each column whether all
    cells are whole numbers, all are numbers or empty, all are empty, and the length of the longest.
    delimiter: one character, or "" for white space. is_known: columns of which nothing is asked.
    None for rows that are not read here.
    """

def read_table(
    lines: bytes,
    delimiter: str,
    comments: Sequence[str],
    most_rows: int,
    columns: Sequence[NDArray[Any]],
) -> int | None:
    """Fills an array for each column: int64, float64 (an empty cell is NaN), or uint32 of shape
    (most_rows, width) with the code points of a text. Returns the number of rows; None if there are
    more, or a cell has no such value, or a double that would not say all of it.

    Raises errors of code "invalid_argument" for arrays that have no place for the rows.
    """

def compare_texts(
    golden: Any,
    new: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    equal_nan: bool = True,
    ignore: Sequence[str] = (),
    ignore_lines: Sequence[str] = (),
    ignore_places: Sequence[str] = (),
    sections: Sequence[tuple[str, Sequence[tuple[int, int]], Sequence[tuple[int, int]]]] = (),
    window_bytes: int = 8 << 20,
    engine: str = "auto",
) -> dict[str, Any]:
    """Two texts, token by token; each a path, or its bytes. Memory is bounded by the window.
    sections: a place (as in `ignore_places`, without words if need be; "" for whole lines), and the lines of either
    side that it is looked for in: ascending ranges, counted from 1, the last line among them.

    Returns the fields of TextComparison (csrc/text/text_compare.hpp) by name, texts as bytes. Raises errors of code
    "invalid_argument" for an unknown set, a pattern that fits every line or a place that names no number, "corrupt_file" for a NUL byte, "too_large"
    for a line of more than 1 MiB, and those of reading.
    """
