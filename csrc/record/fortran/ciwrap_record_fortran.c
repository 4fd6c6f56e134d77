/* The C half of ciwrap_record.f90: array descriptors of Fortran 2018 become ciwrap_array. */
#ifdef CIWRAP_RECORD_MPI
#include <mpi.h>
#endif
#include <ISO_Fortran_binding.h>
#include <ciwrap/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ciwrap_run* ciwrap_fortran_open(const char* name, int rank, int ranks);
ciwrap_run* ciwrap_fortran_open_mpi(const char* name, int comm);
int ciwrap_fortran_agree(ciwrap_run* run, int comm);
void ciwrap_fortran_put(ciwrap_run* run, const char* name, const CFI_cdesc_t* array, int is_exposed,
                        double atol, double rtol);
void ciwrap_fortran_remove(ciwrap_run* run, const char* name);
void ciwrap_fortran_prepare(ciwrap_run* run, int64_t iteration, const char* point);
void ciwrap_fortran_complete(ciwrap_run* run);
void ciwrap_fortran_checkpoint(ciwrap_run* run, int64_t iteration, const char* point);
int ciwrap_fortran_should_stop(ciwrap_run* run);
void ciwrap_fortran_on_divergence(ciwrap_run* run, ciwrap_callback callback);
int64_t ciwrap_fortran_errors(ciwrap_run* run);
int ciwrap_fortran_last_error(ciwrap_run* run, char* text, size_t bytes);
int64_t ciwrap_fortran_close(ciwrap_run* run);

ciwrap_run* ciwrap_fortran_open(const char* name, int rank, int ranks) {
    return ciwrap_open(name, rank, ranks);
}

#ifdef CIWRAP_RECORD_MPI
ciwrap_run* ciwrap_fortran_open_mpi(const char* name, int comm) {
    return ciwrap_open_mpi(name, MPI_Comm_f2c((MPI_Fint)comm));
}

int ciwrap_fortran_agree(ciwrap_run* run, int comm) {
    return ciwrap_agree(run, MPI_Comm_f2c((MPI_Fint)comm));
}
#else
/* Nothing is recorded then: every process would be rank 0. */
ciwrap_run* ciwrap_fortran_open_mpi(const char* name, int comm) {
    (void)name;
    (void)comm;
    if (getenv("CIWRAP_RECORD") != NULL)
        fprintf(stderr,
                "ciwrap: nothing is recorded: compile ciwrap_record_fortran.c with "
                "-DCIWRAP_RECORD_MPI and MPI's compiler\n");
    return NULL;
}

int ciwrap_fortran_agree(ciwrap_run* run, int comm) {
    (void)comm;
    return ciwrap_should_stop(run);
}
#endif

/* Types that share a number are told by their size; "" for one that is not recorded. */
static const char* dtype_of(CFI_type_t type, size_t bytes) {
    if (type == CFI_type_float || type == CFI_type_double)
        return bytes == 4 ? "f4" : "f8";
    if (type == CFI_type_float_Complex || type == CFI_type_double_Complex)
        return bytes == 8 ? "c8" : "c16";
#ifdef CFI_type_Logical /* gfortran's, of any kind; the standard has one for a byte alone */
    if ((type & CFI_type_mask) == CFI_type_Logical)
        return bytes == 1 ? "i1" : bytes == 2 ? "i2" : bytes == 4 ? "i4" : "i8";
#endif
    if (type == CFI_type_Bool)
        return bytes == 1 ? "i1" : bytes == 2 ? "i2" : bytes == 4 ? "i4" : "i8";
    if (type == CFI_type_signed_char || type == CFI_type_short || type == CFI_type_int ||
        type == CFI_type_long || type == CFI_type_long_long || type == CFI_type_int8_t ||
        type == CFI_type_int16_t || type == CFI_type_int32_t || type == CFI_type_int64_t)
        return bytes == 1 ? "i1" : bytes == 2 ? "i2" : bytes == 4 ? "i4" : "i8";
    return "";
}

void ciwrap_fortran_put(ciwrap_run* run, const char* name, const CFI_cdesc_t* array, int is_exposed,
                        double atol, double rtol) {
    ciwrap_array told;
    int64_t id;
    int i;
    memset(&told, 0, sizeof told);
    told.size = sizeof told;
    told.location = CIWRAP_HOST;
    told.name = name;
    told.dtype = dtype_of(array->type, array->elem_len);
    told.data = array->base_addr;
    told.dimensions = array->rank;
    told.flags = CIWRAP_BYTE_STRIDES;
    told.atol = atol;
    told.rtol = rtol;
    for (i = 0; i < array->rank && i < CIWRAP_MAX_DIMENSIONS; ++i) {
        const CFI_dim_t* dimension = &array->dim[array->rank - 1 - i];
        told.extents[i] = dimension->extent;
        told.strides[i] = dimension->sm;
    }
    if (is_exposed) {
        ciwrap_expose(run, &told);
        return;
    }
    id = ciwrap_find(run, name);
    if (id >= 0)
        ciwrap_replace(run, id, &told);
    else
        ciwrap_add(run, &told);
}

void ciwrap_fortran_remove(ciwrap_run* run, const char* name) {
    const int64_t id = ciwrap_find(run, name);
    if (id >= 0)
        ciwrap_remove(run, id);
}

void ciwrap_fortran_prepare(ciwrap_run* run, int64_t iteration, const char* point) {
    ciwrap_prepare(run, iteration, point);
}

void ciwrap_fortran_complete(ciwrap_run* run) {
    ciwrap_complete(run);
}

void ciwrap_fortran_checkpoint(ciwrap_run* run, int64_t iteration, const char* point) {
    ciwrap_point(run, iteration, point);
}

int ciwrap_fortran_should_stop(ciwrap_run* run) {
    return ciwrap_should_stop(run);
}

void ciwrap_fortran_on_divergence(ciwrap_run* run, ciwrap_callback callback) {
    ciwrap_on_divergence(run, callback, NULL);
}

int64_t ciwrap_fortran_errors(ciwrap_run* run) {
    return ciwrap_errors(run);
}

int ciwrap_fortran_last_error(ciwrap_run* run, char* text, size_t bytes) {
    return ciwrap_last_error(run, text, bytes);
}

int64_t ciwrap_fortran_close(ciwrap_run* run) {
    return ciwrap_close(run);
}
