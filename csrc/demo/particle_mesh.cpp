#include "demo/particle_mesh.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace ciwrap::demo {

namespace {

constexpr std::size_t kColumns = ParticleMesh::kColumns;
constexpr std::size_t kRows = ParticleMesh::kRows;
constexpr std::size_t kRanks = ParticleMesh::kRanks;
constexpr std::size_t kNodes = kColumns * kRows;

// SplitMix64's output function on a counter: integers only, so the same particles everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    double uniform() {  // [0, 1), a multiple of 2^-53
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        z ^= z >> 31U;
        return static_cast<double>(z >> 11U) * 0x1p-53;
    }
    double thermal() {  // variance 1, from four uniforms: near enough to a Gaussian
        const double sum = uniform() + uniform() + uniform() + uniform();
        return (sum - 2.0) * 1.7320508075688772;
    }

  private:
    std::uint64_t state_;
};

// A wave of period 1 between -1 and 1 made of two parabolas.
double wave(double phase) {
    const double t = phase - std::floor(phase);
    return t < 0.5 ? 16.0 * t * (0.5 - t) : -16.0 * (t - 0.5) * (1.0 - t);
}

// As std::atomic_ref does, which the C++ library of macOS has only lately.
void add(float& to, float charge) {
    float before = 0.0F;
    __atomic_load(&to, &before, __ATOMIC_RELAXED);
    float after = before + charge;
    while (!__atomic_compare_exchange(&to, &before, &after, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        after = before + charge;
    }
}

// Cloud-in-cell: the four mesh nodes around a particle and their weights.
struct Cloud {
    std::size_t node[4];
    double weight[4];

    Cloud(double x, double y) {
        const double left = std::floor(x);
        const double below = std::min(std::floor(y), static_cast<double>(kRows - 2));
        const auto i = static_cast<std::size_t>(left) % kColumns;
        const auto j = static_cast<std::size_t>(below);
        const std::size_t next = (i + 1) % kColumns;
        const double fx = x - left;
        const double fy = y - below;
        node[0] = j * kColumns + i;
        node[1] = j * kColumns + next;
        node[2] = node[0] + kColumns;
        node[3] = node[1] + kColumns;
        weight[0] = (1.0 - fx) * (1.0 - fy);
        weight[1] = fx * (1.0 - fy);
        weight[2] = (1.0 - fx) * fy;
        weight[3] = fx * fy;
    }
    double gather(const std::vector<double>& field) const {
        return (weight[0] * field[node[0]] + weight[1] * field[node[1]]) +
               (weight[2] * field[node[2]] + weight[3] * field[node[3]]);
    }
};

// In the order of their height, as a code that fills its mesh row by row leaves them.
Particles draw_particles(Random& random, std::size_t rank, std::size_t count) {
    Particles p;
    const double slab = static_cast<double>(kRows - 1) / static_cast<double>(kRanks);
    for (std::size_t n = 0; n < count; ++n) {
        const double x = random.uniform() * static_cast<double>(kColumns);
        const double share =
            (static_cast<double>(n) + random.uniform()) / static_cast<double>(count);
        const double y = (static_cast<double>(rank) + share) * slab;
        const double along_x = x / static_cast<double>(kColumns);
        const double along_y = y / static_cast<double>(kRows - 1);
        p.id.push_back(static_cast<std::int32_t>(rank * count + n));
        p.x.push_back(x);
        p.y.push_back(y);
        p.vx.push_back(static_cast<float>(0.25 * random.thermal() + 0.5 * wave(2.0 * along_x)));
        p.vy.push_back(static_cast<float>(0.25 * random.thermal() + 0.5 * wave(1.5 * along_y)));
    }
    return p;
}

}  // namespace

ParticleMesh::ParticleMesh(std::uint64_t seed, std::size_t particles_per_rank, std::size_t threads)
    : threads_(threads),
      charge_per_particle_(0.0),
      density_(kNodes),
      charge_(kNodes),
      potential_(kNodes),
      field_x_(kNodes),
      field_y_(kNodes),
      solver_(kColumns, kRows) {
    if (particles_per_rank == 0 || particles_per_rank > 100'000'000 || threads == 0 ||
        threads > 256) {
        throw std::invalid_argument(
            "particles_per_rank must be 1 to 100000000 and threads 1 to 256");
    }
    const double area = static_cast<double>(kColumns) * static_cast<double>(kRows - 1);
    charge_per_particle_ = area / static_cast<double>(kRanks * particles_per_rank);
    Random random(seed);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        particles_.push_back(draw_particles(random, rank, particles_per_rank));
    }
}

void ParticleMesh::plant_boundary_sign_error(std::size_t rank) {
    if (rank >= kRanks) {
        throw std::invalid_argument("no such rank");
    }
    defective_rank_ = rank;
}

void ParticleMesh::step() {
    deposit();
    solve_field();
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        push(rank);
    }
}

void ParticleMesh::deposit() {
    constexpr std::size_t kBatch = 64;
    std::fill(density_.begin(), density_.end(), 0.0F);
    const std::size_t per_rank = particles_[0].x.size();
    const std::size_t total = kRanks * per_rank;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> started{false};
    const auto work = [&] {
        started.wait(false);  // or the first thread would be far ahead of the last one
        for (;;) {
            const std::size_t begin = next.fetch_add(kBatch, std::memory_order_relaxed);
            if (begin >= total) {
                return;
            }
            for (std::size_t n = begin; n < std::min(begin + kBatch, total); ++n) {
                const Particles& p = particles_[n / per_rank];
                const Cloud cloud(p.x[n % per_rank], p.y[n % per_rank]);
                for (std::size_t corner = 0; corner < 4; ++corner) {
                    add(density_[cloud.node[corner]],
                        static_cast<float>(charge_per_particle_ * cloud.weight[corner]));
                }
            }
        }
    };
    std::vector<std::thread> workers;
    try {
        for (std::size_t t = 1; t < threads_; ++t) {
            workers.emplace_back(work);
        }
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
        // No more threads to be had: those there are do the same work.
    }
    started = true;
    started.notify_all();
    work();
    for (std::thread& worker : workers) {
        worker.join();
    }
}

void ParticleMesh::solve_field() {
    for (std::size_t n = 0; n < kNodes; ++n) {
        charge_[n] = 1.0 - static_cast<double>(density_[n]);
    }
    solver_.solve(charge_, potential_);
    for (std::size_t j = 0; j < kRows; ++j) {
        const std::size_t below = j == 0 ? 0 : j - 1;
        const std::size_t above = j == kRows - 1 ? j : j + 1;
        const double span = static_cast<double>(above - below);
        for (std::size_t i = 0; i < kColumns; ++i) {
            const std::size_t left = j * kColumns + (i + kColumns - 1) % kColumns;
            const std::size_t right = j * kColumns + (i + 1) % kColumns;
            field_x_[j * kColumns + i] = 0.5 * (potential_[left] - potential_[right]);
            field_y_[j * kColumns + i] =
                (potential_[below * kColumns + i] - potential_[above * kColumns + i]) / span;
        }
    }
}

void ParticleMesh::push(std::size_t rank) {
    constexpr double kTop = static_cast<double>(kRows - 1);
    constexpr double kWidth = static_cast<double>(kColumns);
    const auto wall = field_y_.end() - static_cast<std::ptrdiff_t>(kColumns);
    const bool defective = rank == defective_rank_;
    const auto flip = [&] { std::transform(wall, field_y_.end(), wall, std::negate<>()); };
    if (defective) {
        flip();
    }
    Particles& p = particles_[rank];
    for (std::size_t n = 0; n < p.x.size(); ++n) {
        const Cloud cloud(p.x[n], p.y[n]);
        const double vx = static_cast<double>(p.vx[n]) - kTimeStep * cloud.gather(field_x_);
        double vy = static_cast<double>(p.vy[n]) - kTimeStep * cloud.gather(field_y_);
        const double x = p.x[n] + kTimeStep * vx;
        double y = p.y[n] + kTimeStep * vy;
        if (y < 0.0 || y > kTop) {
            y = y < 0.0 ? -y : 2.0 * kTop - y;
            vy = -vy;
        }
        p.x[n] = x < 0.0 ? x + kWidth : (x >= kWidth ? x - kWidth : x);
        p.y[n] = y;
        p.vx[n] = static_cast<float>(vx);
        p.vy[n] = static_cast<float>(vy);
    }
    if (defective) {
        flip();
    }
}

}  // namespace ciwrap::demo
