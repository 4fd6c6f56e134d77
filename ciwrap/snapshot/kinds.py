"""What files, variables and facts of an environment do, and how likely each changes numbers.

This is the one list of what a snapshot looks for, and the one order of its differences.
"""

from __future__ import annotations

import re

# From what changes numbers most often to what hardly ever does; each with its words.
KINDS = {
    "maths": "BLAS, LAPACK or libm",
    "cpu": "CPU level",
    "threads": "thread settings",
    "runtime": "compiler runtime",
    "mpi": "MPI",
    "gpu": "GPU library",
    "object": "other objects",
    "package": "Python packages",
    "settings": "other settings",
    "kernel": "kernel and machine",
    "source": "the program itself",
}
RANKS = {kind: number for number, kind in enumerate(KINDS)}

_LIBRARIES = (
    (
        "maths",
        (
            r"openblas|mkl|blis|flexiblas|atlas|(?:c|f77)?blas|lapacke?|nvpl_(?:blas|lapack)|armpl"
            r"|libsci|flame|m|mvec|imf|svml|amdlibm|sleef|fftw3[fl]?|aocl"
        ),
    ),
    ("mpi", r"mpi|mpich|mpifort|mpicxx|mpi_cxx|open-pal|open-rte|pmix|ucp|fabric"),
    ("gpu", r"cuda|cudart|cublas|cublasLt|cusolver|cusparse|cufft|nvrtc|cudnn|amdhip64|rocblas"),
    (
        "runtime",
        (
            r"gomp|iomp5|omp|gcc_s|stdc\+\+|c\+\+|gfortran|quadmath|flang|ifcore|intlc|irc|nvf|nvc|c"
            r"|ld-linux.*|pthread|tbb"
        ),
    ),
)
_PATTERNS = tuple(
    (kind, re.compile(rf"(?:lib)?(?:scipy_)?(?:{names})(?:64_?|32)?(?:_[a-z0-9]+)*(?=[-._]|$)"))
    for kind, names in _LIBRARIES
)
# A system's own, that may stand without any suffix: they are told by their whole name.
_WHOLE = re.compile(r"lib[^/]*\.so(?:\.[\d.]+)?$|ld-linux[^/]*$|lib[^/]*-[^/]*\.so[^/]*$")

# Variables that are kept. No pattern is in it: a name that is not here is never read.
VARIABLES = {
    "cpu": (
        *("OPENBLAS_CORETYPE", "OPENBLAS_VERBOSE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
        *("MKL_DEBUG_CPU_TYPE", "BLIS_ARCH_TYPE", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES"),
        *("NPY_ENABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"),
        *("DNNL_MAX_CPU_ISA", "FLEXIBLAS", "MKL_INTERFACE_LAYER", "NUMBA_CPU_NAME"),
    ),
    "threads": (
        *("OMP_NUM_THREADS", "OMP_DYNAMIC", "OMP_SCHEDULE", "OMP_PROC_BIND", "OMP_PLACES"),
        *("OMP_NESTED", "OMP_MAX_ACTIVE_LEVELS", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY"),
        *("MKL_NUM_THREADS", "MKL_DYNAMIC", "MKL_THREADING_LAYER", "OPENBLAS_NUM_THREADS"),
        *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "KOKKOS_NUM_THREADS", "GOMP_CPU_AFFINITY"),
        *("KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_DETERMINISTIC_REDUCTION", "GOTO_NUM_THREADS"),
        *("JULIA_NUM_THREADS", "TBB_NUM_THREADS", "SLURM_CPUS_PER_TASK"),
    ),
    "mpi": (
        *("OMPI_MCA_coll", "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_coll_tuned"),
        *("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPICH_ASYNC_PROGRESS", "SLURM_NTASKS"),
        *("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPIR_CVAR_REDUCE_INTRA_ALGORITHM"),
        *("I_MPI_FABRICS", "I_MPI_CBWR", "I_MPI_ADJUST_ALLREDUCE", "UCX_TLS", "FI_PROVIDER"),
    ),
    "gpu": (
        *("CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE"),
        *("CUDA_LAUNCH_BLOCKING", "TF_DETERMINISTIC_OPS", "HIP_VISIBLE_DEVICES"),
    ),
    "object": ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW", "MALLOC_ARENA_MAX"),
    "settings": (
        *("PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONPATH", "LC_ALL", "LC_NUMERIC", "LANG", "TZ"),
        *("CONDA_DEFAULT_ENV", "SPACK_ENV"),
    ),
}
PATH_LISTS = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "SPACK_ENV"})
_KIND_OF_VARIABLE = {name: kind for kind, names in VARIABLES.items() for name in names}

# Facts of the machine and the summary.
_KIND_OF_FACT = {
    "blas": "maths", "libm": "maths", "blas_architecture": "cpu",
    "cpu_level": "cpu", "cpu_flags": "cpu", "cpu": "cpu", "machine": "cpu", "cpu_levels": "cpu",
    "cpu_count": "threads", "affinity": "threads", "cgroup_cpus": "threads", "smt": "threads",
    "blas_threads": "threads",
    "compiler_runtime": "runtime", "mpi": "mpi", "cuda": "gpu",
    "container": "object", "modules": "object", "lock_files": "package",
    "python": "package", "numpy": "package", "packages": "package",
    "git_commit": "source", "ciwrap": "source", "command": "source", "snapshot": "source",
}  # fmt: skip
_OWN_LIBRARIES = frozenset({"kokkos", "zstd", "liburing", "compiler", "core"})
# They tell of the change itself, or stand for all else: that they differ is no finding.
EXPECTED_TO_DIFFER = frozenset({"git_commit", "ciwrap", "snapshot", "dirty", "commit"})


def kind_of_library(name: str) -> str:
    """The kind of an object by its file name: `libm.so.6` is "maths", `sim` is "object"."""
    for kind, pattern in _PATTERNS:
        if pattern.match(name) and _WHOLE.match(name):
            return kind
    return "object"


def kind_of_variable(name: str) -> str | None:
    """The kind of an environment variable; None for one that is never read."""
    return _KIND_OF_VARIABLE.get(name)


def kind_of_fact(key: str) -> str:
    """The kind of a fact in a summary or of the machine."""
    return (
        _KIND_OF_FACT.get(key)
        or kind_of_variable(key)
        or ("source" if key in _OWN_LIBRARIES else "kernel")
    )
