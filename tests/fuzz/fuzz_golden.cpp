// Throws changed golden files at the reader. Built with sanitizers, it must not crash, hang or ask
// for unreasonable memory; and whatever happened to a file must be noticed:
//
// - a change without re-sealing: refused, unless the bytes are what they were;
// - a change with every checksum made right again: refused, or a golden that holds together and
// keeps
//   its contents and root through writing and reading;
// - a sound change of the contents: comes back as it went in.
//
//   fuzz_golden FOLDER [RUNS] [SEED]      FOLDER: tests/conformance/golden
//
// With CIWRAP_LIBFUZZER it is a libFuzzer target instead (clang, -fsanitize=fuzzer).
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"
#include "golden_map.hpp"
#include "golden_mutations.hpp"

namespace ciwrap::fuzz {
namespace {

constexpr std::uint64_t limit = std::uint64_t{1} << 26;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "fuzz_golden: %s\n", what.c_str());
    std::abort();
}

bool same(const std::vector<GoldenVariable>& a, const std::vector<GoldenVariable>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const GoldenVariable& x, const GoldenVariable& y) {
            const bool data = x.data && y.data ? *x.data == *y.data : !x.data && !y.data;
            return data && x.name == y.name && x.iteration == y.iteration && x.rank == y.rank &&
                   x.shape == y.shape && x.tree->parameters == y.tree->parameters &&
                   x.tree->scalar_count == y.tree->scalar_count &&
                   x.tree->digests == y.tree->digests && x.tree->residues == y.tree->residues;
        });
}

// Empty if the reader accepts the file; else its reason.
std::string reason_to_refuse(const Bytes& file, std::vector<GoldenVariable>& variables) {
    try {
        variables = decode_golden(file, "f", limit);
    } catch (const Error& error) {
        const std::string text = error.what();
        if (error.code() != ErrorCode::corrupt_file && error.code() != ErrorCode::unsupported &&
            error.code() != ErrorCode::too_large) {
            fail("an error with a wrong code: " + text);
        }
        if (text.rfind("f: ", 0) != 0 || text.find_first_of("\n\r\x1b") != std::string::npos) {
            fail("an error that is not one line naming the file: " + text);
        }
        return text;
    }
    if (variables.empty())
        fail("a golden without variables was accepted");
    return "";
}

// What was accepted must hold together. Returns whether its bytes are the writer's own.
bool check_accepted(const Bytes& file, const std::vector<GoldenVariable>& variables) {
    const Bytes written = encode_golden(variables);
    if (!same(decode_golden(written, "f", limit), variables))
        fail("contents change on rewriting");
    // What means nothing for a dtype is not written again, so that the root is another one.
    const std::vector<Entry> entries = map_of(file).entries;
    const bool is_restated = std::any_of(entries.begin(), entries.end(),
                                         [](const Entry& entry) { return entry.has_idle_bound; });
    if ((golden_root(written, "f") != golden_root(file, "f")) != is_restated)
        fail("the root changes on rewriting, or stays where bounds were stated anew");
    return written == file;
}

}  // namespace
}  // namespace ciwrap::fuzz

#ifdef CIWRAP_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ciwrap::fuzz;
    Bytes file(data, data + size);
    std::vector<ciwrap::GoldenVariable> variables;
    if (reason_to_refuse(file, variables).empty())
        check_accepted(file, variables);
    reseal(file);
    if (reason_to_refuse(file, variables).empty())
        check_accepted(file, variables);
    return 0;
}

#else

namespace ciwrap::fuzz {
namespace {

constexpr unsigned hang_seconds = 60;

std::vector<Bytes> sound_files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& item : std::filesystem::directory_iterator(folder)) {
        const std::string name = item.path().filename().string();
        const bool unsound = name.rfind("damaged_", 0) == 0 || name.rfind("hostile_", 0) == 0;
        if (item.path().extension() == ".golden" && !unsound)
            paths.push_back(item.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Bytes> files;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return files;
}

// A message without what differs from file to file.
std::string kind_of(const std::string& text) {
    std::string kind;
    bool quoted = false;
    for (const char c : text) {
        if (c == '\'')
            quoted = !quoted;
        if (quoted || (c >= '0' && c <= '9' && !kind.empty() && kind.back() == 'N'))
            continue;
        kind += c >= '0' && c <= '9' ? 'N' : c;
    }
    return kind;
}

class Fuzzer {
  public:
    Fuzzer(std::vector<Bytes> files, std::uint64_t seed)
        : files_(std::move(files)), random_(seed) {}

    void run_once() {
        ::alarm(hang_seconds);
        const Bytes& original = files_[random_.below(files_.size())];
        switch (random_.below(8)) {
            case 0:
                return change_contents(original);
            case 1:
            case 2:
            case 3:
                return change_unsealed(original);
            default:
                return change_sealed(original);
        }
    }

    void report(std::uint64_t runs, std::uint64_t seed) const {
        std::printf("fuzz_golden: %llu mutations of %zu files, seed %llu: all noticed\n",
                    static_cast<unsigned long long>(runs), files_.size(),
                    static_cast<unsigned long long>(seed));
        for (const auto& [what, count] : counts_)
            std::printf("%9ld  %s\n", count, what.c_str());
        std::printf("%9zu  different reasons to refuse a re-sealed file:\n", reasons_.size());
        for (const auto& [reason, count] : reasons_)
            std::printf("%9ld    %s\n", count, reason.c_str());
    }

  private:
    void change_unsealed(const Bytes& original) {
        Bytes file = original;
        if (random_.one_in(2)) {
            mutate_bytes(file, files_[random_.below(files_.size())], random_);
        } else {
            mutate_structure(file, random_);
        }
        std::vector<GoldenVariable> variables;
        if (!reason_to_refuse(file, variables).empty()) {
            ++counts_["unsealed: refused"];
        } else if (file == original) {
            ++counts_["unsealed: no change, accepted"];
        } else {
            fail("a change was not noticed");
        }
    }

    void change_sealed(const Bytes& original) {
        Bytes file = original;
        if (random_.one_in(4)) {
            mutate_bytes(file, files_[random_.below(files_.size())], random_);
        } else {
            mutate_structure(file, random_);
        }
        reseal(file);
        std::vector<GoldenVariable> variables;
        const std::string reason = reason_to_refuse(file, variables);
        if (!reason.empty()) {
            ++counts_["re-sealed: refused"];
            ++reasons_[kind_of(reason)];
        } else {
            const bool canonical = check_accepted(file, variables);
            ++counts_[canonical ? "re-sealed: accepted, the writer's own bytes"
                                : "re-sealed: accepted, compressed in another way"];
        }
    }

    void change_contents(const Bytes& original) {
        const auto changed = mutate_contents(decode_golden(original, "f", limit), random_);
        const Bytes file = encode_golden(changed);
        const auto back = decode_golden(file, "f", limit);
        if (encode_golden(back) != file || back.size() != changed.size())
            fail("a round trip changes bytes");
        for (const GoldenVariable& variable : changed) {
            const bool found =
                std::any_of(back.begin(), back.end(),
                            [&](const GoldenVariable& other) { return same({variable}, {other}); });
            if (!found)
                fail("a round trip loses " + variable.name);
        }
        ++counts_["sound contents: came back"];
    }

    std::vector<Bytes> files_;
    Random random_;
    std::map<std::string, long> counts_;
    std::map<std::string, long> reasons_;
};

}  // namespace
}  // namespace ciwrap::fuzz

// A header that lies must not be able to ask for much memory.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "max_allocation_size_mb=256";
}

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4) {
        std::fprintf(stderr, "usage: fuzz_golden FOLDER [RUNS] [SEED]\n");
        return 2;
    }
    const std::uint64_t runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20000;
    const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    auto files = ciwrap::fuzz::sound_files(argv[1]);
    if (files.size() < 10 || runs == 0) {
        std::fprintf(stderr, "fuzz_golden: %zu goldens in %s, %llu runs: nothing to do\n",
                     files.size(), argv[1], static_cast<unsigned long long>(runs));
        return 2;
    }
    ciwrap::fuzz::Fuzzer fuzzer(std::move(files), seed);
    for (std::uint64_t run = 0; run < runs; ++run)
        fuzzer.run_once();
    fuzzer.report(runs, seed);
    return 0;
}

#endif
