// compare_texts: two texts, token by token. scan_table, read_table: rows of numbers in a text.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/py_tree.hpp"
#include "text/ignored_text.hpp"
#include "text/text_compare.hpp"
#include "text/text_places.hpp"
#include "text/text_table.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace ciwrap {
namespace {

// A side as Python gives it: a path, or an object with the bytes and a name for messages.
struct Side {
    std::unique_ptr<PyBytes> bytes;
    std::unique_ptr<TextSource> text;
};

Side make_side(const py::object& object, ReadEngine& engine, const std::string& name) {
    Side side;
    if (PyObject_CheckBuffer(object.ptr()) != 0) {
        side.bytes = std::make_unique<PyBytes>(object);
        side.text = std::make_unique<HeldText>(side.bytes->bytes(), name);
    } else {
        side.text =
            std::make_unique<FileText>(engine, object.cast<std::filesystem::path>().native());
    }
    return side;
}

py::dict place_dict(const TextPlace& place) {
    return py::dict("line"_a = place.line, "column"_a = place.column,
                    "text"_a = py::bytes(place.text));
}

// Of IgnoredSets, or of `ignored_place`.
py::str name_of(unsigned set) {
    for (const NamedIgnoredSet& one : named_ignored_sets)
        if (one.set == set)
            return std::string(one.name);
    return "ignore_places";
}

py::list names_of(unsigned sets) {
    py::list names;
    for (const NamedIgnoredSet& one : named_ignored_sets)
        if ((sets & one.set) != 0)
            names.append(py::str(std::string(one.name)));
    return names;
}

py::list number_rows(const std::vector<NumberGroup>& groups) {
    py::list rows;
    for (const NumberGroup& one : groups)
        rows.append(py::dict(
            "template"_a = py::bytes(one.line_template), "number"_a = one.number,
            "count"_a = one.count, "golden"_a = place_dict(one.golden),
            "new"_a = place_dict(one.value), "max_abs_difference"_a = one.max_abs_difference,
            "max_bound_share"_a = one.max_bound_share, "is_part"_a = one.is_part,
            "remedies"_a = names_of(one.remedies), "place"_a = py::bytes(one.place)));
    return rows;
}

py::list line_rows(const std::vector<LineGroup>& groups) {
    py::list rows;
    const auto place = [](std::uint64_t count, const TextPlace& one) -> py::object {
        return count > 0 ? py::object(place_dict(one)) : py::none();
    };
    for (const LineGroup& one : groups)
        rows.append(py::dict(
            "template"_a = py::bytes(one.line_template), "golden_count"_a = one.golden_count,
            "new_count"_a = one.value_count, "golden"_a = place(one.golden_count, one.golden),
            "new"_a = place(one.value_count, one.value), "remedies"_a = names_of(one.remedies)));
    return rows;
}

py::list masked_rows(const std::vector<MaskedGroup>& groups) {
    py::list rows;
    for (const MaskedGroup& one : groups)
        rows.append(py::dict("by"_a = name_of(one.set), "template"_a = py::bytes(one.line_template),
                             "line_count"_a = one.line_count, "number_count"_a = one.number_count,
                             "golden"_a = place_dict(one.golden), "new"_a = place_dict(one.value)));
    return rows;
}

py::list left_out_rows(const std::vector<LinesLeftOut>& patterns) {
    py::list rows;
    for (const LinesLeftOut& one : patterns)
        rows.append(py::make_tuple(one.golden_count, one.value_count, one.number_count));
    return rows;
}

py::dict side_dict(const TextSide& side) {
    return py::dict("byte_count"_a = side.byte_count, "line_count"_a = side.line_count,
                    "unpaired_lines"_a = side.unpaired_lines,
                    "ignored_lines"_a = side.ignored_lines,
                    "unread_numbers"_a = side.unread_numbers, "is_utf8"_a = side.is_utf8);
}

py::dict as_dict(const TextComparison& found) {
    return py::dict("golden"_a = side_dict(found.golden), "new"_a = side_dict(found.value),
                    "pair_count"_a = found.pair_count, "number_count"_a = found.number_count,
                    "differing_count"_a = found.differing_count,
                    "ignored_count"_a = found.ignored_count,
                    "ignored_line_numbers"_a = found.ignored_line_numbers,
                    "nan_mismatch_count"_a = found.nan_mismatch_count,
                    "inf_mismatch_count"_a = found.inf_mismatch_count,
                    "max_abs_difference"_a = found.max_abs_difference,
                    "max_rel_difference"_a = found.max_rel_difference,
                    "max_bound_share"_a = found.max_bound_share,
                    "number_groups"_a = number_rows(found.number_groups),
                    "number_group_count"_a = found.number_group_count,
                    "masked_groups"_a = masked_rows(found.masked_groups),
                    "masked_group_count"_a = found.masked_group_count,
                    "lines_left_out"_a = left_out_rows(found.lines_left_out),
                    "line_groups"_a = line_rows(found.line_groups),
                    "line_group_count"_a = found.line_group_count);
}

unsigned sets_of(const std::vector<std::string>& names) {
    unsigned sets = 0;
    for (const std::string& name : names)
        sets |= ignored_set(name);
    return sets;
}

using Range = std::pair<std::uint64_t, std::uint64_t>;
// A place, or no text for whole lines, and lines of either side.
using SectionRow = std::tuple<std::string, std::vector<Range>, std::vector<Range>>;

std::vector<LineRange> ranges_of(const std::vector<Range>& given) {
    std::vector<LineRange> ranges;
    ranges.reserve(given.size());
    for (const auto& [first, last] : given)
        ranges.push_back({first, last});
    return ranges;
}

LeftOutRules rules_of(const std::vector<std::string>& ignore, std::vector<std::string> lines,
                      std::vector<std::string> places, const std::vector<SectionRow>& sections) {
    LeftOutRules rules{sets_of(ignore), std::move(places), std::move(lines), {}};
    for (const auto& [place, golden, value] : sections)
        rules.sections.push_back({place, {ranges_of(golden), ranges_of(value)}});
    return rules;
}

py::dict compare(const py::object& golden, const py::object& value, double atol, double rtol,
                 bool equal_nan, const std::vector<std::string>& ignore,
                 const std::vector<std::string>& ignore_lines,
                 const std::vector<std::string>& ignore_places,
                 const std::vector<SectionRow>& sections, std::size_t window_bytes,
                 const std::string& engine_name) {
    TextOptions options;
    options.bound = {atol, rtol, equal_nan};
    options.left_out = rules_of(ignore, ignore_lines, ignore_places, sections);
    options.window_bytes = window_bytes;
    ReadEngine engine({.kind = parse_engine_kind(engine_name)});
    const Side ours = make_side(golden, engine, "the golden text");
    const Side theirs = make_side(value, engine, "the new text");
    TextComparison found;
    {
        const py::gil_scoped_release released;
        found = compare_texts(*ours.text, *theirs.text, options, check_signals);
    }
    return as_dict(found);
}

py::list places(const py::object& text, const std::vector<std::string>& ignore,
                const std::vector<std::string>& ignore_lines,
                const std::vector<std::string>& ignore_places,
                const std::vector<SectionRow>& sections, std::size_t most) {
    const PyBytes bytes(text);
    const std::span<const std::byte> held = bytes.bytes();
    const std::string_view view(reinterpret_cast<const char*>(held.data()), held.size());
    const LeftOut left_out(rules_of(ignore, ignore_lines, ignore_places, sections));
    py::list rows;
    for (const NumberPlace& one : number_places(view, left_out, most)) {
        py::object by = py::none();
        if (one.line_rule < ignore_lines.size())
            by = py::str("ignore_lines");
        else if (one.line_rule < left_out.line_rules())
            by = name_of(ignored_place);
        else if (one.set != 0)
            by = name_of(one.set);
        rows.append(py::dict("template"_a = py::bytes(one.line_template), "number"_a = one.number,
                             "line"_a = one.line, "offset"_a = one.offset, "size"_a = one.size,
                             "left_out_by"_a = by, "is_part"_a = one.is_part));
    }
    return rows;
}

TableForm form_of(const std::string& delimiter, std::vector<std::string> comments) {
    return {delimiter.empty() ? '\0' : delimiter[0], std::move(comments)};
}

py::object scan(std::string_view lines, const std::string& delimiter,
                std::vector<std::string> comments, const std::vector<bool>& is_known) {
    const TableForm form = form_of(delimiter, std::move(comments));
    std::optional<TableFacts> found;
    {
        const py::gil_scoped_release released;
        found = scan_table(lines, form, is_known);
    }
    if (!found)
        return py::none();
    py::list columns;
    for (const ColumnFacts& one : found->columns)
        columns.append(py::make_tuple(one.is_whole, one.is_number, one.is_empty, one.longest_cell));
    return py::make_tuple(found->row_count, columns);
}

template <typename T>
std::span<T> elements_of(const py::handle& array) {
    auto held = array.cast<py::array_t<T, py::array::c_style>>();
    return {held.mutable_data(), static_cast<std::size_t>(held.size())};
}

ColumnTarget target_of(const py::handle& array, std::size_t most_rows) {
    ColumnTarget target;
    if (py::isinstance<py::array_t<std::int64_t>>(array))
        target.wholes = elements_of<std::int64_t>(array);
    else if (py::isinstance<py::array_t<double>>(array))
        target.doubles = elements_of<double>(array);
    else if (py::isinstance<py::array_t<std::uint32_t>>(array))
        target.texts = elements_of<std::uint32_t>(array);
    target.width = target.texts.size() / most_rows;
    const std::size_t size = target.wholes.size() + target.doubles.size() + target.texts.size();
    if (size == 0 || size % most_rows != 0)
        throw Error(ErrorCode::invalid_argument, "a column has no place for each row");
    return target;
}

// The arrays are filled in place; see ColumnTarget.
std::optional<std::size_t> read(std::string_view lines, const std::string& delimiter,
                                std::vector<std::string> comments, std::size_t most_rows,
                                const py::list& arrays) {
    if (most_rows == 0)
        throw Error(ErrorCode::invalid_argument, "a table is read by the row");
    const TableForm form = form_of(delimiter, std::move(comments));
    std::vector<ColumnTarget> targets;
    for (const py::handle& array : arrays)
        targets.push_back(target_of(array, most_rows));
    const py::gil_scoped_release released;
    return read_table(lines, form, targets, most_rows);
}

}  // namespace

void register_text(py::module_& module) {
    module.def("compare_texts", &compare, py::arg("golden"), py::arg("new"), py::kw_only(),
               py::arg("atol") = 0.0, py::arg("rtol") = 0.0, py::arg("equal_nan") = true,
               py::arg("ignore") = std::vector<std::string>{},
               py::arg("ignore_lines") = std::vector<std::string>{},
               py::arg("ignore_places") = std::vector<std::string>{},
               py::arg("sections") = std::vector<SectionRow>{},
               py::arg("window_bytes") = std::size_t{8} << 20, py::arg("engine") = "auto");
    module.def("text_places", &places, py::arg("text"), py::kw_only(),
               py::arg("ignore") = std::vector<std::string>{},
               py::arg("ignore_lines") = std::vector<std::string>{},
               py::arg("ignore_places") = std::vector<std::string>{},
               py::arg("sections") = std::vector<SectionRow>{},
               py::arg("most") = std::size_t{1} << 16);
    module.def("scan_table", &scan, py::arg("lines"), py::arg("delimiter"), py::arg("comments"),
               py::arg("is_known"));
    module.def("read_table", &read, py::arg("lines"), py::arg("delimiter"), py::arg("comments"),
               py::arg("most_rows"), py::arg("columns"));
    module.attr("ignored_text_sets") = py::tuple(names_of(ignore_all));
}

}  // namespace ciwrap
