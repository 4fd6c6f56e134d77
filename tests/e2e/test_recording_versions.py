"""Programs and libraries of other versions: an old program with this library, and a newer one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from recorded_runs import build, need_library, recording, roots, start

from ciwrap import _core
from ciwrap.recording.native import include_folder

# What the first header had, word by word: neither may ever change.
FIRST = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
typedef struct {
    size_t size;
    int location;
    const char* name;
    const char* dtype;
    const void* data;
    int dimensions;
    int flags;
    int64_t extents[15];
    int64_t strides[15];
    double atol;
    double rtol;
} array;
struct run;
typedef struct {
    size_t size;
    struct run* (*open)(const char*, int, int);
    int64_t (*add)(struct run*, const array*);
    int (*replace)(struct run*, int64_t, const array*);
    int (*move)(struct run*, int64_t, const void*);
    int (*remove)(struct run*, int64_t);
    int (*prepare)(struct run*, int64_t, const char*);
    int (*work)(struct run*);
    int (*complete)(struct run*);
    int (*checkpoint)(struct run*, int64_t, const char*, int);
    int64_t (*errors)(struct run*);
    int64_t (*close)(struct run*);
    int64_t (*find)(struct run*, const char*);
    int (*should_stop)(struct run*);
    void (*on_divergence)(struct run*, void (*)(void*, const void*), void*);
} table;
int main(void) {
    static double x[5] = {0, 1, 2, 3, 4}, y[5] = {4, 3, 2, 1, 0};
    array a = {sizeof a, 0, "x", "f8", x, 1, 0, {5}, {0}, 1e-9, -1};
    void* library = dlopen(getenv("CIWRAP_RECORD_LIBRARY"), RTLD_NOW);
    const table* (*find)(uint32_t);
    *(void**)&find = dlsym(library, "ciwrap_record_table");
    const table* t = find(1);
    struct run* run = t->open("old", 0, 1);
    int64_t id = t->add(run, &a);
    if (t->size < sizeof *t || *(const table**)run != t) return 2;
    t->checkpoint(run, 0, "", 0);
    t->move(run, id, y);
    t->prepare(run, 1, "p");
    t->work(run);
    t->complete(run);
    t->remove(run, id);
    return (int)(t->errors(run) + t->close(run) + t->should_stop(run) + t->find(run, "x") + 1);
}
"""


def root(values: list[float]) -> bytes:
    parameters = _core.TreeParameters("<f8", atol=1e-9, residue_levels=1)
    return _core.build_tree(parameters, np.array(values, float).tobytes()).root


def test_a_program_of_the_first_header(tmp_path: Path) -> None:
    need_library()
    (tmp_path / "old.c").write_text(FIRST)
    program = build("cc", [tmp_path / "old.c"], tmp_path / "old")
    done = start([program], recording(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert roots(tmp_path / "run") == {
        "iter 0 / rank 0 / x": root([0, 1, 2, 3, 4]),
        "iter 1 / rank 0 / x@p": root([4, 3, 2, 1, 0]),
    }


NEWER = """
#include "record.h"
int main(void) {
    static double x[5] = {0, 1, 2, 3, 4};
    ciwrap_run* run = ciwrap_open("newer", 0, 1);
    ciwrap_array a = CIWRAP_ARRAY("x", x, 5);
    a.atol = 1e-9;
    ciwrap_prepare(run, 0, "");
    ciwrap_expose(run, &a);
    ciwrap_complete(run);
    return (int)ciwrap_close(run);
}
"""


def newer(folder: Path, old: str, new: str) -> Path:
    """A program of a header to come."""
    text = (include_folder() / "ciwrap/record.h").read_text()
    assert text.count(old) == 1
    (folder / "record.h").write_text(text.replace(old, new))
    (folder / "newer.c").write_text(NEWER)
    return build("cc", ["-std=gnu11", folder / "newer.c"], folder / "newer")


def test_a_program_whose_array_has_grown(tmp_path: Path) -> None:
    need_library()
    program = newer(tmp_path, "\n} ciwrap_array;", "\n    double more[4];\n} ciwrap_array;")
    done = start([program], recording(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert roots(tmp_path / "run") == {"iter 0 / rank 0 / x": root([0, 1, 2, 3, 4])}


def test_a_program_that_needs_more_than_this_library_has(tmp_path: Path) -> None:
    need_library()
    program = newer(tmp_path, "\n} ciwrap_table;", "\n    int (*more)(void);\n} ciwrap_table;")
    done = start([program], recording(tmp_path / "run"))
    assert done.returncode == 0
    assert "is too old for this program" in done.stderr
    assert not (tmp_path / "run").exists()
