// Throws damaged and growing journals at whatever reads them while a program runs. Built with
// sanitizers, it must not crash, hang or ask for unreasonable memory; and
//
// - a damaged journal: a tree that is found in it is that of the whole one, to the byte;
// - one whose checksums were made right again: refused, or read without a fault;
// - a journal that is gone on with: what was whole before is whole after.
//
//   fuzz_journal [RUNS] [SEED]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/xxh3.hpp"
#include "ciwrap/error.hpp"
#include "record/batch.hpp"
#include "record/recorder.hpp"
#include "record/reference.hpp"

namespace ciwrap::record {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;
using Name = std::tuple<std::int64_t, std::string, std::string>;  // iteration, point, variable

constexpr int iterations = 4;
constexpr std::size_t count = 700;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "fuzz_journal: %s\n", what.c_str());
    std::abort();
}

std::size_t below(Random& random, std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

Bytes read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

void write_file(const std::string& path, std::span<const std::byte> bytes, bool is_more = false) {
    std::ofstream file(path, is_more ? std::ios::binary | std::ios::app : std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

std::vector<Name> names() {
    std::vector<Name> found;
    for (int n = 0; n < iterations; ++n)
        for (const char* const variable : {"x", "n"})
            for (const char* const point : {"half", ""})
                found.emplace_back(n, point, variable);
    return found;
}

struct Data {
    std::vector<double> x = std::vector<double>(count);
    std::vector<std::int32_t> n = std::vector<std::int32_t>(count);

    explicit Data(int iteration) {
        for (std::size_t i = 0; i < count; ++i) {
            x[i] = 0.37 * static_cast<double>(i) + iteration;
            n[i] = static_cast<std::int32_t>(i) * iteration;
        }
    }
    static ciwrap_array told(const char* name, const char* dtype, const void* data) {
        ciwrap_array array{};
        array.size = sizeof array;
        array.name = name;
        array.dtype = dtype;
        array.data = data;
        array.dimensions = 1;
        array.extents[0] = count;
        array.atol = array.rtol = -1;
        return array;
    }
    ciwrap_array x_told() const { return told("x", "f8", x.data()); }
    ciwrap_array n_told() const { return told("n", "i4", n.data()); }
};

// A whole journal, with residues.
Bytes record_whole(const std::filesystem::path& folder) {
    const std::string table = folder / "bounds.txt";
    std::ofstream(table) << "ciwrap-bounds 3\n=\tx\t1e-3 0 0\t-\t512\t-\t15\n";
    const std::string run = folder / "whole";
    {
        Recorder recorder(run, "fuzz", 0, 1, table);
        for (int n = 0; n < iterations; ++n) {
            const Data data(n);
            if (n == 0) {
                recorder.add(data.x_told());
                recorder.add(data.n_told());
            }
            recorder.move(0, data.x.data());
            recorder.move(1, data.n.data());
            recorder.checkpoint(n, "half", CIWRAP_IN_PLACE);
            recorder.checkpoint(n, "", CIWRAP_IN_PLACE);
        }
        if (recorder.close() != 0)
            fail("the whole journal was not recorded");
    }
    return read_file(run + journal_name(0));
}

// Makes the checksums of records right, as far as records can be told.
void seal(Bytes& journal) {
    std::size_t at = head_bytes;
    while (at + record_head_bytes + checksum_bytes <= journal.size()) {
        const std::uint64_t length = get_number(&journal[at + 8], 8);
        const std::uint64_t room = journal.size() - at - record_head_bytes - checksum_bytes;
        if (length > room || (length + 7) / 8 * 8 > room)
            return;
        const std::size_t covered = record_head_bytes + (length + 7) / 8 * 8;
        const Digest digest = xxh3_128(std::span(journal).subspan(at, covered));
        std::memcpy(&journal[at + covered], digest.bytes.data(), checksum_bytes);
        at += covered + checksum_bytes;
    }
}

Bytes damaged(const Bytes& whole, Random& random) {
    Bytes found = whole;
    const std::size_t kind = below(random, 5);
    if (kind == 0)
        found.resize(below(random, whole.size() + 1));
    if (kind == 1) {  // a part doubled, or left out
        const auto from = static_cast<std::ptrdiff_t>(below(random, whole.size() / 8) * 8);
        const auto to = static_cast<std::ptrdiff_t>(below(random, whole.size() / 8) * 8);
        const auto place = static_cast<std::ptrdiff_t>(below(random, whole.size() / 8) * 8);
        if (from < to)
            found.insert(found.begin() + place, whole.begin() + from, whole.begin() + to);
        else
            found.erase(found.begin() + to, found.begin() + from);
    }
    for (std::size_t n = below(random, 6) + (kind > 1 ? 1 : 0); n > 0 && !found.empty(); --n) {
        // Heads are a small part of a journal, and where the harm is done.
        std::size_t place = below(random, found.size());
        if (below(random, 2) == 0)
            for (std::size_t i = 0; i < 4096 && place > head_bytes; ++i, --place)
                if (std::memcmp(&found[place], "CRWR",
                                std::min<std::size_t>(4, found.size() - place)) == 0) {
                    place = std::min(place + below(random, 64), found.size() - 1);
                    break;
                }
        found[place] ^= static_cast<std::byte>(1u << below(random, 8));
        if (below(random, 4) == 0)
            found[place] = static_cast<std::byte>(below(random, 256));
    }
    return found;
}

bool is_same(const ReferenceTree& one, const ReferenceTree& other) {
    return one.shape == other.shape && one.tree.digests == other.tree.digests &&
           one.tree.residues == other.tree.residues && one.tree.parameters == other.tree.parameters;
}

using Known = std::map<Name, std::shared_ptr<const ReferenceTree>>;

// Whether the tree could be read; a run is then compared with it, as the library does.
std::shared_ptr<const ReferenceTree> look(Reference& reference, const Name& name) {
    const auto& [iteration, point, variable] = name;
    try {
        (void)reference.parameters_of(variable);
        std::string why;
        auto found = reference.find(iteration, point, variable, why);
        if (found == nullptr && why.empty())
            fail("no tree, and no reason");
        if (found == nullptr)
            return nullptr;
        const Data data(static_cast<int>(iteration));
        const bool is_x = variable == "x";
        const ArrayView view(is_x ? data.x_told() : data.n_told());
        Recorded recorded(0, variable, view, found->tree.parameters, found);
        std::vector<std::byte> buffer;
        if (recorded.trees().empty())
            fail("nothing is to be hashed");
        return found;
    } catch (const Error&) {
        return nullptr;
    }
}

std::size_t read_damaged(const std::string& path, const Known& known, bool is_sealed) {
    std::size_t read = 0;
    try {
        Reference reference(path, 0, 1, 0);
        for (const auto& [name, tree] : known) {
            const auto found = look(reference, name);
            if (found && !is_sealed && !is_same(*found, *tree))
                fail("a damaged journal gave another tree");
            read += found != nullptr;
        }
    } catch (const Error&) {
        return 0;
    }
    return read;
}

// A piece at a time, looked at in between.
void grow(const std::string& path, const Bytes& journal, const Known& known, Random& random,
          bool is_whole, bool is_sealed) {
    std::size_t at = below(random, journal.size() + 1);
    write_file(path, std::span(journal).first(at));
    try {
        Reference reference(path, 0, 1, 0);
        std::size_t read = 0;
        while (true) {
            read = 0;
            for (const auto& [name, tree] : known) {
                const auto found = look(reference, name);
                if (found && !is_sealed && !is_same(*found, *tree))
                    fail("a growing journal gave another tree");
                read += found != nullptr;
            }
            if (at == journal.size())
                break;
            const std::size_t more = std::min(journal.size() - at, 1 + below(random, 6000));
            write_file(path, std::span(journal).subspan(at, more), true);
            at += more;
        }
        if (is_whole && read != known.size())
            fail("a journal that grew is not all there");
    } catch (const Error&) {
        if (is_whole)
            fail("a journal that grew is refused");
    }
}

std::size_t whole_records(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    RecordScan scan(path, descriptor);
    std::size_t found = 0;
    while (const auto place = scan.peek()) {
        if (!scan.read(*place))
            break;
        scan.pass(*place);
        ++found;
    }
    close(descriptor);
    return found;
}

void go_on_with(const std::string& path) {
    const std::size_t before = whole_records(path);
    try {
        Journal journal(path, 0, 1);
        journal.add({RecordType::attempt}, Payload().text("again").text("").u64(0).u32(0).span());
        journal.commit();
    } catch (const Error&) {
        return;  // no journal of this rank any more
    }
    if (whole_records(path) != before + 1)
        fail("going on with a journal lost a record");
}

int run(std::size_t runs, std::uint64_t seed) {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("ciwrap-fuzz-journal-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    const Bytes whole = record_whole(folder);
    const std::string path = folder / "journal.cwr";
    write_file(path, whole);
    Known known;
    {
        Reference reference(path, 0, 1, 0);
        for (const Name& name : names())
            known[name] = look(reference, name);
    }
    for (const auto& [name, tree] : known)
        if (!tree)
            fail("the whole journal cannot be read");
    Random random(seed);
    std::size_t read = 0;
    for (std::size_t n = 0; n < runs; ++n) {
        Bytes journal = damaged(whole, random);
        const bool is_sealed = n % 3 == 0;
        if (is_sealed)
            seal(journal);
        write_file(path, journal);
        read += read_damaged(path, known, is_sealed);
        go_on_with(path);
        if (n % 4 == 1)
            grow(path, n % 8 == 1 ? whole : journal, known, random, n % 8 == 1,
                 is_sealed && n % 8 != 1);
    }
    std::filesystem::remove_all(folder);
    std::printf("%zu journals, %zu trees read in them\n", runs, read);
    return 0;
}

}  // namespace
}  // namespace ciwrap::record

int main(int argc, char** argv) {
    const std::size_t runs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    return ciwrap::record::run(runs, seed);
}
