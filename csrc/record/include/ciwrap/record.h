/* Recording the arrays of a running program, so that `ciwrap compare` can say which variable of
 * which iteration differs from another run's.
 *
 * Copy this one file into your program. It needs no ciwrap to build, to link or to run: it looks
 * for the library when CIWRAP_RECORD is set, which `ciwrap record -- COMMAND` does, and every call
 * is a branch when it is not. C99, or C++98 and later. How to: docs/how-to/record-a-program.md. */
#ifndef CIWRAP_RECORD_H
#define CIWRAP_RECORD_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CIWRAP_MAX_DIMENSIONS 15
#define CIWRAP_TABLE_VERSION 1

/* Where an array lies. Memory of a CUDA device is hashed there, by libciwrap_record_cuda.so beside
 * the library; without that it is an error, and counted. */
enum { CIWRAP_HOST = 0, CIWRAP_DEVICE = 1 };
/* ciwrap_array.flags */
enum { CIWRAP_BYTE_STRIDES = 1 };
/* Hash where the data lie; when the call returns, the memory is the program's again. */
enum { CIWRAP_IN_PLACE = 0 };

/* What went wrong, as ciwrap_last_error says. */
enum {
    CIWRAP_NO_ERROR = 0,
    CIWRAP_BAD_CALL = 1,     /* a call that means nothing, or one after ciwrap_close */
    CIWRAP_BAD_ARRAY = 2,    /* a type, shape or place that cannot be recorded */
    CIWRAP_NO_DEVICE = 3,    /* memory on a device that cannot be read */
    CIWRAP_NOT_WRITTEN = 4,  /* the journal cannot be written: a full disk */
    CIWRAP_NO_MEMORY = 5,    /* the library had no memory */
    CIWRAP_MEMORY_GONE = 6,  /* an array whose memory is not the program's any more */
    CIWRAP_CHANGED = 7,      /* data that changed while they were recorded (CIWRAP_RECORD_DEBUG) */
    CIWRAP_NO_REFERENCE = 8, /* the run that this one is compared with cannot serve */
    CIWRAP_REPORTED = 9      /* what the program reported itself */
};

/* An array. Indices are those that a comparison names: the last one varies fastest, whatever the
 * order in memory, which the strides tell. */
typedef struct ciwrap_array {
    size_t size;       /* sizeof(ciwrap_array) */
    int location;      /* CIWRAP_HOST, CIWRAP_DEVICE */
    const char* name;  /* unique in a run */
    const char* dtype; /* as in NumPy: "f8", "f4", "i4", "u8", "c16", "?", "S8" */
    const void* data;  /* the element of index 0, 0, ... */
    int dimensions;
    int flags;                              /* 0, or CIWRAP_BYTE_STRIDES */
    int64_t extents[CIWRAP_MAX_DIMENSIONS]; /* without ghost cells */
    int64_t strides[CIWRAP_MAX_DIMENSIONS]; /* in elements; all 0: back to back */
    double atol;                            /* |v - g| <= atol + rtol |g|; negative: not given. */
    double rtol;                            /* Those of ciwrap.yaml come first. */
} ciwrap_array;

struct ciwrap_run;

/* Where this process first left what it is compared with, at a checkpoint. */
typedef struct ciwrap_divergence {
    size_t size;
    int64_t iteration;
    const char* point;    /* "" for none */
    const char* variable; /* the first one added that does not match */
    uint64_t suspect_chunks;
    uint64_t chunks;
} ciwrap_divergence;
typedef void (*ciwrap_callback)(void* data, const ciwrap_divergence* divergence);

/* What the library offers. Only ever appended to. */
typedef struct ciwrap_table {
    size_t size;
    struct ciwrap_run* (*open)(const char* name, int rank, int ranks);
    int64_t (*add)(struct ciwrap_run* run, const ciwrap_array* array);
    int (*replace)(struct ciwrap_run* run, int64_t id, const ciwrap_array* array);
    int (*move)(struct ciwrap_run* run, int64_t id, const void* data);
    int (*remove)(struct ciwrap_run* run, int64_t id);
    int (*prepare)(struct ciwrap_run* run, int64_t iteration, const char* point);
    int (*work)(struct ciwrap_run* run);
    int (*complete)(struct ciwrap_run* run);
    int (*checkpoint)(struct ciwrap_run* run, int64_t iteration, const char* point, int flags);
    int64_t (*errors)(struct ciwrap_run* run);
    int64_t (*close)(struct ciwrap_run* run);
    int64_t (*find)(struct ciwrap_run* run, const char* name);
    int (*should_stop)(struct ciwrap_run* run);
    void (*on_divergence)(struct ciwrap_run* run, ciwrap_callback callback, void* data);
    int (*expose)(struct ciwrap_run* run, const ciwrap_array* array);
    int (*last_error)(struct ciwrap_run* run, char* text, size_t bytes);
    int (*report)(struct ciwrap_run* run, const char* text);
} ciwrap_table;

/* A process's part of a recorded run; NULL when recording is off. It stays valid when it is closed:
 * what is recorded then is lost, and counted. */
typedef struct ciwrap_run {
    const ciwrap_table* table;
} ciwrap_run;

static inline const ciwrap_table* ciwrap_load(void) {
    typedef const ciwrap_table* (*find_table)(uint32_t version);
    const char* library = getenv("CIWRAP_RECORD_LIBRARY");
    void* handle = dlopen(library ? library : "libciwrap_record.so", RTLD_NOW | RTLD_LOCAL);
    union {
        void* object;
        find_table function;
    } found;
    const ciwrap_table* table;
    if (!handle) {
        fprintf(stderr, "ciwrap: nothing is recorded: %s\n", dlerror());
        return NULL;
    }
    found.object = dlsym(handle, "ciwrap_record_table");
    table = found.object ? found.function(CIWRAP_TABLE_VERSION) : NULL;
    if (!table || table->size < sizeof(ciwrap_table)) {
        fprintf(stderr, "ciwrap: nothing is recorded: %s is too old for this program\n",
                library ? library : "libciwrap_record.so");
        return NULL;
    }
    return table;
}

/* Begins this process's journal, if CIWRAP_RECORD names a folder. rank: of `ranks` processes. NULL
 * if nothing is recorded; every other call takes that. */
static inline ciwrap_run* ciwrap_open(const char* name, int rank, int ranks) {
    const char* folder = getenv("CIWRAP_RECORD");
    const ciwrap_table* table = folder && *folder ? ciwrap_load() : NULL;
    return table ? table->open(name, rank, ranks) : NULL;
}

/* Most programs: ciwrap_prepare, ciwrap_expose for each array, ciwrap_complete. An array is read
 * while it is exposed, and never later, so it may move, shrink or cease to exist between
 * checkpoints.
 *
 * prepare begins a checkpoint of an iteration; point: where in it ("after_hydro"), "" for none. All
 * return 0, or -1 for what is not recorded. Not from a signal handler, nor within a parallel
 * region. */
static inline int ciwrap_prepare(ciwrap_run* run, int64_t iteration, const char* point) {
    return run ? run->table->prepare(run, iteration, point) : 0;
}
static inline int ciwrap_expose(ciwrap_run* run, const ciwrap_array* array) {
    return run ? run->table->expose(run, array) : 0;
}
static inline int ciwrap_complete(ciwrap_run* run) {
    return run ? run->table->complete(run) : 0;
}

/* Hashes arrays that were added, from any number of the program's own threads, between prepare and
 * complete. The data must not change meanwhile. */
static inline int ciwrap_work(ciwrap_run* run) {
    return run ? run->table->work(run) : 0;
}

/* An array to record from now on; its id, or -1, also while recording is off. The data are read at
 * every checkpoint, so they have to stay where they are: ciwrap_move, ciwrap_replace or
 * ciwrap_remove says where they do not. */
static inline int64_t ciwrap_add(ciwrap_run* run, const ciwrap_array* array) {
    return run ? run->table->add(run, array) : -1;
}

/* The id of the array of a name, or -1. */
static inline int64_t ciwrap_find(ciwrap_run* run, const char* name) {
    return run ? run->table->find(run, name) : -1;
}

/* Another place, shape, type or bound for the array `id`; its name stays. */
static inline int ciwrap_replace(ciwrap_run* run, int64_t id, const ciwrap_array* array) {
    return run ? run->table->replace(run, id, array) : 0;
}

/* Another place for the array `id`, as after pointers were swapped. */
static inline int ciwrap_move(ciwrap_run* run, int64_t id, const void* data) {
    return run ? run->table->move(run, id, data) : 0;
}

/* The array `id` is not recorded any more. */
static inline int ciwrap_remove(ciwrap_run* run, int64_t id) {
    return run ? run->table->remove(run, id) : 0;
}

/* Records all arrays that were added, as they are now. flags: CIWRAP_IN_PLACE. Of several threads
 * one records at a time, and the others wait. */
static inline int ciwrap_checkpoint(ciwrap_run* run, int64_t iteration, int flags) {
    return run ? run->table->checkpoint(run, iteration, "", flags) : 0;
}

/* The same at a named point of an iteration: "after_hydro". */
static inline int ciwrap_point(ciwrap_run* run, int64_t iteration, const char* point) {
    return run ? run->table->checkpoint(run, iteration, point, CIWRAP_IN_PLACE) : 0;
}

/* 1 once this process is to end, under `ciwrap record --against RUN --on-divergence stop`, since it
 * does not match that run; else 0. Processes of one program: ciwrap_agree. */
static inline int ciwrap_should_stop(ciwrap_run* run) {
    return run ? run->table->should_stop(run) : 0;
}

/* Under `--on-divergence callback`: the function is called at every checkpoint that does not match,
 * before the call that records it returns. It may call all that is here, and must not throw. */
static inline void ciwrap_on_divergence(ciwrap_run* run, ciwrap_callback callback, void* data) {
    if (run)
        run->table->on_divergence(run, callback, data);
}

/* Errors so far; the first was printed on stderr. */
static inline int64_t ciwrap_errors(ciwrap_run* run) {
    return run ? run->table->errors(run) : 0;
}

/* What last went wrong: one of the codes above. Its words are written to `text`, as far as `bytes`
 * allow, and end in 0. */
static inline int ciwrap_last_error(ciwrap_run* run, char* text, size_t bytes) {
    if (run)
        return run->table->last_error(run, text, bytes);
    if (bytes)
        *text = 0;
    return CIWRAP_NO_ERROR;
}

/* Counts an error of the program's own: what it could not record, and why. */
static inline int ciwrap_report(ciwrap_run* run, const char* text) {
    return run ? run->table->report(run, text) : 0;
}

/* Ends the journal once all is written; the number of errors. May come after MPI_Finalize, and
 * again. A program that ends without it, by exit() or from main, closes all the same. */
static inline int64_t ciwrap_close(ciwrap_run* run) {
    return run ? run->table->close(run) : 0;
}

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
/* The type of the numbers at an address, as ciwrap_array.dtype wants it. */
#define CIWRAP_DTYPE(pointer)                                 \
    _Generic(*(pointer), double                               \
             : "f8", float                                    \
             : "f4", double _Complex                          \
             : "c16", float _Complex                          \
             : "c8", _Bool                                    \
             : "?", signed char                               \
             : "i1", char                                     \
             : "i1", unsigned char                            \
             : "u1", short                                    \
             : "i2", unsigned short                           \
             : "u2", int                                      \
             : "i4", unsigned int                             \
             : "u4", long                                     \
             : sizeof(long) == 8 ? "i8" : "i4", unsigned long \
             : sizeof(long) == 8 ? "u8" : "u4", long long     \
             : "i8", unsigned long long                       \
             : "u8")

static inline ciwrap_array ciwrap_described(const char* name, const char* dtype, const void* data,
                                            int dimensions, const int64_t* extents) {
    ciwrap_array array = {0};
    int i;
    array.size = sizeof array;
    array.name = name;
    array.dtype = dtype;
    array.data = data;
    array.dimensions = dimensions;
    array.atol = array.rtol = -1;
    for (i = 0; i < dimensions && i < CIWRAP_MAX_DIMENSIONS; ++i)
        array.extents[i] = extents[i];
    return array;
}

/* An array that lies back to back, of the type that the pointer says: CIWRAP_ARRAY("T", T, ny, nx).
 * Strides and bounds are set afterwards. */
#define CIWRAP_ARRAY(name, pointer, ...)                                        \
    ciwrap_described(name, CIWRAP_DTYPE(pointer), pointer,                      \
                     (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                     (int64_t[]){__VA_ARGS__})
#endif

/* With <mpi.h> included before. The library itself knows no MPI, so one serves every MPI. */
#ifndef MPI_VERSION
#define ciwrap_open_mpi(name, comm) (include_mpi_h_before_ciwrap_record_h)
#define ciwrap_agree(run, comm) (include_mpi_h_before_ciwrap_record_h)
#else

/* Collective: recording is on in all processes or in none. */
static inline ciwrap_run* ciwrap_open_mpi(const char* name, MPI_Comm comm) {
    int rank = 0, ranks = 1, is_on, are_on = 0;
    ciwrap_run* run;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    run = ciwrap_open(name, rank, ranks);
    is_on = run != NULL;
    MPI_Allreduce(&is_on, &are_on, 1, MPI_INT, MPI_SUM, comm);
    if (run && are_on < ranks) {
        fprintf(stderr, "ciwrap: nothing is recorded: %d of %d processes cannot\n", ranks - are_on,
                ranks);
        run->table->close(run);
        run = NULL;
    }
    return run;
}

/* 1 in all processes once ciwrap_should_stop is 1 in one of them. Collective while recording is on;
 * a branch when it is off. */
static inline int ciwrap_agree(ciwrap_run* run, MPI_Comm comm) {
    int mine = ciwrap_should_stop(run), any = 0;
    if (!run)
        return 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm);
    return any;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
