"""Programs that are compared with another run while they run, for tests."""

# Arguments: checkpoints, wrong step, wrong rank, wrong element, by how much, noise. Writes the last
# step. Values are smooth; noise is uniform, of another sequence in every run.
MPI_SOURCE = r"""
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
#include <ciwrap/record.h>
#define COUNT 6000
static double x[COUNT], noisy[COUNT];
int main(int argc, char** argv) {
    int rank, n, i, last = -1;
    int steps = atoi(argv[1]), wrong = atoi(argv[2]), where = atoi(argv[3]), place = atoi(argv[4]);
    double by = atof(argv[5]), noise = atof(argv[6]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    srand48(1000 * (long)getpid() + rank);
    for (i = 0; i < COUNT; ++i) x[i] = sin(0.01 * i + rank);
    ciwrap_run* run = ciwrap_open_mpi("online", MPI_COMM_WORLD);
    ciwrap_array told = {sizeof told, CIWRAP_HOST, "x", "f8", noisy, 2, 0, {COUNT / 60, 60}, {0},
                         1e-6, -1};
    ciwrap_add(run, &told);
    for (n = 0; n < steps; ++n) {
        for (i = 0; i < COUNT; ++i) {
            x[i] += 1e-3 * cos(0.003 * i * n);
            noisy[i] = x[i] + noise * (2 * drand48() - 1);
        }
        if (wrong >= 0 && n >= wrong && rank == where) noisy[place] = x[place] + by;
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        last = n;
        if (ciwrap_agree(run, MPI_COMM_WORLD)) break;
    }
    if (rank == 0) printf("last step %d\n", last);
    MPI_Finalize();
    return ciwrap_close(run) ? 5 : 0;
}
"""

# Arguments: wrong step, element, by how much, noise, steps, seconds of rest after a step.
PYTHON_TEXT = """
import sys, time, numpy as np, ciwrap
step, place, by, noise, steps, rest = [*sys.argv[1:], *"-1 0 0 0 20 0".split()[len(sys.argv) - 1:]]
step, place, by, noise, steps = int(step), int(place), float(by), float(noise), int(steps)
random = np.random.default_rng(step + 100 + int(1e9 * noise))
told = []
with ciwrap.Recorder("walk") as r:
    r.bound("x", atol=1e-3)
    r.on_divergence(told.append)
    x = np.random.default_rng(3).normal(size=4000)
    for n in range(steps):
        x = x + 0.001 * n
        y = x + noise * random.uniform(-1, 1, size=x.size)
        if step >= 0 and n >= step:
            y[place] = x[place] + by
        r.record(n, "half", x=y)
        r.record(n, x=y, count=np.arange(10) * n)
        time.sleep(float(rest))
        if r.should_stop():
            break
    print("last step", n, flush=True)
    for one in told:
        print("told", one.iteration, one.point, one.variable, one.suspect_chunks, one.chunks)
    sys.exit(5 if r.errors else 0)
"""

# Arguments: rank, ranks, noise. Records for ever, whatever happens to the others; what it records
# follows from the iteration alone, but for noise.
ENDLESS_SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <ciwrap/record.h>
#define COUNT 3000
static double x[COUNT];
int main(int argc, char** argv) {
    int i, n, rank = atoi(argv[1]);
    double noise = atof(argv[3]);
    ciwrap_run* run = ciwrap_open("endless", rank, atoi(argv[2]));
    ciwrap_array told = {sizeof told, CIWRAP_HOST, "x", "f8", x, 1, 0, {COUNT}, {0}, 1e-6, -1};
    (void)argc;
    ciwrap_add(run, &told);
    for (n = 0;; ++n) {
        for (i = 0; i < COUNT; ++i)
            x[i] = sin(0.01 * i + n + rank) + noise * (2 * drand48() - 1);
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
        usleep(500);
    }
}
"""
