// Gray and Scott's reaction of two substances that spread, with Kokkos. It knows nothing of ciwrap:
// Kokkos itself reports its Views.
//
//   cmake -S . -B build && cmake --build build
//   ciwrap record --view 'substance *=f8[66,66]' --step step -o before -- build/unchanged
//   ciwrap record --view 'substance *=f8[66,66]' --step step -o after -- build/unchanged 7
//   ciwrap compare before after                          (a defect in step 7)
#include <Kokkos_Core.hpp>
#include <cstdlib>
#include <utility>

using Field = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;
using Plane = Kokkos::MDRangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::Rank<2>>;

constexpr int size = 64, steps = 12;

static KOKKOS_INLINE_FUNCTION double spread(const Field& f, int i, int j) {
    return f(i - 1, j) + f(i + 1, j) + f(i, j - 1) + f(i, j + 1) - 4 * f(i, j);
}

static void step(const Field& u, const Field& v, const Field& next_u, const Field& next_v) {
    Kokkos::parallel_for(
        "react", Plane({1, 1}, {size + 1, size + 1}), KOKKOS_LAMBDA(int i, int j) {
            const double reaction = u(i, j) * v(i, j) * v(i, j);
            next_u(i, j) = u(i, j) + 0.16 * spread(u, i, j) - reaction + 0.035 * (1 - u(i, j));
            next_v(i, j) = v(i, j) + 0.08 * spread(v, i, j) + reaction - 0.1 * v(i, j);
        });
    Kokkos::fence();
}

int main(int argc, char** argv) {
    const int wrong_step = argc > 1 ? std::atoi(argv[1]) : -1;
    Kokkos::initialize(argc, argv);
    {
        const int all = size + 2;
        Field u("substance u", all, all), v("substance v", all, all);
        Field next_u("next u", all, all), next_v("next v", all, all);
        Kokkos::deep_copy(u, 1.0);
        for (int i = 28; i < 36; ++i)
            for (int j = 28; j < 36; ++j)
                v(i, j) = 0.5;
        for (int n = 0; n < steps; ++n) {
            Kokkos::Profiling::pushRegion("step");
            step(u, v, next_u, next_v);
            Kokkos::deep_copy(u, next_u);
            Kokkos::deep_copy(v, next_v);
            if (n == wrong_step)
                v(size / 2, size / 2) += 1e-3;
            Kokkos::Profiling::popRegion();
        }
    }
    Kokkos::finalize();
}
