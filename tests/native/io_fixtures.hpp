// Real files with known bytes, and every read engine that this machine lets us use.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "io/read_engine.hpp"

namespace ciwrap::testing {

// The byte at `position` of every test file; no period that a wrong offset could hide behind.
inline std::byte byte_at(std::uint64_t position) {
    std::uint64_t mixed = position * 0x9E3779B97F4A7C15ULL;
    mixed ^= mixed >> 29;
    return static_cast<std::byte>((mixed * 0xBF58476D1CE4E5B9ULL) >> 56);
}

// The first `count` bytes of every test file, or more; made once, since tests compare many times.
inline std::span<const std::byte> known_bytes(std::uint64_t count) {
    static std::vector<std::byte> known;
    const std::size_t before = known.size();
    if (before < count)
        known.resize(static_cast<std::size_t>(count));
    for (std::size_t i = before; i < known.size(); ++i)
        known[i] = byte_at(i);
    return known;
}

class IoFiles : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "ciwrap-io-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::string make_file(const std::string& name, std::uint64_t bytes) const {
        const std::filesystem::path path = directory_ / name;
        std::ofstream out(path, std::ios::binary);
        out.write(reinterpret_cast<const char*>(known_bytes(bytes).data()),
                  static_cast<std::streamsize>(bytes));
        out.close();
        EXPECT_EQ(std::filesystem::file_size(path), bytes);
        return path.string();
    }

    std::filesystem::path directory_;
};

// Position of the first byte that is not the file's, or -1.
inline std::int64_t first_wrong_byte(std::span<const std::byte> bytes, std::uint64_t offset) {
    const auto wanted =
        known_bytes(offset + bytes.size()).subspan(static_cast<std::size_t>(offset), bytes.size());
    if (bytes.empty() || std::memcmp(bytes.data(), wanted.data(), bytes.size()) == 0)
        return -1;
    return std::mismatch(bytes.begin(), bytes.end(), wanted.begin()).first - bytes.begin();
}

inline std::vector<EngineKind> usable_engines() {
    std::vector<EngineKind> kinds;
    for (const EngineReport& report : io_engine_report()) {
        if (report.usable) {
            kinds.push_back(parse_engine_kind(report.name));
        }
    }
    return kinds;
}

inline std::string engine_name(EngineKind kind) {
    return kind == EngineKind::io_uring ? "io_uring"
           : kind == EngineKind::pread  ? "pread"
                                        : "automatic";
}

// The code of the Error that `call` throws and its message; fails if it throws nothing.
template <class Call>
std::pair<ErrorCode, std::string> error_of(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    ADD_FAILURE() << "no Error was thrown";
    return {ErrorCode::unsupported, ""};
}

}  // namespace ciwrap::testing
