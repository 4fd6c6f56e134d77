// A folder for journals, and what every test of the recording library needs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "record/include/ciwrap/record.h"

namespace ciwrap::record {

class RecordTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() /
                  ("ciwrap-record-" + std::to_string(getpid()) + "-" +
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string run() const { return (folder_ / "run").string(); }

    static std::vector<char> bytes_of(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }

    static ciwrap_array doubles(const char* name, const std::vector<double>& values) {
        ciwrap_array array{};
        array.size = sizeof array;
        array.name = name;
        array.dtype = "f8";
        array.data = values.data();
        array.dimensions = 1;
        array.extents[0] = static_cast<std::int64_t>(values.size());
        array.atol = array.rtol = -1;
        return array;
    }

    std::filesystem::path folder_;
};

}  // namespace ciwrap::record
