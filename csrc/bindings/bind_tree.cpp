// Tree, cell_codes, diff_trees, diff_leaves.
#include <algorithm>
#include <cstring>
#include <optional>

#include "bindings/py_tree.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/solve.hpp"
#include "kernels/executor.hpp"
#include "kernels/packed_residues.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

using ByteArray = py::array_t<std::uint8_t, py::array::c_style>;

// A read-only view of memory that `owner` keeps alive.
py::array view(std::vector<py::ssize_t> shape, const std::uint8_t* data, const py::object& owner) {
    py::array array(py::dtype::of<std::uint8_t>(), std::move(shape), data, owner);
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return array;
}

py::array digest_view(const py::object& self, std::uint64_t first, std::uint64_t count) {
    const MerkleTree& tree = *self.cast<const PyTree&>().tree;
    return view({static_cast<py::ssize_t>(count), 16}, tree.digests[first].bytes.data(), self);
}

py::object residues(const py::object& self) {
    const MerkleTree& tree = *self.cast<const PyTree&>().tree;
    if (tree.residues.empty())
        return py::none();
    return view({static_cast<py::ssize_t>(tree.residues.size())}, tree.residues.data(), self);
}

PyTree from_parts(const TreeParameters& parameters, std::uint64_t scalar_count,
                  const ByteArray& leaves, const std::optional<ByteArray>& packed) {
    const QuantizePlan plan = make_plan(parameters);
    MerkleTree tree{parameters, scalar_count, {}, {}};
    const TreeShape shape = tree.shape();
    if (leaves.ndim() != 2 || leaves.shape(1) != 16 ||
        static_cast<std::uint64_t>(leaves.shape(0)) != shape.leaf_count()) {
        throw Error(ErrorCode::invalid_argument, "leaf_digests must be of shape (" +
                                                     std::to_string(shape.leaf_count()) + ", 16)");
    }
    tree.digests.resize(shape.node_count());
    std::memcpy(tree.digests.data() + shape.offset(shape.level_count() - 1), leaves.data(),
                static_cast<std::size_t>(leaves.nbytes()));
    if (packed) {
        if (static_cast<std::uint64_t>(packed->size()) != plan.total_residue_bytes(scalar_count)) {
            throw Error(ErrorCode::invalid_argument,
                        "residues must be " +
                            std::to_string(plan.total_residue_bytes(scalar_count)) +
                            " packed bytes");
        }
        tree.residues.assign(packed->data(), packed->data() + packed->size());
    }
    build_upper_levels(shape, resolve_execution("auto", 0), tree.digests);
    return {std::make_shared<const MerkleTree>(std::move(tree))};
}

ByteArray leaf_residues(const PyTree& self, std::uint64_t leaf) {
    const MerkleTree& tree = *self.tree;
    const QuantizePlan plan = make_plan(tree.parameters);
    if (tree.residues.empty())
        throw Error(ErrorCode::invalid_argument, "this tree has no residues");
    if (leaf >= tree.leaf_count())
        throw py::index_error("no such leaf");
    const std::uint64_t first = leaf * plan.chunk_scalars;
    const std::uint64_t count = std::min(plan.chunk_scalars, tree.scalar_count - first);
    ByteArray unpacked(static_cast<py::ssize_t>(count));
    unpack_residues(plan, tree.residues.data() + leaf * plan.residue_bytes(plan.chunk_scalars),
                    count, unpacked.mutable_data());
    return unpacked;
}

py::tuple cell_codes(const TreeParameters& parameters, const py::object& data,
                     const std::optional<ByteArray>& golden_residues) {
    const QuantizePlan plan = make_plan(parameters);
    const PyBytes held(data);
    const std::uint64_t count = held.bytes().size() / plan.scalar_bytes;
    if (held.bytes().size() % plan.scalar_bytes != 0) {
        throw Error(ErrorCode::invalid_argument, "the data are not a whole number of scalars");
    }
    const bool against = golden_residues.has_value() && plan.has_residues();
    if (against && static_cast<std::uint64_t>(golden_residues->size()) != count) {
        throw Error(ErrorCode::invalid_argument, "golden_residues must be one per scalar");
    }
    ByteArray codes(static_cast<py::ssize_t>(count * plan.code_bytes));
    ByteArray unpacked(static_cast<py::ssize_t>(plan.has_residues() ? count : 0));
    if (against)
        std::copy_n(golden_residues->data(), count, unpacked.mutable_data());
    level_kernels().encode(plan, reinterpret_cast<const std::uint8_t*>(held.bytes().data()), count,
                           codes.mutable_data(), unpacked.mutable_data(), against);
    py::object typed = codes;
    if (plan.kind != CodeKind::exact)
        typed = codes.attr("view")(plan.code_bytes == 4 ? "<i4" : "<i8");
    return py::make_tuple(typed,
                          plan.has_residues() && !against ? py::object(unpacked) : py::none());
}

py::array_t<std::int64_t> diff(const PyTree& golden, const PyTree& other,
                               std::int64_t start_level) {
    std::vector<std::uint64_t> leaves;
    {
        const py::gil_scoped_release released;
        leaves = diff_trees(*golden.tree, *other.tree, start_level, resolve_execution("auto", 0));
    }
    return as_array(leaves);
}

py::list solve(const PyTree& golden, std::uint64_t leaf, const py::object& data,
               std::uint64_t most_trials) {
    const MerkleTree& tree = *golden.tree;
    if (leaf >= tree.leaf_count())
        throw py::index_error("no such leaf");
    const QuantizePlan plan = make_plan(tree.parameters);
    const std::uint64_t count =
        std::min(plan.chunk_scalars, tree.scalar_count - leaf * plan.chunk_scalars);
    const PyBytes held(data);
    if (held.bytes().size() != count * plan.scalar_bytes)
        throw Error(ErrorCode::invalid_argument, "the data are not those of the block");
    const TreeShape shape = tree.shape();
    std::vector<MovedScalar> moved;
    {
        const py::gil_scoped_release released;
        std::span<const std::uint8_t> residues;
        if (!tree.residues.empty()) {
            residues = {tree.residues.data() + leaf * plan.residue_bytes(plan.chunk_scalars),
                        static_cast<std::size_t>(plan.residue_bytes(count))};
        }
        moved = solve_chunk(tree.parameters, held.bytes(),
                            tree.digests[shape.offset(shape.level_count() - 1) + leaf], residues,
                            {most_trials});
    }
    py::list found;
    for (const MovedScalar& one : moved)
        found.append(py::make_tuple(one.index, one.golden_code, one.residue));
    return found;
}

py::array_t<std::int64_t> summarize(const TreeParameters& parameters, const py::object& data,
                                    const std::optional<PyTree>& golden, std::uint64_t first_leaf) {
    const PyBytes held(data);
    std::vector<ChunkSummary> found;
    {
        const py::gil_scoped_release released;
        found = summarize_chunks(parameters, held.bytes(), golden ? golden->tree.get() : nullptr,
                                 first_leaf);
    }
    return as_rows(found);
}

using Rows = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

std::span<const ChunkSummary> summaries_of(const Rows& rows) {
    if (rows.ndim() != 2 || static_cast<std::size_t>(rows.shape(1)) != summary_numbers)
        throw Error(ErrorCode::invalid_argument, "summaries must be of shape (blocks, 10)");
    return {reinterpret_cast<const ChunkSummary*>(rows.data()),
            static_cast<std::size_t>(rows.shape(0))};
}

py::tuple shares_between(const TreeParameters& parameters, std::uint64_t scalar_count,
                         const Rows& leaves, const Rows& golden, const Rows& other) {
    const std::vector<std::uint64_t> chunks(leaves.data(), leaves.data() + leaves.size());
    const std::vector<LeastShare> found =
        least_shares(parameters, scalar_count, chunks, summaries_of(golden), summaries_of(other));
    py::array_t<double> shares(static_cast<py::ssize_t>(found.size()));
    py::array_t<bool> have_sizes(static_cast<py::ssize_t>(found.size()));
    for (std::size_t at = 0; at < found.size(); ++at) {
        shares.mutable_data()[at] = found[at].share;
        have_sizes.mutable_data()[at] = found[at].has_size;
    }
    return py::make_tuple(shares, have_sizes);
}

std::vector<Digest> digests_of(const py::object& data) {
    const PyBytes held(data);
    if (held.bytes().size() % sizeof(Digest) != 0)
        throw Error(ErrorCode::invalid_argument, "digests must be 16 bytes each");
    std::vector<Digest> digests(held.bytes().size() / sizeof(Digest));
    if (!digests.empty())
        std::memcpy(digests.data(), held.bytes().data(), held.bytes().size());
    return digests;
}

}  // namespace

void register_tree(py::module_& module) {
    py::class_<PyTree>(module, "Tree")
        .def_property_readonly("parameters", [](const PyTree& t) { return t.tree->parameters; })
        .def_property_readonly("scalar_count", [](const PyTree& t) { return t.tree->scalar_count; })
        .def_property_readonly("leaf_count", [](const PyTree& t) { return t.tree->leaf_count(); })
        .def_property_readonly(
            "level_counts",
            [](const PyTree& t) { return py::tuple(py::cast(t.tree->shape().counts())); })
        .def_property_readonly("root", [](const PyTree& t) { return digest_bytes(t.tree->root()); })
        .def_property_readonly("digests",
                               [](const py::object& self) {
                                   return digest_view(
                                       self, 0, self.cast<const PyTree&>().tree->digests.size());
                               })
        .def_property_readonly("leaf_digests",
                               [](const py::object& self) {
                                   const TreeShape shape = self.cast<const PyTree&>().tree->shape();
                                   return digest_view(self, shape.offset(shape.level_count() - 1),
                                                      shape.leaf_count());
                               })
        .def_property_readonly("residues", &residues)
        .def_static("from_parts", &from_parts, py::arg("parameters"), py::arg("scalar_count"),
                    py::arg("leaf_digests"), py::arg("residues") = py::none())
        .def("leaf_residues", &leaf_residues, py::arg("leaf"));
    module.def("cell_codes", &cell_codes, py::arg("parameters"), py::arg("data"),
               py::arg("golden_residues") = py::none());
    module.def("diff_trees", &diff, py::arg("golden"), py::arg("new"), py::kw_only(),
               py::arg("start_level") = -1);
    module.def("solve_chunk", &solve, py::arg("golden"), py::arg("leaf"), py::arg("data"),
               py::kw_only(), py::arg("most_trials") = SolveLimits{}.most_trials);
    module.def("summarize_chunks", &summarize, py::arg("parameters"), py::arg("data"),
               py::kw_only(), py::arg("golden") = py::none(), py::arg("first_leaf") = 0);
    module.def("least_share", &least_share, py::arg("parameters"), py::arg("codes_apart"));
    module.def("least_shares", &shares_between, py::arg("parameters"), py::arg("scalar_count"),
               py::arg("leaves"), py::arg("golden"), py::arg("other"));
    module.def(
        "diff_leaves",
        [](const py::object& golden, const py::object& other) {
            return as_array(diff_leaves(digests_of(golden), digests_of(other)));
        },
        py::arg("golden"), py::arg("new"));
}

}  // namespace ciwrap
