// The C++ face of ciwrap/record.h, for C++17 and later: numbers, C arrays, pointers with extents,
// vectors, spans, std::mdspan and Kokkos Views. Copy both headers into your program.
#ifndef CIWRAP_RECORD_HPP
#define CIWRAP_RECORD_HPP

#include <ciwrap/record.h>

#include <array>
#include <complex>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <ranges>
#endif

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
        static_assert(!sizeof(Scalar),
                      "ciwrap records numbers only: expose each member of a struct, as"
                      " ciwrap::array_at(&cells[0].rho, cells.size()) with its stride");
}

template <class Array>
struct is_complex : std::false_type {};
template <class Real>
struct is_complex<std::complex<Real>> : std::true_type {};

// What lies where its address says, with a shape that its type says: 1.5, double[3][4].
template <class Array>
constexpr bool is_fixed() {
    return std::is_arithmetic_v<Array> || is_complex<Array>::value || std::is_array_v<Array>;
}

// Calls use(length) for each dimension of a C array.
template <class Array, class Use>
void for_each_extent(Use use) {
    if constexpr (std::is_array_v<Array>) {
        use(static_cast<std::int64_t>(std::extent_v<Array>));
        for_each_extent<std::remove_extent_t<Array>>(use);
    }
}

template <class Array, class = void>
struct is_container : std::false_type {};
template <class Array>
struct is_container<Array, std::void_t<decltype(*std::declval<const Array&>().data()),
                                       decltype(std::declval<const Array&>().size())>>
    : std::true_type {};

// Kokkos::View and std::mdspan: extents and strides, in elements.
template <class View, class = void>
struct is_view : std::false_type {};
template <class View>
struct is_view<View, std::void_t<decltype(std::declval<const View&>().extent(0)),
                                 decltype(std::declval<const View&>().stride(0))>>
    : std::true_type {};

// What does not own its elements, so that they may outlive it: Views and spans. A const span still
// gives write access to its elements; a const container does not.
template <class Array, class = void>
struct is_shallow : std::false_type {};
template <class Array>
struct is_shallow<Array, std::void_t<decltype(std::declval<const Array&>().data())>>
    : std::negation<
          std::is_const<std::remove_pointer_t<decltype(std::declval<const Array&>().data())>>> {};

template <class Array>
constexpr bool is_borrowed() {
#if __cplusplus >= 202002L
    if (std::ranges::enable_borrowed_range<Array>)
        return true;
#endif
    return is_view<Array>::value || is_shallow<Array>::value;
}

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

// Elements that a pointer leads to, as array_at says.
template <class Scalar, std::size_t Rank>
class ArrayAt {
  public:
    static constexpr std::size_t rank = Rank;
    using Numbers = std::array<std::int64_t, Rank>;

    ArrayAt(Scalar* data, const Numbers& extents, const Numbers& strides)
        : data_(data), extents_(extents), strides_(strides) {}
    // The same with other strides, in elements: between ghost cells, or with another order.
    template <class... Strides>
    ArrayAt strided(Strides... strides) const {
        static_assert(sizeof...(Strides) == Rank, "a stride for each extent");
        return ArrayAt(data_, extents_, {{static_cast<std::int64_t>(strides)...}});
    }
    Scalar* data_handle() const { return data_; }
    std::int64_t extent(std::size_t i) const { return extents_[i]; }
    std::int64_t stride(std::size_t i) const { return strides_[i]; }

  private:
    Scalar* data_;
    Numbers extents_;
    Numbers strides_;
};

// The elements at `data`, back to back, the last index fastest: array_at(p, ny, nx).
template <class Scalar, class... Extents>
ArrayAt<Scalar, sizeof...(Extents)> array_at(Scalar* data, Extents... extents) {
    using Found = ArrayAt<Scalar, sizeof...(Extents)>;
    const typename Found::Numbers numbers = {{static_cast<std::int64_t>(extents)...}};
    typename Found::Numbers strides = {};
    std::int64_t stride = 1;
    for (std::size_t i = sizeof...(Extents); i > 0; --i) {
        strides[i - 1] = stride;
        stride *= numbers[i - 1];
    }
    return Found(data, numbers, strides);
}

// This process's part of a recorded run, where CIWRAP_RECORD names a folder; else nothing.
//
//     recorder.prepare(n);
//     recorder.expose("rho", rho);  // is read now, and never later
//     recorder.complete();
//
// Arrays that are added instead are read at every checkpoint, so their elements have to stay where
// they are. With CIWRAP_RECORD_DEBUG=1 a container that was added is asked at every checkpoint: one
// that was swapped or resized since is an error.
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

    // A checkpoint: prepare, expose its arrays, complete. point: where in the iteration.
    void prepare(std::int64_t iteration, const std::string& point = "") {
        check_added();
        ciwrap_prepare(run_, iteration, point.c_str());
    }
    // A number, a C array, array_at(pointer, ...), or what has data() and size(), or extent(i) and
    // stride(i); also a temporary.
    template <class Array>
    void expose(const std::string& name, const Array& array, RecordedBound bound = {}) {
        if (run_ == nullptr)
            return;
        with_described(name, array, bound,
                       [this](const ciwrap_array& described) { ciwrap_expose(run_, &described); });
    }
    // A Kokkos View under its label.
    template <class View>
    auto expose(const View& view, RecordedBound bound = {}) -> decltype(view.label(), void()) {
        expose(view.label(), view, bound);
    }
    void complete() {
        ciwrap_complete(run_);
    }

    // An array to read at every checkpoint from now on, or another place and shape for the one of
    // that name.
    template <class Array>
    void add(const std::string& name, const Array& array, RecordedBound bound = {}) {
        if (run_ == nullptr)
            return;
        with_described(name, array, bound,
                       [this](const ciwrap_array& described) { put(described); });
        if constexpr (!record_detail::is_borrowed<Array>() && !record_detail::is_fixed<Array>())
            watch(name, array);
    }
    // The elements of a temporary container are gone when the call returns: expose it.
    template <class Array,
              class = std::enable_if_t<!std::is_lvalue_reference_v<Array> &&
                                       !record_detail::is_borrowed<std::remove_cv_t<Array>>()>>
    void add(const std::string& name, Array&& array, RecordedBound bound = {}) = delete;
    // A Kokkos View under its label.
    template <class View>
    auto add(const View& view, RecordedBound bound = {}) -> decltype(view.label(), void()) {
        add(view.label(), view, bound);
    }
    // Before the elements of an array that was added cease to exist.
    void remove(const std::string& name) {
        checks_.erase(name);
        const std::int64_t id = ciwrap_find(run_, name.c_str());
        if (id >= 0)
            ciwrap_remove(run_, id);
    }

    // Records all arrays that were added.
    void checkpoint(std::int64_t iteration) {
        check_added();
        ciwrap_checkpoint(run_, iteration, CIWRAP_IN_PLACE);
    }
    void point(std::int64_t iteration, const std::string& name) {
        check_added();
        ciwrap_point(run_, iteration, name.c_str());
    }
    // Hashes what was added, from any of the program's threads, between prepare and complete.
    void work() {
        ciwrap_work(run_);
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
    // What last went wrong; "" for nothing. code: one of ciwrap/record.h.
    std::string last_error(int* code = nullptr) const {
        char text[512];
        const int found = ciwrap_last_error(run_, text, sizeof text);
        if (code != nullptr)
            *code = found;
        return text;
    }
    // What is recorded after it is lost, and said.
    std::int64_t close() {
        checks_.clear();
        return ciwrap_close(run_);
    }

  private:
    template <class Array, class Use>
    static void with_described(const std::string& name, const Array& array, RecordedBound bound,
                               Use use) {
        ciwrap_array described = begin(name, bound);
        if constexpr (record_detail::is_view<Array>::value) {
            auto* const data = record_detail::data_of(array);
            described.data = data;
            described.location = record_detail::location_of<Array>();
            described.dimensions = record_detail::rank_of<Array>();
            for (int i = 0; i < described.dimensions && i < CIWRAP_MAX_DIMENSIONS; ++i) {
                const auto index = static_cast<std::size_t>(i);
                described.extents[i] = static_cast<std::int64_t>(array.extent(index));
                described.strides[i] = static_cast<std::int64_t>(array.stride(index));
            }
            use_as<std::remove_pointer_t<decltype(data)>>(described, use);
        } else if constexpr (record_detail::is_fixed<Array>()) {
            described.data = &array;
            record_detail::for_each_extent<Array>([&described](std::int64_t length) {
                if (described.dimensions < CIWRAP_MAX_DIMENSIONS)
                    described.extents[described.dimensions] = length;
                ++described.dimensions;
            });
            use_as<std::remove_all_extents_t<Array>>(described, use);
        } else {
            static_assert(
                record_detail::is_container<Array>::value,
                "ciwrap records numbers, C arrays, pointers as ciwrap::array_at(p, length),"
                " and what has data() and size(), or extent(i) and stride(i): copy"
                " anything else into a std::vector of numbers (bool: of char), and"
                " expose that");
            described.data = array.data();
            described.dimensions = 1;
            described.extents[0] = static_cast<std::int64_t>(array.size());
            use_as<std::remove_pointer_t<decltype(array.data())>>(described, use);
        }
    }
    template <class Scalar, class Use>
    static void use_as(ciwrap_array& described, Use use) {
        const std::string dtype = record_detail::dtype_of<std::remove_cv_t<Scalar>>();
        described.dtype = dtype.c_str();
        use(described);
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

    // In debug mode: whether a container has its elements where they were.
    template <class Container>
    void watch(const std::string& name, const Container& container) {
        const char* const asked = std::getenv("CIWRAP_RECORD_DEBUG");
        if (asked == nullptr || *asked == '\0' || std::string(asked) == "0")
            return;
        checks_[name] = [&container, data = container.data(), size = container.size()] {
            return container.data() == data && container.size() == size;
        };
    }
    void check_added() const {
        for (const auto& [name, is_where_it_was] : checks_) {
            if (!is_where_it_was())
                ciwrap_report(
                    run_, (name + ": was swapped or resized since it was added; add it again, or"
                                  " expose it")
                              .c_str());
        }
    }

    ciwrap_run* run_;
    std::map<std::string, std::function<bool()>> checks_;
};

}  // namespace ciwrap

#endif
