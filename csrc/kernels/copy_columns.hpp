// Arrays whose columns lie together, copied row by row: in blocks of eight rows and columns, so
// that each line of the cache is read once, and turned over in registers where there are such.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/level_kernels.hpp"
#include "kernels/level_namespace.hpp"

#if defined(CIWRAP_CPU_LEVEL) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

static constexpr std::size_t block_side = 8;

// What a block is read from, column after column, and written to, row after row.
struct BlockPlaces {
    const std::uint8_t* from;
    std::int64_t column_stride;
    std::uint8_t* to;
    std::size_t row_stride;

    const std::uint8_t* column(std::size_t j) const {
        return from + static_cast<std::int64_t>(j) * column_stride;
    }
    std::uint8_t* row(std::size_t i) const { return to + i * row_stride; }
};

template <std::size_t Bytes>
static inline void copy_corner(const BlockPlaces& at, std::size_t rows, std::size_t columns) {
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            __builtin_memcpy(at.row(i) + j * Bytes, at.column(j) + i * Bytes, Bytes);
}

#if defined(CIWRAP_CPU_LEVEL) && defined(__AVX512F__)

// Of zero-masked forms see simd.hpp.
static inline void copy_block_of_8_bytes(const BlockPlaces& at) {
    constexpr __mmask8 every = 0xff;
    __m512d pairs[8];  // of columns 2m and 2m + 1: rows 0, 2, 4, 6, and 1, 3, 5, 7
    for (std::size_t j = 0; j < 8; j += 2) {
        const __m512d even = _mm512_loadu_pd(at.column(j));
        const __m512d odd = _mm512_loadu_pd(at.column(j + 1));
        pairs[j] = _mm512_maskz_unpacklo_pd(every, even, odd);
        pairs[j + 1] = _mm512_maskz_unpackhi_pd(every, even, odd);
    }
    for (std::size_t p = 0; p < 2; ++p) {
        const auto join = [&](std::size_t first) __attribute__((always_inline)) {
            struct Halves {
                __m512d upper, lower;  // rows p and p + 2, p + 4 and p + 6, of four columns
            };
            const __m512d a = pairs[first + p];
            const __m512d b = pairs[first + 2 + p];
            return Halves{_mm512_maskz_shuffle_f64x2(every, a, b, 0x44),
                          _mm512_maskz_shuffle_f64x2(every, a, b, 0xee)};
        };
        const auto left = join(0);
        const auto right = join(4);
        const auto put = [&](std::size_t row, __m512d values) __attribute__((always_inline)) {
            _mm512_storeu_pd(at.row(row + p), values);
        };
        put(0, _mm512_maskz_shuffle_f64x2(every, left.upper, right.upper, 0x88));
        put(2, _mm512_maskz_shuffle_f64x2(every, left.upper, right.upper, 0xdd));
        put(4, _mm512_maskz_shuffle_f64x2(every, left.lower, right.lower, 0x88));
        put(6, _mm512_maskz_shuffle_f64x2(every, left.lower, right.lower, 0xdd));
    }
}

#elif defined(CIWRAP_CPU_LEVEL) && defined(__AVX2__)

// Four rows and columns at a time.
static inline void copy_block_of_8_bytes(const BlockPlaces& at) {
    for (std::size_t i = 0; i < 8; i += 4) {
        for (std::size_t j = 0; j < 8; j += 4) {
            __m256d column[4];
            for (std::size_t k = 0; k < 4; ++k)
                column[k] = _mm256_loadu_pd(
                    reinterpret_cast<const double*>(at.column(j + k) + i * sizeof(double)));
            const auto put = [&](std::size_t row, __m256d values) __attribute__((always_inline)) {
                _mm256_storeu_pd(reinterpret_cast<double*>(at.row(i + row) + j * sizeof(double)),
                                 values);
            };
            const __m256d a = _mm256_unpacklo_pd(column[0], column[1]);
            const __m256d b = _mm256_unpackhi_pd(column[0], column[1]);
            const __m256d c = _mm256_unpacklo_pd(column[2], column[3]);
            const __m256d d = _mm256_unpackhi_pd(column[2], column[3]);
            put(0, _mm256_permute2f128_pd(a, c, 0x20));
            put(1, _mm256_permute2f128_pd(b, d, 0x20));
            put(2, _mm256_permute2f128_pd(a, c, 0x31));
            put(3, _mm256_permute2f128_pd(b, d, 0x31));
        }
    }
}

#endif

template <std::size_t Bytes>
static inline void copy_block(const BlockPlaces& at) {
#if defined(CIWRAP_CPU_LEVEL) && defined(__AVX2__)
    if constexpr (Bytes == 8)
        return copy_block_of_8_bytes(at);
#endif
    copy_corner<Bytes>(at, block_side, block_side);
}

// Eight columns of all rows. What the next eight lie in is asked for meanwhile: the processor does
// not guess it, since every column is in another page.
template <std::size_t Bytes>
static void copy_eight_columns(const BlockPlaces& at, std::size_t rows, bool has_next) {
    const std::size_t whole = rows - rows % block_side;
    BlockPlaces here = at;
    const auto fetch_next = [&] {
        for (std::size_t j = block_side; has_next && j < 2 * block_side; ++j)
            __builtin_prefetch(here.column(j));
    };
    for (std::size_t i = 0; i < whole; i += block_side) {
        fetch_next();
        copy_block<Bytes>(here);
        here.from += block_side * Bytes;
        here.to += block_side * at.row_stride;
    }
    fetch_next();
    copy_corner<Bytes>(here, rows - whole, block_side);
}

template <std::size_t Bytes>
static void copy_columns_of(const ColumnsCopy& copy) {
    const std::size_t whole = copy.columns - copy.columns % block_side;
    BlockPlaces at{copy.from, copy.column_stride, copy.to, copy.columns * Bytes};
    for (std::size_t j = 0; j < whole; j += block_side) {
        copy_eight_columns<Bytes>(at, copy.rows, j + 2 * block_side <= whole);
        at.from = at.column(block_side);
        at.to += block_side * Bytes;
    }
    copy_corner<Bytes>(at, copy.rows, copy.columns - whole);
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
