/* Heat conduction in a plate, cut into strips of rows: one for each MPI process.
 *
 *   mpicc -I"$(ciwrap native --include)" heat.c -o heat -lm -ldl
 *   ciwrap record -o before -- mpiexec -n 2 ./heat
 *   ciwrap record -o after -- mpiexec -n 2 ./heat 7      (a defect in step 7)
 *   ciwrap compare before after
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include <ciwrap/record.h>

#define NX 96
#define ROWS 48
#define STEPS 12

static double now[ROWS + 2][NX + 2], next[ROWS + 2][NX + 2]; /* with one layer of ghost cells */

static void exchange(int rank, int ranks) {
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(now[1], NX + 2, MPI_DOUBLE, up, 0, now[ROWS + 1], NX + 2, MPI_DOUBLE, down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(now[ROWS], NX + 2, MPI_DOUBLE, down, 1, now[0], NX + 2, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void step(void) {
    int i, j;
    for (i = 1; i <= ROWS; ++i)
        for (j = 1; j <= NX; ++j)
            next[i][j] = now[i][j] + 0.2 * (now[i - 1][j] + now[i + 1][j] + now[i][j - 1] +
                                            now[i][j + 1] - 4.0 * now[i][j]);
    for (i = 1; i <= ROWS; ++i)
        for (j = 1; j <= NX; ++j) now[i][j] = next[i][j];
}

int main(int argc, char** argv) {
    int rank, ranks, i, j, n, wrong_step = argc > 1 ? atoi(argv[1]) : -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (i = 0; i < ROWS + 2; ++i)
        for (j = 0; j < NX + 2; ++j) now[i][j] = sin(0.1 * (i + rank * ROWS)) * cos(0.05 * j);

    ciwrap_run* run = ciwrap_open_mpi("heat", MPI_COMM_WORLD);
    ciwrap_array plate = {sizeof plate, CIWRAP_HOST, "temperature", "f8", &now[1][1], 2, 0,
                          {ROWS, NX}, {NX + 2, 1}, -1, -1};
    ciwrap_add(run, &plate);

    for (n = 0; n < STEPS; ++n) {
        exchange(rank, ranks);
        step();
        if (n == wrong_step && rank == ranks - 1)
            now[ROWS / 2][NX / 2] += 1e-3;
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        if (ciwrap_agree(run, MPI_COMM_WORLD))
            break; /* ciwrap record --against before --on-divergence stop */
    }
    MPI_Finalize();
    return ciwrap_close(run) ? 1 : 0;
}
