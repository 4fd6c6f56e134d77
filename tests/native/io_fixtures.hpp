// Real files with known bytes, and every read engine that this machine lets us use.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
        std::vector<char> block(1 << 16);
        for (std::uint64_t done = 0; done < bytes; done += block.size()) {
            for (std::size_t i = 0; i < block.size(); ++i) {
                block[i] = static_cast<char>(byte_at(done + i));
            }
            const std::uint64_t rest = bytes - done;
            out.write(block.data(),
                      static_cast<std::streamsize>(rest < block.size() ? rest : block.size()));
        }
        out.close();
        EXPECT_EQ(std::filesystem::file_size(path), bytes);
        return path.string();
    }

    std::filesystem::path directory_;
};

// Position of the first byte that is not the file's, or -1.
inline std::int64_t first_wrong_byte(std::span<const std::byte> bytes, std::uint64_t offset) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != byte_at(offset + i)) {
            return static_cast<std::int64_t>(i);
        }
    }
    return -1;
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
