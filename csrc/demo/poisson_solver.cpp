#include <cmath>
#include <stdexcept>
#include <utility>

#include "demo/particle_mesh.hpp"

namespace ciwrap::demo {

PoissonSolver::PoissonSolver(std::size_t columns, std::size_t rows)
    : columns_(columns), rows_(rows), twiddles_(columns / 2), spectrum_(columns * rows) {
    if (columns < 4 || (columns & (columns - 1)) != 0 || rows < 3) {
        throw std::invalid_argument("the mesh needs a power of two of columns (>= 4) and 3 rows");
    }
    // Half-angle formulas from cos(pi) = -1 down, then products: square roots are exactly rounded
    // everywhere, a library's cosine is not.
    twiddles_[0] = {1.0, 0.0};
    double cosine = -1.0;
    std::vector<Complex> halvings;  // halvings[j] = exp(-i pi / 2^j)
    for (std::size_t size = 2; size <= columns; size *= 2) {
        halvings.push_back({cosine, -std::sqrt((1.0 - cosine) * (1.0 + cosine))});
        cosine = std::sqrt(0.5 * (1.0 + cosine));
    }
    for (std::size_t k = 1; k < columns / 2; ++k) {
        Complex product{1.0, 0.0};
        std::size_t bit = columns / 2;  // weight of halvings[0] in units of 2 pi / columns
        for (const Complex& factor : halvings) {
            if ((k & bit) != 0) {
                product = {product.re * factor.re - product.im * factor.im,
                           product.re * factor.im + product.im * factor.re};
            }
            bit /= 2;
        }
        twiddles_[k] = product;
    }
}

void PoissonSolver::transform(Complex* row, bool inverse) const {
    for (std::size_t i = 1, j = 0; i < columns_; ++i) {
        std::size_t bit = columns_ / 2;
        for (; (j & bit) != 0; bit /= 2) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) {
            std::swap(row[i], row[j]);
        }
    }
    for (std::size_t half = 1; half < columns_; half *= 2) {
        const std::size_t stride = columns_ / (2 * half);
        for (std::size_t start = 0; start < columns_; start += 2 * half) {
            for (std::size_t k = 0; k < half; ++k) {
                const Complex w = twiddles_[k * stride];
                const double im = inverse ? -w.im : w.im;
                Complex& a = row[start + k];
                Complex& b = row[start + k + half];
                const Complex product{b.re * w.re - b.im * im, b.re * im + b.im * w.re};
                b = {a.re - product.re, a.im - product.im};
                a = {a.re + product.re, a.im + product.im};
            }
        }
    }
}

void PoissonSolver::solve(const std::vector<double>& charge, std::vector<double>& potential) {
    for (std::size_t j = 1; j + 1 < rows_; ++j) {
        Complex* row = &spectrum_[j * columns_];
        for (std::size_t i = 0; i < columns_; ++i) {
            row[i] = {charge[j * columns_ + i], 0.0};
        }
        transform(row, false);
    }
    // For each mode: -u[j-1] + (2 + lambda) u[j] - u[j+1] = c[j], u zero on the walls (Thomas
    // algorithm).
    std::vector<double> upper(rows_);
    for (std::size_t i = 0; i < columns_; ++i) {
        const std::size_t k = i < columns_ / 2 ? i : columns_ - i;
        const double cosine = k == columns_ / 2 ? -1.0 : twiddles_[k].re;
        const double diagonal = 4.0 - 2.0 * cosine;
        upper[0] = 0.0;
        spectrum_[i] = {0.0, 0.0};
        for (std::size_t j = 1; j + 1 < rows_; ++j) {
            const double pivot = 1.0 / (diagonal - upper[j - 1]);
            upper[j] = pivot;
            const Complex below = spectrum_[(j - 1) * columns_ + i];
            Complex& value = spectrum_[j * columns_ + i];
            value = {(value.re + below.re) * pivot, (value.im + below.im) * pivot};
        }
        spectrum_[(rows_ - 1) * columns_ + i] = {0.0, 0.0};
        for (std::size_t j = rows_ - 2; j >= 1; --j) {
            const Complex above = spectrum_[(j + 1) * columns_ + i];
            Complex& value = spectrum_[j * columns_ + i];
            value = {value.re + upper[j] * above.re, value.im + upper[j] * above.im};
        }
    }
    const double scale = 1.0 / static_cast<double>(columns_);
    for (std::size_t j = 0; j < rows_; ++j) {
        Complex* row = &spectrum_[j * columns_];
        transform(row, true);
        for (std::size_t i = 0; i < columns_; ++i) {
            potential[j * columns_ + i] = row[i].re * scale;
        }
    }
}

}  // namespace ciwrap::demo
