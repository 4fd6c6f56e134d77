// A small two-dimensional electrostatic particle-mesh simulation, the program `ciwrap demo` checks.
//
// Electrons move over a fixed neutral background between two grounded walls (y = 0 and y = rows -
// 1), periodic in x. Mesh spacing, plasma frequency and electron mass are 1. Two ranks, simulated
// in one process, each own half of the particles (for ever) and half of the mesh rows.
//
// Threads add the particles' charge to one float32 mesh with atomic adds in whatever order the
// scheduler gives, so two runs with more than one thread differ in the last bits, and the
// difference travels: that is the point. Everything else is the same on every IEEE 754 machine:
// only + - * / and square roots, no libm, no contraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ciwrap::demo {

// Periodic in x, zero on the first and the last row: solves -laplace(potential) = charge, directly,
// with a Fourier transform along x and a tridiagonal solve along y.
class PoissonSolver {
  public:
    PoissonSolver(std::size_t columns, std::size_t rows);
    // Both are rows x columns, row-major; the charge of the wall rows is not used.
    void solve(const std::vector<double>& charge, std::vector<double>& potential);

  private:
    struct Complex {
        double re = 0.0;
        double im = 0.0;
    };
    void transform(Complex* row, bool inverse) const;

    std::size_t columns_;
    std::size_t rows_;
    std::vector<Complex> twiddles_;  // exp(-2 pi i k / columns), k < columns / 2
    std::vector<Complex> spectrum_;
};

struct Particles {
    std::vector<std::int32_t> id;
    std::vector<double> x;
    std::vector<double> y;
    std::vector<float> vx;
    std::vector<float> vy;
};

class ParticleMesh {
  public:
    static constexpr std::size_t kColumns = 64;  // a power of two
    static constexpr std::size_t kRows = 64;
    static constexpr std::size_t kRanks = 2;
    static constexpr double kTimeStep = 0.1;

    // Throws std::invalid_argument for zero particles or threads.
    ParticleMesh(std::uint64_t seed, std::size_t particles_per_rank, std::size_t threads);

    // One time step: deposit, solve, push.
    void step();

    // The planted defect: from now on this rank takes the wrong sign for the field on the upper
    // wall's plane. Throws std::invalid_argument for an unknown rank.
    void plant_boundary_sign_error(std::size_t rank);

    const Particles& particles(std::size_t rank) const { return particles_.at(rank); }
    // kRows x kColumns, row-major; as of the last deposit and solve.
    const std::vector<float>& density() const { return density_; }
    const std::vector<double>& potential() const { return potential_; }

  private:
    void deposit();
    void solve_field();
    void push(std::size_t rank);

    std::size_t threads_;
    double charge_per_particle_;
    std::vector<Particles> particles_;
    std::vector<float> density_;
    std::vector<double> charge_;
    std::vector<double> potential_;
    std::vector<double> field_x_;
    std::vector<double> field_y_;
    PoissonSolver solver_;
    std::size_t defective_rank_ = kRanks;
};

}  // namespace ciwrap::demo
