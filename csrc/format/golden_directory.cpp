#include "format/golden_directory.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/quantize_plan.hpp"
#include "base/xxh3.hpp"
#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/tree_shape.hpp"
#include "format/byte_order.hpp"
#include "format/text_rules.hpp"

namespace ciwrap {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint64_t optional_number(const std::optional<std::uint64_t>& value) {
    return value ? *value + 1 : 0;
}

template <typename Length>
void append_text(Bytes& bytes, const std::string& text) {
    append(bytes, static_cast<Length>(text.size()));
    bytes.insert(bytes.end(), text.begin(), text.end());
}

void append_description(Bytes& bytes, const DirectoryEntry& entry) {
    const TreeParameters& parameters = entry.parameters;
    append_text<std::uint16_t>(bytes, entry.name);
    append(bytes, optional_number(entry.iteration));
    append(bytes, optional_number(entry.rank));
    append_text<std::uint8_t>(bytes, parameters.dtype());
    append(bytes, static_cast<std::uint8_t>(entry.shape.size()));
    for (const std::uint64_t dimension : entry.shape)
        append(bytes, dimension);
    append(bytes, parameters.atol());
    append(bytes, parameters.rtol());
    append(bytes, parameters.ulps());
    append(bytes, static_cast<std::uint32_t>(parameters.chunk_bytes()));
    append(bytes, static_cast<std::uint16_t>(parameters.arity()));
    append(bytes, static_cast<std::uint8_t>(parameters.residue_levels()));
    append(bytes, static_cast<std::uint8_t>(entry.levels));
    append(bytes, static_cast<std::uint8_t>((parameters.equal_nan() ? layout::flag_equal_nan : 0) |
                                            (entry.data_digest ? layout::flag_data : 0) |
                                            (entry.summaries_digest ? layout::flag_summaries : 0)));
    append(bytes, static_cast<std::uint8_t>(parameters.fill_bits().size()));
    for (const std::uint64_t fill : parameters.fill_bits())
        append(bytes, fill);
    append(bytes, entry.tree_root);
    if (entry.residues_digest)
        append(bytes, *entry.residues_digest);
    if (entry.summaries_digest)
        append(bytes, *entry.summaries_digest);
    if (entry.data_digest)
        append(bytes, *entry.data_digest);
}

// Reads a directory from front to back. Everything is checked against `rest` before it is touched.
class Cursor {
  public:
    explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    template <typename T>
    T take() {
        return load<T>(take_bytes(sizeof(T)), 0);
    }

    std::span<const std::uint8_t> take_bytes(std::size_t count) {
        if (count > bytes_.size() - position_) {
            throw Error(ErrorCode::corrupt_file, "is cut off");
        }
        position_ += count;
        return bytes_.subspan(position_ - count, count);
    }

    std::string take_text(std::size_t count) {
        const auto taken = take_bytes(count);
        return {taken.begin(), taken.end()};
    }

    std::size_t position() const { return position_; }
    bool at_end() const { return position_ == bytes_.size(); }

  private:
    std::span<const std::uint8_t> bytes_;
    std::size_t position_ = 0;
};

void require(bool condition, const char* what) {
    if (!condition)
        throw Error(ErrorCode::corrupt_file, what);
}

std::optional<std::uint64_t> take_optional_number(Cursor& cursor, const char* what) {
    const auto stored = cursor.take<std::uint64_t>();
    require(stored <= layout::max_iteration + 1, what);
    return stored == 0 ? std::nullopt : std::optional(stored - 1);
}

double take_bound(Cursor& cursor) {
    const auto bits = cursor.take<std::uint64_t>();
    // What else is wrong with a bound, TreeParameters says.
    require(bits >> 63 == 0, "has a negative error bound");
    return std::bit_cast<double>(bits);
}

// Up to the point where a name is known that errors can be reported by.
void take_key(Cursor& cursor, DirectoryEntry& entry) {
    std::string name = cursor.take_text(cursor.take<std::uint16_t>());
    if (const auto fault = name_fault(name)) {
        throw Error(ErrorCode::corrupt_file, "has a name that " + *fault);
    }
    entry.name = std::move(name);
    entry.iteration = take_optional_number(cursor, "has an iteration beyond 2^63 - 1");
    entry.rank = take_optional_number(cursor, "has a rank beyond 2^63 - 1");
}

void take_description(Cursor& cursor, DirectoryEntry& entry, std::uint32_t version) {
    StatedParameters parameters;
    parameters.dtype = cursor.take_text(cursor.take<std::uint8_t>());
    const auto dimensions = cursor.take<std::uint8_t>();
    for (unsigned i = 0; i < dimensions; ++i)
        entry.shape.push_back(cursor.take<std::uint64_t>());
    parameters.atol = take_bound(cursor);
    parameters.rtol = take_bound(cursor);
    parameters.ulps = cursor.take<std::uint64_t>();
    parameters.chunk_bytes = cursor.take<std::uint32_t>();
    parameters.arity = cursor.take<std::uint16_t>();
    parameters.residue_levels = cursor.take<std::uint8_t>();
    entry.levels = cursor.take<std::uint8_t>();
    const auto flags = cursor.take<std::uint8_t>();
    const int known = layout::flag_equal_nan | layout::flag_data |
                      (version > layout::first_version ? layout::flag_summaries : 0);
    require((flags & ~known) == 0, "has unknown flags");
    parameters.equal_nan = (flags & layout::flag_equal_nan) != 0;
    const auto fills = cursor.take<std::uint8_t>();
    for (unsigned i = 0; i < fills; ++i) {
        parameters.fill_bits.push_back(cursor.take<std::uint64_t>());
    }
    entry.tree_root = cursor.take<Digest>();
    if (entry.levels > 1)
        entry.residues_digest = cursor.take<Digest>();
    if ((flags & layout::flag_summaries) != 0)
        entry.summaries_digest = cursor.take<Digest>();
    if ((flags & layout::flag_data) != 0)
        entry.data_digest = cursor.take<Digest>();

    // Earlier writers stated bounds that mean nothing for the dtype; the root is of what is stated.
    entry.parameters = TreeParameters(std::move(parameters));
    const QuantizePlan plan = make_plan(entry.parameters);
    require(static_cast<std::uint32_t>(plan.levels) == entry.levels,
            "has residue levels that do not follow from its parameters");
    require(!entry.summaries_digest || can_have_summaries(entry.parameters),
            "has summaries of codes that have none");
    require(fill_values_are_canonical(entry.parameters),
            "has a fill value that is not in canonical form");
}

void take_sections(Cursor& cursor, DirectoryEntry& entry) {
    const DecodedSizes sizes = decoded_sizes(entry);
    const std::array<bool, layout::section_count> present{
        sizes.crown_bytes > 0, sizes.lower_bytes > 0, entry.residues_digest.has_value(),
        entry.summaries_digest.has_value(), entry.data_digest.has_value()};
    for (std::size_t section = 0; section < layout::section_count; ++section) {
        if (!present[section])
            continue;
        SectionRecord record;
        record.stored_bytes = cursor.take<std::uint64_t>();
        record.digest = cursor.take<Digest>();
        entry.sections[section] = record;
    }
    const auto fits = [&](layout::Section section, std::uint64_t bytes) {
        return !entry.sections[section] || entry.sections[section]->stored_bytes == bytes;
    };
    require(fits(layout::crown, sizes.crown_bytes) && fits(layout::lower, sizes.lower_bytes),
            "has a tree whose length does not follow from its shape");
}

}  // namespace

Digest digest_of(std::span<const std::uint8_t> bytes) {
    return xxh3_128(std::as_bytes(bytes));
}

std::string variable_label(const std::string& name, const std::optional<std::uint64_t>& iteration,
                           const std::optional<std::uint64_t>& rank) {
    std::string where;
    if (iteration)
        where = "iteration " + std::to_string(*iteration);
    if (rank)
        where += (where.empty() ? "rank " : ", rank ") + std::to_string(*rank);
    return "variable '" + printable(name) + "'" + (where.empty() ? "" : " (" + where + ")");
}

void refuse_file(const std::string& source, const std::string& what) {
    throw Error(ErrorCode::corrupt_file, printable(source + ": " + what));
}

std::uint64_t scalars_in(std::span<const std::uint64_t> shape, const DataType& type) {
    if (shape.size() > layout::max_dimensions) {
        throw Error(ErrorCode::invalid_argument, "more than 64 dimensions");
    }
    std::uint64_t bytes = type.element_bytes();
    bool empty = false;
    for (const std::uint64_t dimension : shape) {
        empty = empty || dimension == 0;
        const bool overflow =
            __builtin_mul_overflow(bytes, std::max<std::uint64_t>(dimension, 1), &bytes);
        if (overflow || bytes > layout::max_array_bytes) {
            throw Error(ErrorCode::invalid_argument, "a shape of more than 2^62 bytes");
        }
    }
    return empty ? 0 : bytes / type.scalar_bytes;
}

DecodedSizes decoded_sizes(const DirectoryEntry& entry) {
    const DataType type = entry.parameters.data_type();
    DecodedSizes sizes;
    sizes.scalar_count = scalars_in(entry.shape, type);
    sizes.data_bytes = sizes.scalar_count * type.scalar_bytes;
    sizes.residue_bytes = make_plan(entry.parameters).total_residue_bytes(sizes.scalar_count);
    const std::uint64_t leaves = entry.parameters.leaf_count(sizes.scalar_count);
    sizes.summary_bytes = leaves * sizeof(ChunkSummary);
    const TreeShape shape(leaves, entry.parameters.arity());
    for (std::size_t level = 1; level < shape.level_count(); ++level) {
        const std::uint64_t bytes = shape.count(level) * sizeof(Digest);
        (shape.count(level) <= layout::crown_nodes ? sizes.crown_bytes : sizes.lower_bytes) +=
            bytes;
    }
    return sizes;
}

bool can_have_summaries(const TreeParameters& parameters) {
    return make_plan(parameters).kind != CodeKind::exact;
}

bool fill_values_are_canonical(const TreeParameters& parameters) {
    const DataType type = parameters.data_type();
    if (!is_float(type.scalar))
        return true;
    const int mantissa = type.scalar == ScalarType::float64    ? 52
                         : type.scalar == ScalarType::float32  ? 23
                         : type.scalar == ScalarType::bfloat16 ? 7
                                                               : 10;
    const std::uint64_t sign = std::uint64_t{1} << (8 * type.scalar_bytes - 1);
    const std::uint64_t infinity = (sign - 1) >> mantissa << mantissa;
    const std::uint64_t canonical_nan = infinity | (std::uint64_t{1} << (mantissa - 1));
    return std::all_of(parameters.fill_bits().begin(), parameters.fill_bits().end(),
                       [&](std::uint64_t bits) {
                           const bool is_nan = (bits & (sign - 1)) > infinity;
                           return bits != sign && (!is_nan || bits == canonical_nan);
                       });
}

bool comes_before(const DirectoryEntry& a, const DirectoryEntry& b) {
    const auto key = [](const DirectoryEntry& entry) {
        return std::tuple(optional_number(entry.iteration), optional_number(entry.rank),
                          std::string_view(entry.name));
    };
    return key(a) < key(b);
}

std::vector<std::uint8_t> encode_directory(std::span<const DirectoryEntry> entries, Digest& root) {
    Bytes directory;
    Bytes described;
    append(directory, static_cast<std::uint32_t>(entries.size()));
    described = directory;
    for (const DirectoryEntry& entry : entries) {
        const std::size_t start = directory.size();
        append_description(directory, entry);
        described.insert(described.end(), directory.begin() + static_cast<std::ptrdiff_t>(start),
                         directory.end());
        for (const auto& section : entry.sections) {
            if (!section)
                continue;
            append(directory, section->stored_bytes);
            append(directory, section->digest);
        }
    }
    root = digest_of(described);
    return directory;
}

Directory decode_directory(const Header& header, std::span<const std::uint8_t> bytes,
                           const std::string& source) {
    if (digest_of(bytes) != header.directory_digest) {
        refuse_file(source, "is damaged: its directory does not have the checksum it should have");
    }
    Directory directory;
    Cursor cursor(bytes);
    Bytes described(bytes.begin(), bytes.begin() + std::min<std::ptrdiff_t>(4, std::ssize(bytes)));
    std::uint32_t count = 0;
    std::uint32_t index = 0;
    std::string where = "its directory";
    try {
        count = cursor.take<std::uint32_t>();
        require(count > 0, "holds no variables");
        for (; index < count; ++index) {
            DirectoryEntry entry;
            where = "variable number " + std::to_string(index + 1);
            const std::size_t start = cursor.position();
            take_key(cursor, entry);
            where = variable_label(entry.name, entry.iteration, entry.rank);
            take_description(cursor, entry, header.version);
            const auto description = bytes.subspan(start, cursor.position() - start);
            described.insert(described.end(), description.begin(), description.end());
            take_sections(cursor, entry);
            const bool ordered =
                directory.entries.empty() || comes_before(directory.entries.back(), entry);
            const bool twice = !ordered && !comes_before(entry, directory.entries.back());
            require(!twice, "is listed twice");
            require(ordered, "is not in its place in the order of variables");
            directory.entries.push_back(std::move(entry));
        }
        where = "its directory";
        require(cursor.at_end(), "goes on after its last variable");
        require(header.version == layout::first_version ||
                    std::any_of(
                        directory.entries.begin(), directory.entries.end(),
                        [](const DirectoryEntry& one) { return one.summaries_digest.has_value(); }),
                "is of a later format than its variables need");
    } catch (const Error& error) {
        const bool clause = error.code() == ErrorCode::corrupt_file;
        refuse_file(source,
                    "is corrupt: " + where + (clause ? " " : " is invalid: ") + error.what());
    }
    directory.root = digest_of(described);
    if (directory.root != header.root) {
        refuse_file(source, "is corrupt: its root is not that of its variables");
    }
    return directory;
}

}  // namespace ciwrap
