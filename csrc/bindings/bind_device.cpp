// DeviceArray: arrays of other libraries, by DLPack or by address.
#include <algorithm>
#include <optional>
#include <utility>

#include "bindings/dlpack_abi.hpp"
#include "bindings/py_device.hpp"
#include "bindings/py_tree.hpp"
#include "kernels/executor.hpp"

namespace py = pybind11;

namespace ciwrap {

bool PyDeviceArray::is_on_host() const {
    return device_type == dlpack::cpu || device_type == dlpack::cuda_host ||
           device_type == dlpack::rocm_host;
}

namespace {

std::string dtype_of(const dlpack::Tensor& tensor) {
    const std::string size = std::to_string(tensor.type_bits / 8);
    const std::string order = tensor.type_bits == 8 ? "|" : "<";
    if (tensor.type_lanes == 1) {
        switch (tensor.type_code) {
            case dlpack::signed_integer:
                return order + "i" + size;
            case dlpack::unsigned_integer:
                return order + "u" + size;
            case dlpack::floating:
                if (tensor.type_bits >= 16 && tensor.type_bits <= 64)
                    return order + "f" + size;
                break;
            case dlpack::bfloat:
                if (tensor.type_bits == 16)
                    return "<bf2";
                break;
            case dlpack::complex_floating:
                if (tensor.type_bits == 64 || tensor.type_bits == 128)
                    return order + "c" + size;
                break;
            case dlpack::boolean:
                if (tensor.type_bits == 8)
                    return "|b1";
                break;
            default:
                break;
        }
    }
    throw Error(ErrorCode::unsupported,
                "values of DLPack's type code " + std::to_string(tensor.type_code) + " with " +
                    std::to_string(tensor.type_bits) + " bits and " +
                    std::to_string(tensor.type_lanes) + " lanes have no defined comparison");
}

PyDeviceArray make_array(const void* data, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> strides, const std::string& dtype) {
    PyDeviceArray made;
    const auto item_bytes = static_cast<std::uint32_t>(DataType::parse(dtype).element_bytes());
    made.array = make_device_array(data, shape, strides, item_bytes);
    if (data == nullptr && made.array.element_count > 0)
        throw Error(ErrorCode::invalid_argument, "the array has values, but no memory");
    made.dtype = dtype;
    made.shape = std::move(shape);
    made.strides = std::move(strides);
    return made;
}

template <class Managed>
PyDeviceArray taken(const py::capsule& capsule, const char* name, const char* used_name,
                    std::uintptr_t stream) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (managed == nullptr)
        throw py::error_already_set();
    if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) {
        if (managed->major != 1) {
            throw Error(ErrorCode::unsupported,
                        "DLPack of version " + std::to_string(managed->major));
        }
    }
    const dlpack::Tensor& tensor = managed->tensor;
    const std::string dtype = dtype_of(tensor);
    if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
        throw Error(ErrorCode::invalid_argument, "a DLPack tensor without a shape");
    const auto dimensions = static_cast<std::size_t>(tensor.ndim);
    std::vector<std::int64_t> shape(tensor.shape, tensor.shape + dimensions);
    std::vector<std::int64_t> strides;
    if (tensor.strides != nullptr) {
        for (std::size_t d = 0; d < dimensions; ++d)
            strides.push_back(tensor.strides[d] * (tensor.type_bits / 8));
    }
    const auto* data = static_cast<const std::uint8_t*>(tensor.data);
    if (data != nullptr)
        data += tensor.byte_offset;
    PyDeviceArray made = make_array(data, std::move(shape), std::move(strides), dtype);
    made.device_type = tensor.device_type;
    made.array.device_id = tensor.device_id;
    made.array.stream = stream;
    // From here on it is ours to give back.
    if (PyCapsule_SetName(capsule.ptr(), used_name) != 0)
        throw py::error_already_set();
    made.tensor = std::shared_ptr<void>(managed, [](void* held) {
        auto* ours = static_cast<Managed*>(held);
        if (ours->deleter != nullptr)
            ours->deleter(ours);
    });
    return made;
}

PyDeviceArray from_dlpack(const py::capsule& capsule, std::uintptr_t stream) {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
        return taken<dlpack::ManagedVersioned>(capsule, "dltensor_versioned",
                                               "used_dltensor_versioned", stream);
    }
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0)
        return taken<dlpack::Managed>(capsule, "dltensor", "used_dltensor", stream);
    throw Error(ErrorCode::invalid_argument, "a capsule that is not DLPack's, or is used up");
}

PyDeviceArray from_address(std::uintptr_t address, std::vector<std::int64_t> shape,
                           std::optional<std::vector<std::int64_t>> strides,
                           const std::string& dtype, std::uintptr_t stream, py::object owner) {
    PyDeviceArray made =
        make_array(reinterpret_cast<const void*>(address), std::move(shape),
                   strides ? std::move(*strides) : std::vector<std::int64_t>{}, dtype);
    made.device_type = dlpack::cuda;
    made.array.stream = stream;
    made.owner = std::move(owner);
    return made;
}

// A read-only NumPy array of the same memory; bfloat16 as unsigned integers.
py::array host_view(const py::object& self) {
    const auto& held = self.cast<const PyDeviceArray&>();
    if (!held.is_on_host())
        throw Error(ErrorCode::invalid_argument, "the array is not in the host's memory");
    const py::dtype type(held.dtype == "<bf2" ? "<u2" : held.dtype);
    const std::vector<py::ssize_t> shape(held.shape.begin(), held.shape.end());
    const std::vector<py::ssize_t> strides(held.strides.begin(), held.strides.end());
    static const std::uint8_t nothing = 0;
    const void* data = held.array.data == nullptr ? &nothing : held.array.data;
    py::array view = strides.empty() ? py::array(type, shape, data, self)
                                     : py::array(type, shape, strides, data, self);
    py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return view;
}

py::array_t<std::uint8_t> read(const PyDeviceArray& held, std::uint64_t first, std::uint64_t count,
                               const std::string& backend) {
    if (first > held.array.element_count || count > held.array.element_count - first)
        throw Error(ErrorCode::invalid_argument, "values outside the array");
    py::array_t<std::uint8_t> bytes(static_cast<py::ssize_t>(count * held.array.item_bytes));
    auto* to = reinterpret_cast<std::byte*>(bytes.mutable_data());
    const py::gil_scoped_release released;
    copy_to_host(resolve_execution(backend, 0).backend, held.array, first, count, to);
    return bytes;
}

}  // namespace

void register_device(py::module_& module) {
    py::class_<PyDeviceArray>(module, "DeviceArray")
        .def_static("from_dlpack", &from_dlpack, py::arg("capsule"), py::kw_only(),
                    py::arg("stream") = 0)
        .def_static("from_address", &from_address, py::arg("address"), py::arg("shape"),
                    py::arg("strides"), py::arg("dtype"), py::kw_only(), py::arg("stream") = 0,
                    py::arg("owner") = py::none())
        .def_readonly("dtype", &PyDeviceArray::dtype)
        .def_property_readonly(
            "shape", [](const PyDeviceArray& held) { return py::tuple(py::cast(held.shape)); })
        .def_readonly("device_type", &PyDeviceArray::device_type)
        .def_property_readonly("device_id",
                               [](const PyDeviceArray& held) { return held.array.device_id; })
        .def_property_readonly(
            "is_contiguous",
            [](const PyDeviceArray& held) { return held.array.layout.is_contiguous(); })
        .def("host_view", &host_view)
        .def("read", &read, py::arg("first_element"), py::arg("count"), py::kw_only(),
             py::arg("backend"));
}

}  // namespace ciwrap
