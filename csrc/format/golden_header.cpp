#include <algorithm>
#include <string>

#include "ciwrap/error.hpp"
#include "format/byte_order.hpp"
#include "format/golden_directory.hpp"
#include "format/text_rules.hpp"

namespace ciwrap {
namespace {

using Front = std::span<const std::uint8_t>;

bool begins_with(Front front, std::string_view text) {
    return front.size() >= text.size() &&
           std::equal(text.begin(), text.end(), front.begin(),
                      [](char expected, std::uint8_t byte) {
                          return static_cast<std::uint8_t>(expected) == byte;
                      });
}

// What people do to files by accident deserves a better answer than "wrong magic".
void check_magic(Front front, const std::string& source) {
    if (front.empty())
        refuse_file(source, "is empty; restore it from version control");
    if (std::equal(layout::magic.begin(), layout::magic.end(), front.begin(),
                   front.begin() + std::min<std::ptrdiff_t>(8, std::ssize(front)))) {
        return;
    }
    if (begins_with(front, "version https://git-lfs")) {
        refuse_file(source, "is a Git LFS pointer, not the golden file itself: run 'git lfs pull'");
    }
    if (begins_with(front,
                    "\x89"
                    "CIW\n") ||
        begins_with(front,
                    "\x89"
                    "CIW\r\r\n")) {
        refuse_file(source,
                    "was changed by a conversion of line endings: restore it, and mark goldens as "
                    "binary in .gitattributes");
    }
    if (front.size() < layout::magic.size() &&
        std::equal(front.begin(), front.end(), layout::magic.begin())) {
        refuse_file(source, "is truncated: it has only " + std::to_string(front.size()) + " bytes");
    }
    refuse_file(source, "is not a golden file (its first bytes are wrong)");
}

}  // namespace

std::array<std::uint8_t, layout::header_bytes> encode_header(const Header& header) {
    std::vector<std::uint8_t> bytes(layout::magic.begin(), layout::magic.end());
    append(bytes, header.version);
    append(bytes, layout::hash_xxh3_128);
    append(bytes, header.file_bytes);
    append(bytes, header.directory_bytes);
    append(bytes, header.root);
    append(bytes, header.directory_digest);
    append(bytes, digest_of(bytes));
    std::array<std::uint8_t, layout::header_bytes> out{};
    std::copy_n(bytes.begin(), out.size(), out.begin());
    return out;
}

Header decode_header(std::span<const std::uint8_t> front, const std::string& source) {
    check_magic(front, source);
    if (front.size() < layout::header_bytes) {
        refuse_file(source, "is truncated: it has " + std::to_string(front.size()) +
                                " bytes, its header alone takes " +
                                std::to_string(layout::header_bytes));
    }
    if (load<Digest>(front, layout::header_digest_offset) !=
        digest_of(front.first(layout::header_digest_offset))) {
        refuse_file(source, "is damaged: its header does not have the checksum it should have");
    }
    const auto version = load<std::uint32_t>(front, layout::version_offset);
    if (version == 0)
        refuse_file(source, "is corrupt: there is no format 0");
    if (version > layout::format_version) {
        throw Error(ErrorCode::unsupported,
                    printable(source + ": was written by a newer ciwrap (format " +
                              std::to_string(version) + "); this one reads up to " +
                              std::to_string(layout::format_version) + ": upgrade ciwrap"));
    }
    const auto hash = load<std::uint32_t>(front, layout::hash_offset);
    if (hash != layout::hash_xxh3_128) {
        throw Error(ErrorCode::unsupported,
                    printable(source + ": uses hash number " + std::to_string(hash) +
                              ", which this ciwrap does not know"));
    }
    Header header;
    header.version = version;
    header.file_bytes = load<std::uint64_t>(front, layout::file_bytes_offset);
    header.directory_bytes = load<std::uint64_t>(front, layout::directory_bytes_offset);
    header.root = load<Digest>(front, layout::root_offset);
    header.directory_digest = load<Digest>(front, layout::directory_digest_offset);
    return header;
}

void check_length(const Header& header, std::uint64_t file_bytes, const std::string& source) {
    if (file_bytes < header.file_bytes) {
        refuse_file(source, "is truncated: it has " + std::to_string(file_bytes) + " of " +
                                std::to_string(header.file_bytes) + " bytes");
    }
    if (file_bytes > header.file_bytes) {
        refuse_file(source, "is corrupt: it has " + std::to_string(file_bytes - header.file_bytes) +
                                " bytes after its end at byte " +
                                std::to_string(header.file_bytes));
    }
    if (header.directory_bytes > layout::max_directory_bytes ||
        header.directory_bytes > file_bytes - layout::header_bytes) {
        refuse_file(source, "is corrupt: its header gives a directory of " +
                                std::to_string(header.directory_bytes) + " bytes");
    }
}

}  // namespace ciwrap
