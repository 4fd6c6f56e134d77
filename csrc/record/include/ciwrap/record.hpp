// The C++ face of ciwrap/record.h, for C++17 and later: vectors, spans, std::mdspan and Kokkos
// Views. Copy both headers into your program.
#ifndef CIWRAP_RECORD_HPP
#define CIWRAP_RECORD_HPP

#include <ciwrap/record.h>

#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace ciwrap {

// The error bound of an array: |v - g| <= atol + rtol |g|; negative: not given.
struct RecordedBound {
    double atol = -1;
    double rtol = -1;
};

namespace record_detail {

template <class Scalar>
std::string dtype_of() {
    const std::string bytes = std::to_string(sizeof(Scalar));
    if constexpr (std::is_same_v<Scalar, bool>)
        return "?";
    else if constexpr (std::is_same_v<Scalar, std::complex<float>> ||
                       std::is_same_v<Scalar, std::complex<double>>)
        return "c" + bytes;
    else if constexpr (std::is_floating_point_v<Scalar>)
        return "f" + bytes;  // one of 16 bytes is refused by the library
    else if constexpr (std::is_integral_v<Scalar>)
        return (std::is_signed_v<Scalar> ? "i" : "u") + bytes;
    else
        static_assert(!sizeof(Scalar), "ciwrap records numbers only");
}

// Kokkos::View and std::mdspan: extents and strides, in elements.
template <class View, class = void>
struct is_view : std::false_type {};
template <class View>
struct is_view<View, std::void_t<decltype(std::declval<const View&>().extent(0)),
                                 decltype(std::declval<const View&>().stride(0))>>
    : std::true_type {};

template <class View, class = void>
struct has_memory_space : std::false_type {};
template <class View>
struct has_memory_space<View, std::void_t<typename View::memory_space>> : std::true_type {};

template <class View>
constexpr int rank_of() {
    if constexpr (std::is_convertible_v<decltype(View::rank), std::size_t>)
        return static_cast<int>(static_cast<std::size_t>(View::rank));
    else
        return static_cast<int>(View::rank());
}

template <class View>
auto* data_of(const View& view) {
    if constexpr (has_memory_space<View>::value)
        return view.data();
    else
        return view.data_handle();
}

template <class View>
int location_of() {
    if constexpr (has_memory_space<View>::value)
        return std::string(View::memory_space::name()) == "Host" ? CIWRAP_HOST : CIWRAP_DEVICE;
    else
        return CIWRAP_HOST;
}

}  // namespace record_detail

// This process's part of a recorded run, where CIWRAP_RECORD names a folder; else nothing. Arrays
// are read at checkpoints: they have to live until then, and where they were when they were added
// last.
class Recorder {
  public:
    explicit Recorder(const std::string& name, int rank = 0, int ranks = 1)
        : run_(ciwrap_open(name.c_str(), rank, ranks)) {}
#ifdef MPI_VERSION
    Recorder(const std::string& name, MPI_Comm comm) : run_(ciwrap_open_mpi(name.c_str(), comm)) {}
#endif
    ~Recorder() {
        close();
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    bool is_on() const {
        return run_ != nullptr;
    }

    // An array, or another place and shape for the one of that name: what has data() and size(), or
    // extent(i) and stride(i).
    template <class Array>
    void add(const std::string& name, const Array& array, RecordedBound bound = {}) {
        if (run_ == nullptr)
            return;
        if constexpr (record_detail::is_view<Array>::value)
            add_view(name, array, bound);
        else
            add_list(name, array, bound);
    }
    // A Kokkos View under its label.
    template <class View>
    auto add(const View& view, RecordedBound bound = {}) -> decltype(view.label(), void()) {
        add(view.label(), view, bound);
    }

    void checkpoint(std::int64_t iteration) {
        ciwrap_checkpoint(run_, iteration, CIWRAP_IN_PLACE);
    }
    void point(std::int64_t iteration, const std::string& name) {
        ciwrap_point(run_, iteration, name.c_str());
    }
    // Hashing with the program's own threads: prepare, work from any of them, complete.
    void prepare(std::int64_t iteration, const std::string& point = "") {
        ciwrap_prepare(run_, iteration, point.c_str());
    }
    void work() {
        ciwrap_work(run_);
    }
    void complete() {
        ciwrap_complete(run_);
    }

    // Whether the program is to end, since it does not match what it is compared with (see
    // ciwrap_should_stop). With MPI `agree` is the same in all processes.
    bool should_stop() const {
        return ciwrap_should_stop(run_) != 0;
    }
#ifdef MPI_VERSION
    bool agree(MPI_Comm comm) const {
        return ciwrap_agree(run_, comm) != 0;
    }
#endif
    void on_divergence(ciwrap_callback callback, void* data = nullptr) {
        ciwrap_on_divergence(run_, callback, data);
    }

    std::int64_t errors() const {
        return ciwrap_errors(run_);
    }
    std::int64_t close() {
        ciwrap_run* const run = run_;
        run_ = nullptr;
        return ciwrap_close(run);
    }

  private:
    template <class List>
    void add_list(const std::string& name, const List& list, RecordedBound bound) {
        using Scalar = std::remove_cv_t<std::remove_pointer_t<decltype(list.data())>>;
        ciwrap_array array = begin(name, bound);
        const std::string dtype = record_detail::dtype_of<Scalar>();
        array.dtype = dtype.c_str();
        array.data = list.data();
        array.dimensions = 1;
        array.extents[0] = static_cast<std::int64_t>(list.size());
        put(array);
    }

    template <class View>
    void add_view(const std::string& name, const View& view, RecordedBound bound) {
        auto* const data = record_detail::data_of(view);
        using Scalar = std::remove_cv_t<std::remove_pointer_t<decltype(data)>>;
        ciwrap_array array = begin(name, bound);
        const std::string dtype = record_detail::dtype_of<Scalar>();
        array.dtype = dtype.c_str();
        array.data = data;
        array.location = record_detail::location_of<View>();
        array.dimensions = record_detail::rank_of<View>();
        for (int i = 0; i < array.dimensions && i < CIWRAP_MAX_DIMENSIONS; ++i) {
            array.extents[i] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(i)));
            array.strides[i] = static_cast<std::int64_t>(view.stride(static_cast<std::size_t>(i)));
        }
        put(array);
    }

    static ciwrap_array begin(const std::string& name, RecordedBound bound) {
        ciwrap_array array{};
        array.size = sizeof array;
        array.name = name.c_str();
        array.atol = bound.atol;
        array.rtol = bound.rtol;
        return array;
    }

    void put(const ciwrap_array& array) {
        const std::int64_t id = ciwrap_find(run_, array.name);
        if (id >= 0)
            ciwrap_replace(run_, id, &array);
        else
            ciwrap_add(run_, &array);
    }

    ciwrap_run* run_;
};

}  // namespace ciwrap

#endif
