// Advection of a cloud in a shear flow, with Kokkos: two Views that change places, with a layer of
// ghost cells around what is recorded.
//
//   cmake -S . -B build -Dciwrap-record_DIR="$(ciwrap native --cmake)" && cmake --build build
//   ciwrap record -o before -- build/advection
//   ciwrap record -o after -- build/advection 7      (a defect in step 7)
//   ciwrap compare before after
#include <Kokkos_Core.hpp>
#include <ciwrap/record.hpp>
#include <cmath>
#include <cstdlib>
#include <utility>

using Field = Kokkos::View<double**, Kokkos::HostSpace>;
using Plane = Kokkos::MDRangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::Rank<2>>;

constexpr int ny = 60, nx = 80, steps = 12;
constexpr double dt = 0.2;

// Upwind differences; in x with the speed of the row, in y with a tenth of that.
void step(const Field& old, const Field& now) {
    Kokkos::parallel_for(
        "advect", Plane({1, 1}, {ny + 1, nx + 1}), KOKKOS_LAMBDA(int i, int j) {
            const double speed = static_cast<double>(i) / ny;
            now(i, j) = old(i, j) - dt * speed * (old(i, j) - old(i, j - 1)) -
                        dt * 0.1 * (old(i, j) - old(i - 1, j));
        });
    Kokkos::fence();
}

int main(int argc, char** argv) {
    const int wrong_step = argc > 1 ? std::atoi(argv[1]) : -1;
    Kokkos::initialize(argc, argv);
    {
        Field now("cloud", ny + 2, nx + 2), old("cloud before", ny + 2, nx + 2);
        for (int i = 0; i < ny + 2; ++i)
            for (int j = 0; j < nx + 2; ++j)
                old(i, j) = now(i, j) =
                    std::exp(-0.01 * ((i - 20) * (i - 20) + (j - 30) * (j - 30)));

        ciwrap::Recorder recorder("advection");
        const auto rows = std::make_pair(1, ny + 1), columns = std::make_pair(1, nx + 1);
        for (int n = 0; n < steps; ++n) {
            std::swap(old, now);
            step(old, now);
            if (n == wrong_step)
                now(ny / 2, nx / 2) += 1e-3;
            recorder.add("cloud", Kokkos::subview(now, rows, columns));
            recorder.checkpoint(n);
        }
    }
    Kokkos::finalize();
}
