"""Arrays of GPU libraries at the Python API and in the fixture: taken over, or refused."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_arrays import BACKEND, CUDA_HOST, MANAGED, ROCM, CudaArray, DlpackArray, wrap

import ciwrap
from ciwrap import _core
from ciwrap.api import build_tree, check_array, compare_arrays, make_golden
from ciwrap.arrays import handover
from ciwrap.arrays.values import ArrayValues, DeviceValues
from ciwrap.base.errors import CiwrapError, DeviceArrayError, ExitCode, UnsupportedDtypeError
from ciwrap.model import Evidence, Verdict
from ciwrap.pytest_plugin.fixture import catalog_of

HOW = ["dlpack", "old dlpack", "cuda"]
VALUES = np.random.default_rng(0).normal(size=(40, 25)).astype("f4")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device source on the host plays the GPU."""
    monkeypatch.setattr(handover, "device_backend", lambda: BACKEND)


@pytest.mark.parametrize("how", HOW)
def test_without_a_gpu_build_it_says_so_and_copies_nothing(how: str) -> None:
    if any(one["name"] == "cuda" and one["usable"] for one in _core.backends()):
        pytest.skip("this build computes on CUDA devices")
    array = wrap(VALUES, how)
    with pytest.raises(DeviceArrayError) as caught:
        make_golden({"velocity": array})
    text = str(caught.value)
    assert text.startswith("velocity: the array lies on a GPU")
    assert ".cpu()" in text
    assert ".get()" in text
    assert "\n" not in text
    assert caught.value.exit_code is ExitCode.NOT_COMPARABLE
    assert how == "cuda" or array.taken == 0
    with pytest.raises(DeviceArrayError):
        catalog_of({"x": array}, "array")


def test_an_array_that_copies_itself_to_the_host_is_not_asked_to() -> None:
    """Numba's and JAX's arrays have an `__array__` that copies in silence."""

    class Copying(CudaArray):
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("copied")

    class CopyingToo(DlpackArray):
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("copied")

    for array in (Copying(VALUES), CopyingToo(VALUES)):
        ciwrap.register_type(type(array), "array")
        with pytest.raises(DeviceArrayError):
            build_tree(array)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("evidence", ["data", "residues", "tree", "auto"])
@pytest.mark.usefixtures("gpu")
def test_goldens_are_those_of_the_same_values_on_the_host(how: str, evidence: str) -> None:
    array = wrap(VALUES, how)
    golden = make_golden({"x": array}, atol=1e-3, evidence=evidence)
    assert golden.to_bytes() == make_golden({"x": VALUES}, atol=1e-3, evidence=evidence).to_bytes()
    near, far = VALUES + np.float32(1e-4), VALUES.copy()
    far[3, 7] += 5e-3
    for new, verdict in ((near, Verdict.MATCH), (far, Verdict.DIFFER)):
        if evidence == "tree":
            new = VALUES if verdict is Verdict.MATCH else far
        ours = check_array(wrap(new, how), golden.variable("x"))
        assert ours == check_array(new, golden.variable("x"))
        assert ours.verdict is verdict


@pytest.mark.usefixtures("gpu")
def test_only_data_evidence_reads_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr(
        DeviceValues, "read", lambda self, first, count: read.append(count) or VALUES.reshape(-1)
    )
    golden = make_golden({"x": DlpackArray(VALUES)}, atol=1e-3, evidence="residues")
    build_tree(CudaArray(VALUES), atol=1e-3)
    result = check_array(DlpackArray(VALUES), golden.variable("x"))
    assert (result.verdict, result.evidence) == (Verdict.MATCH, Evidence.RESIDUES)
    assert read == []
    make_golden({"x": DlpackArray(VALUES)}, evidence="data")
    assert read == [VALUES.size]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.usefixtures("gpu")
def test_comparing_arrays_wherever_they_lie(how: str) -> None:
    new = VALUES.T.copy().T
    new[3, 7] += np.float32(1e-2)
    want = compare_arrays(VALUES, new, atol=1e-3)
    assert (want.differing_count, want.first_index) == (1, (3, 7))
    assert compare_arrays(wrap(VALUES, how), wrap(new, how), atol=1e-3) == want
    assert compare_arrays(VALUES, wrap(new, how), atol=1e-3) == want
    assert compare_arrays(wrap(VALUES, how), new, atol=1e-3) == want


@pytest.mark.usefixtures("gpu")
def test_the_fixture_hashes_them_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceValues, "read", None)
    with catalog_of({"a": {"b": DlpackArray(VALUES)}, "c": VALUES}, "array") as catalog:
        infos = {name.text: entry.info for name, entry in catalog.entries.items()}
    assert infos["a/b"].device is not None
    assert infos["c"].device is None
    assert (infos["a/b"].dtype, infos["a/b"].shape) == ("<f4", (40, 25))


@pytest.mark.usefixtures("gpu")
def test_the_producer_is_told_the_stream_and_gets_its_tensor_back() -> None:
    for versioned in (True, False):
        array = DlpackArray(VALUES, versioned=versioned)
        build_tree(array)
        gc.collect()
        assert (array.taken, array.given_back, array.stream) == (1, 1, 1)
    for more in ({"stream": 7}, {"stream": 2}, {"version": 2, "stream": None}, {"strides": None}):
        assert build_tree(CudaArray(VALUES, **more)).root == build_tree(VALUES).root


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("array", "error", "words"),
    [
        (DlpackArray(VALUES, ROCM), DeviceArrayError, "ROCm"),
        (DlpackArray(VALUES, 77), DeviceArrayError, "kind 77"),
        (DlpackArray(VALUES, code=10, bits=8), UnsupportedDtypeError, "type code 10"),
        (DlpackArray(VALUES, lanes=4), UnsupportedDtypeError, "4 lanes"),
        (DlpackArray(VALUES, code=3), UnsupportedDtypeError, "type code 3"),
        (CudaArray(VALUES, stream=0), DeviceArrayError, "stream 0"),
        (CudaArray(VALUES, mask=object()), DeviceArrayError, "mask"),
        (CudaArray(VALUES, data=None), DeviceArrayError, "cannot be followed"),
        (CudaArray(VALUES, data=(0, True)), UnsupportedDtypeError, "no memory"),
        (CudaArray(VALUES, typestr="|V2"), UnsupportedDtypeError, "untyped"),
        (CudaArray(VALUES, typestr="<M8[s]"), UnsupportedDtypeError, "no defined"),
        (CudaArray(VALUES, strides=(4,)), UnsupportedDtypeError, "stride"),
        (CudaArray(VALUES, shape=(-1,), strides=None), UnsupportedDtypeError, "negative"),
        (CudaArray(VALUES, shape=(2**40, 2**40), strides=None), UnsupportedDtypeError, "2^60"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_in_one_line(
    array: Any, error: type[CiwrapError], words: str
) -> None:
    with pytest.raises(error, match=words.replace("^", r"\^")) as caught:
        make_golden({"x": array})
    assert str(caught.value).startswith("x: ")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("gpu")
def test_managed_memory_empty_arrays_and_offsets() -> None:
    assert build_tree(DlpackArray(VALUES, MANAGED)).root == build_tree(VALUES).root
    assert build_tree(DlpackArray(VALUES[3:], offset=64)).root == build_tree(VALUES[3:]).root
    assert build_tree(DlpackArray(VALUES, no_strides=True)).root == build_tree(VALUES).root
    for empty in (VALUES[:0], VALUES[:, :0], np.zeros((), "f8")):
        for how in HOW:
            assert build_tree(wrap(empty, how)).root == build_tree(empty).root


def test_locked_host_memory_is_viewed_in_place() -> None:
    array = DlpackArray(VALUES, CUDA_HOST)
    view = handover.take_over(array)
    assert isinstance(view, np.ndarray)
    assert np.shares_memory(view, VALUES)
    assert not view.flags.writeable
    del view
    gc.collect()
    assert array.given_back == 1


def test_bfloat16() -> None:
    """NumPy has none, so it goes as two bytes under the core's own name."""
    bits = (VALUES.view("u4") >> 16).astype("<u2")
    array = DlpackArray(bits, CUDA_HOST, code=4)
    values = handover.take_over(array)
    assert isinstance(values, ArrayValues)
    assert (values.dtype, values.shape) == ("<bf2", (40, 25))
    parameters = _core.TreeParameters("<bf2", atol=1e-2)
    tree = build_tree(array, atol=1e-2)
    assert tree.root == _core.build_tree(parameters, bits).root
    golden = make_golden({"x": array}, atol=1e-2)
    assert golden.check("x", array).verdict is Verdict.MATCH
    other = bits.copy()
    other[5, 5] ^= 0x4000
    assert golden.check("x", DlpackArray(other, CUDA_HOST, code=4)).verdict is Verdict.DIFFER
    with catalog_of(array, "array") as catalog:
        (entry,) = catalog.entries.values()
    assert entry.info.dtype == "<bf2"


@pytest.mark.usefixtures("gpu")
def test_bfloat16_on_a_device() -> None:
    bits = (VALUES.view("u4") >> 16).astype("<u2")
    ours = make_golden({"x": DlpackArray(bits, code=4)}, atol=1e-2)
    theirs = make_golden({"x": DlpackArray(bits, CUDA_HOST, code=4)}, atol=1e-2)
    assert ours.to_bytes() == theirs.to_bytes()


def test_a_capsule_is_taken_once() -> None:
    array = DlpackArray(VALUES)
    capsule = array.__dlpack__()
    _core.DeviceArray.from_dlpack(capsule)
    for wrong in (capsule, VALUES.__dlpack__):
        with pytest.raises((_core.CoreError, TypeError)):
            _core.DeviceArray.from_dlpack(wrong)


def test_the_error_is_offered() -> None:
    assert issubclass(DeviceArrayError, RuntimeError)
    assert ciwrap.base.errors.all_errors()["device-array"] is DeviceArrayError


@pytest.mark.usefixtures("gpu")
def test_the_example_of_the_documentation() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "gpu.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {"ciwrap": ciwrap, "cupy_array": CudaArray(VALUES), "torch_tensor": DlpackArray(VALUES)}
    exec(compile(code, "gpu.md", "exec"), names)
