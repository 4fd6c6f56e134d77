"""HDF5: every name is compared, and an odd object makes itself not comparable and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import ConfigError
from ciwrap.formats.hdf5 import Hdf5Reader
from ciwrap.formats.netcdf import NetcdfReader

h5py = pytest.importorskip("h5py")

from hdf5_odd import (  # noqa: E402
    QUAD_FAULT,
    QUAD_IS_READ,
    add_new_reference,
    add_own_link,
    add_quad,
    add_quad_attribute,
    add_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUMBERS = np.arange(10.0)


def written(path: Path, write: Callable[[Any], object], **keywords: Any) -> Path:
    with h5py.File(path, "w", **keywords) as file:
        write(file)
    return path


def found(path: Path, **options: Any) -> dict[str, Any]:
    """Why a variable is not compared, or its values."""
    with Hdf5Reader().open(path, options=options) as source:
        return {
            info.name: info.fault
            or np.array(source.read(info.name, 0, info.element_count)).reshape(info.shape).tolist()
            for info in source.variables
        }


# --- links ----------------------------------------------------------------------------------------


def linked(path: Path, **links: Any) -> dict[str, Any]:
    """What is in a file with x1, x2 and these links, of which texts are names of datasets."""

    def write(file: Any) -> None:
        file["x1"], file["x2"] = NUMBERS, NUMBERS + 1
        for name, link in links.items():
            file[name] = file[link] if isinstance(link, str) else link

    return found(written(path, write))


@pytest.mark.parametrize("name", ["a", "y"])  # before and after the other name
@pytest.mark.parametrize("is_soft", [False, True])
def test_an_alias_is_compared_by_its_own_name(tmp_path: Path, name: str, is_soft: bool) -> None:
    def to(target: str) -> Any:
        return h5py.SoftLink(f"/{target}") if is_soft else target

    both = {"x1": NUMBERS.tolist(), "x2": (NUMBERS + 1).tolist()}
    path = tmp_path / "x.h5"
    assert linked(path, **{name: to("x1")}) == {**both, name: both["x1"]}
    assert linked(path, **{name: to("x2")}) == {**both, name: both["x2"]}
    assert linked(path) == both


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    here = linked(
        tmp_path / "x.h5",
        gone=h5py.SoftLink("/no/x"),
        circle=h5py.SoftLink("circle"),
        outside=h5py.ExternalLink("other.h5", "/x"),
    )
    assert here["gone"] == "is a broken link to /no/x"
    assert "too many links" in here["circle"]
    assert here["outside"] == "is a link to another file, which is not followed"
    assert here["x1"] == NUMBERS.tolist()


def test_a_way_through_another_file_is_not_followed(tmp_path: Path) -> None:
    written(tmp_path / "other.h5", lambda file: file.create_dataset("x", data=NUMBERS))
    here = linked(
        tmp_path / "x.h5",
        outside=h5py.ExternalLink("other.h5", "/"),
        through=h5py.SoftLink("/outside/x"),
    )
    assert "another file" in here["outside"]
    assert here["through"] == "is a link to /outside/x, which is in another file and not followed"


def test_members_of_a_group_under_all_its_names(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        group = file.create_group("iter_10/deep")
        group["x"] = NUMBERS
        group["same"] = group["x"]
        file["hard"] = group
        file["latest"] = h5py.SoftLink("/iter_10")

    path = written(tmp_path / "x.h5", write)
    assert sorted(found(path)) == [
        *("hard/same", "hard/x", "iter_10/deep/same", "iter_10/deep/x"),
        *("latest/deep/same", "latest/deep/x"),
    ]
    with Hdf5Reader().open(path) as source:
        assert source.info("iter_10/deep/x").iteration == 10
        assert source.info("latest/deep/x").iteration is None


def test_circles_end_and_are_compared_by_where_they_lead(tmp_path: Path) -> None:
    def write(file: Any, target: str) -> None:
        inner = file.create_group("a/b")
        inner["x"] = NUMBERS
        inner["up"] = file["a"]
        file["a/top"] = h5py.SoftLink(target)

    for target, text in (("/", "link to /"), ("/a", "link to /a")):
        path = written(tmp_path / "x.h5", lambda file, to=target: write(file, to))
        here = found(path)
        assert sorted(here) == ["a/b/up", "a/b/x", "a/top"]
        assert (here["a/b/up"], here["a/top"]) == ("link to /a", text)


def test_groups_that_lead_to_each_other(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        one, other = file.create_group("one"), file.create_group("other")
        one["x"], one["to"], other["to"] = NUMBERS, other, one

    here = found(written(tmp_path / "x.h5", write))
    x = NUMBERS.tolist()
    assert here == {
        "one/to/to": "link to /one",
        "one/x": x,
        "other/to/to": "link to /other",
        "other/to/x": x,
    }


def test_groups_without_members_are_seen(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        file["x"] = NUMBERS
        file.create_group("iter_3/nothing")

    path = written(tmp_path / "x.h5", write)
    assert found(path)["iter_3/nothing/"] == []
    with Hdf5Reader().open(path) as source:
        info = source.info("iter_3/nothing/")
        assert (info.called, info.iteration, info.shape) == ("nothing/", 3, (0,))
    assert found(written(path, lambda file: None)) == {}


def test_named_datatypes_are_compared(tmp_path: Path) -> None:
    for text in ("<f4", ">i8"):
        path = written(tmp_path / "x.h5", lambda f, t=text: f.__setitem__("type", np.dtype(t)))
        assert found(path) == {"type": f"datatype {np.dtype(text)}"}


# --- odd objects ----------------------------------------------------------------------------------


@pytest.mark.linux  # finds the library of HDF5 in /proc
def test_odd_objects_do_not_keep_others_from_being_compared(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        file["x"] = NUMBERS
        file["x"].attrs["fine"] = 1
        add_quad_attribute(file["x"], "odd")
        add_quad(file, "quad")
        add_time(file, "time")
        add_new_reference(file, "reference")
        layout = h5py.VirtualLayout((10,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "x", (10,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("lists", (2,), dtype=h5py.vlen_dtype("i4"))
        file.create_dataset("opaque", data=np.array([b"ab"], dtype="V2"))

    path = written(tmp_path / "x.h5", write)
    add_own_link(path, "own")
    here = found(path)
    assert here.pop("x") == NUMBERS.tolist()
    words = {
        "lists": "lists of any length",
        "opaque": "untyped bytes",
        "own": "a kind that only the program that made it can follow",
        "quad": QUAD_FAULT,
        "reference": "cannot be read",
        "time": "cannot be read",
        "virtual": "virtual dataset",
    }
    assert list(here) == list(words)
    for name, word in words.items():
        assert word in here[name]
        assert "is it whole" not in here[name]
    with_attributes = found(path, attributes=True)
    assert with_attributes["x@fine"] == 1
    assert QUAD_FAULT in with_attributes["x@odd"]
    assert with_attributes["x"] == NUMBERS.tolist()


def test_a_key_error_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "x.h5", lambda file: file.create_dataset("x", data=NUMBERS))

    def lose(*_: Any, **__: Any) -> None:
        raise KeyError(2)

    monkeypatch.setattr("ciwrap.formats.hdf5.add_dataset", lose)
    monkeypatch.setattr("ciwrap.formats.look._idle", [])  # copies that have not lost it
    assert found(path) == {"x": "cannot be read: KeyError: 2"}


def test_records_with_texts_of_any_length(tmp_path: Path) -> None:
    kind = np.dtype(
        [("t", h5py.string_dtype()), ("v", "<f4", (2,)), ("n", ">i8"), ("r", h5py.ref_dtype)]
    )
    rows = np.empty(3, kind)
    rows["t"], rows["v"], rows["n"] = ["a", "bc", ""], [[1, 2], [3, 4], [5, 6]], [7, 8, 9]
    path = written(
        tmp_path / "x.h5", lambda f: f.create_dataset("iter_2/row", data=rows, chunks=(2,))
    )
    here = found(path)
    assert here["iter_2/row.t"] == ["a", "bc", ""]
    assert here["iter_2/row.v"] == [[1, 2], [3, 4], [5, 6]]
    assert here["iter_2/row.n"] == [7, 8, 9]
    assert "references" in here["iter_2/row.r"]
    with Hdf5Reader().open(path) as source:
        places = [(info.called, info.iteration) for info in source.variables]
        assert places == [(f"row.{name}", 2) for name in "tvnr"]
        assert source.info("iter_2/row.n").dtype == ">i8"


def test_a_single_record_with_a_text(tmp_path: Path) -> None:
    row = np.array(("abc", 1.5), dtype=[("t", h5py.string_dtype()), ("v", "f8")])
    path = written(tmp_path / "x.h5", lambda file: file.create_dataset("row", data=row))
    assert found(path) == {"row.t": "abc", "row.v": 1.5}


@pytest.mark.parametrize("chunks", [None, (3,)])
def test_arrays_as_elements_are_further_dimensions(tmp_path: Path, chunks: Any) -> None:
    kind = np.dtype(("<f8", (3, 2)))
    values = np.arange(42.0).reshape(7, 3, 2)

    def write(file: Any) -> None:
        file.create_dataset("v", (7,), dtype=kind, chunks=chunks)[...] = values
        file.create_dataset("one", (), dtype=kind)[...] = values[0]

    path = written(tmp_path / "x.h5", write)
    assert found(path) == {"one": values[0].tolist(), "v": values.tolist()}
    with Hdf5Reader().open(path) as source:
        info = source.info("v")
        assert (info.dtype, info.shape) == ("<f8", (7, 3, 2))
        assert (info.region is None) == (chunks is not None)
        for first, count in ((0, 42), (1, 40), (5, 3), (6, 6), (11, 1), (41, 1)):
            wanted = np.arange(first, first + count)
            assert np.array_equal(source.read("v", first, count), wanted)


def test_records_as_elements_of_elements(tmp_path: Path) -> None:
    inner = np.dtype([("a", "<i4"), ("b", "<f8")])
    values = np.zeros((4, 2), inner)
    values["a"], values["b"] = np.arange(8).reshape(4, 2), 0.5

    def write(file: Any) -> None:
        file.create_dataset("v", (4,), dtype=np.dtype((inner, (2,))))[...] = values

    here = found(written(tmp_path / "x.h5", write))
    assert here == {"v.a": values["a"].tolist(), "v.b": values["b"].tolist()}


# --- labels ---------------------------------------------------------------------------------------


def labels(path: Path, name: str = "t", **options: Any) -> dict[str, str]:
    with Hdf5Reader().open(path, options=options) as source:
        return dict(source.info(name).labels)


def test_what_numbers_mean_is_a_label(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        file["t"] = np.ones((2, 3))
        file["t"].attrs.update({"units": "K", "scale_factor": 0.5, "made": "today"})

    path = written(tmp_path / "x.h5", write)
    assert labels(path) == {"units": "K", "scale_factor": "0.5"}
    assert labels(path, attributes=True) == labels(path)
    assert labels(path, attributes=False) == {}
    assert labels(path, attributes=["made", "author"]) == {"made": "today"}


def test_a_label_that_cannot_be_read(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        file["t"], file["x"], file["r"] = NUMBERS, NUMBERS, NUMBERS
        add_quad_attribute(file["t"], "units")
        file["r"].attrs["units"] = file["x"].ref

    here = found(written(tmp_path / "x.h5", write))
    if QUAD_IS_READ:
        assert here["t"] == NUMBERS.tolist()
    else:
        assert QUAD_FAULT in here["t"]
    assert "neither number nor text" in here["r"]
    assert here["x"] == NUMBERS.tolist()


def test_names_of_dimensions_are_a_label(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        for name, scales in (("t", "xy"), ("u", "yx")):
            file[name] = np.ones((3, 3))
            for axis, scale in enumerate(scales):
                file.require_dataset(scale, (3,), "f8")
                file[scale].make_scale()
                file[name].dims[axis].attach_scale(file[scale])
        file["v"] = np.ones((3, 3))
        file["v"].dims[1].label = "my y"
        file["w"] = np.ones(3)

    path = written(tmp_path / "x.h5", write)
    found_labels = [labels(path, name) for name in "tuvw"]
    assert found_labels == [{"dims": "x y"}, {"dims": "y x"}, {"dims": "- my\\ y"}, {}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iteration_variable": "time"}, "has no option 'iteration_variable'"),
        ({"iteration_step": 0.5}, "has no option 'iteration_step'"),
        ({"iterations": "time"}, "must be auto or none"),
    ],
)
def test_options_that_would_have_no_effect(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["iter_5/time"] = 2.5
    with pytest.raises(ConfigError, match=message):
        Hdf5Reader().open(tmp_path / "x.h5", options=options)
    with Hdf5Reader().open(tmp_path / "x.h5", options={"iterations": "none"}) as source:
        assert [info.name for info in source.variables] == ["iter_5/time"]


def test_numbers_of_fewer_bits_than_they_take(tmp_path: Path) -> None:
    """2047 and -2048 of 12 bits are neighbours as they are stored, in 16."""
    numbers = np.array([2047, -2048, -1], dtype="<i2")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        kind = h5py.h5t.STD_I16LE.copy()
        kind.set_precision(12)
        space = h5py.h5s.create_simple((3,))
        short = h5py.h5d.create(file.id, b"short", kind, space)
        short.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers)
        file["plain"] = numbers
        file["arrays"] = np.array([((1, 2),)], dtype=[("a", "<i4", (2,))])["a"]
        file["flags"] = numbers > 0
        file["texts"] = np.array([b"ab", b"c"])
        file["complex"] = np.array([1j], dtype="<c16")
        kind = h5py.enum_dtype({"RED": 0, "BLUE": 1}, basetype="i4")
        file.create_dataset("words", (2,), dtype=kind)[:] = [0, 1]
    with Hdf5Reader().open(tmp_path / "x.h5") as source:
        assert source.read("short", 0, 3).tolist() == numbers.tolist()
        stretches = {info.name: info.region is not None for info in source.variables}
    assert stretches == {
        "short": False, "plain": True, "arrays": True, "flags": True, "texts": True,
        "complex": True, "words": True,
    }  # fmt: skip


def test_named_datatypes_of_other_words_and_lists(tmp_path: Path) -> None:
    """NumPy's text of a type has neither."""

    def write(file: Any) -> None:
        words = h5py.enum_dtype({"RED": 0, "BLUE": 1}, basetype="i1")
        file["words"], file["list"] = words, h5py.vlen_dtype(np.dtype("f4"))
        file["both"] = np.dtype([("a", "f8"), ("b", words), ("c", h5py.vlen_dtype("i4"))])
        file["array"] = np.dtype((words, (2,)))
        file["text"], file["plain"] = h5py.string_dtype(), np.dtype([("a", "f8")]).newbyteorder("<")

    told = found(written(tmp_path / "x.h5", write))
    words = "int8 (0=RED 1=BLUE)"
    assert told["words"] == f"datatype {words}"
    assert told["list"] == "datatype list of float32"
    assert told["both"].endswith(f" (b: {words}, c: list of int32)")
    assert told["array"] == f"datatype ('i1', (2,)) of {words}"
    assert told["text"] == "datatype object"
    assert told["plain"] == "datatype [('a', '<f8')]"


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """One of them kept the whole file from being compared."""

    def write(file: Any) -> None:
        file["x"] = NUMBERS
        file[b"b\xff"] = NUMBERS + 1
        inner = file.create_group(b"g\xe9")
        inner["y"] = NUMBERS + 2
        inner.create_dataset(b"\xfe", data=NUMBERS + 3, chunks=(2,)).attrs["k"] = 1
        inner[b"\xfd"] = h5py.SoftLink("/x")

    path = written(tmp_path / "x.h5", write)
    told = found(path, attributes=True)
    assert "whose name is not UTF-8" in told.pop("g\\xe9/\\xfd")
    assert told == {
        "x": NUMBERS.tolist(),
        "b\\xff": (NUMBERS + 1).tolist(),
        "g\\xe9/y": (NUMBERS + 2).tolist(),
        "g\\xe9/\\xfe": (NUMBERS + 3).tolist(),
        "g\\xe9/\\xfe@k": 1,
    }


def test_a_name_that_is_not_utf8_in_netcdf(tmp_path: Path) -> None:
    path = written(tmp_path / "x.nc", lambda file: file.create_dataset(b"b\xff", data=NUMBERS))
    with NetcdfReader().open(path) as source:
        assert source.read("b\\xff", 0, NUMBERS.size).tolist() == NUMBERS.tolist()


def labels_of_x(path: Path) -> Any:
    with Hdf5Reader().open(path) as source:
        return source.info("x").labels


def test_words_with_blanks_are_told_from_several_words(tmp_path: Path) -> None:
    def labels(words: dict[str, int]) -> Any:
        kind = h5py.enum_dtype(words, basetype="i1")
        return labels_of_x(
            written(tmp_path / "x.h5", lambda file: file.create_dataset("x", (2,), kind))
        )

    assert labels({"A 1=B": 0}) != labels({"A": 0, "B": 1})
    assert labels({"A": 0, "B": 1}) == (("enum", "0=A 1=B"),)


def test_no_array_is_not_an_array_without_elements(tmp_path: Path) -> None:
    def labels(data: Any) -> Any:
        return labels_of_x(
            written(tmp_path / "x.h5", lambda file: file.create_dataset("x", data=data))
        )

    assert labels(h5py.Empty("f8")) == (("dataspace", "null"),)
    assert labels(np.empty(0)) == ()
