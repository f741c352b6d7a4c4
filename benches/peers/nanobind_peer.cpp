// The cost of a nanobind binding: functions with array arguments that do nothing, and a loop over strides.

#include <algorithm>
#include <numeric>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

// The floor: CPython's own call of a C function, without nanobind's wrapper.
static PyObject *noop(PyObject *, PyObject *) { Py_RETURN_NONE; }
static PyMethodDef noop_def = {"noop", noop, METH_O, nullptr};

// Arguments as a stencil's: double, three dimensions, on the host.
using Field = const nb::ndarray<const double, nb::ndim<3>, nb::device::cpu> &;
using Vector = const nb::ndarray<const float, nb::ndim<1>, nb::device::cpu> &;

// The loop over strides that a binding's author writes.
static double sum(Field x) {
    auto view = x.view();
    double total = 0;
    for (size_t i = 0; i < view.shape(0); ++i)
        for (size_t j = 0; j < view.shape(1); ++j)
            for (size_t k = 0; k < view.shape(2); ++k) total += view(i, j, k);
    return total;
}

// A field whose dims, an attribute, are I, J and K.
static double read_labelled(nb::object object) {
    auto x = nb::cast<nb::ndarray<const double, nb::ndim<3>, nb::device::cpu>>(object);
    static const char *const labels[] = {"I", "J", "K"};
    nb::tuple dims = nb::cast<nb::tuple>(object.attr("dims"));
    bool fit = dims.size() == 3;
    for (size_t axis = 0; fit && axis < 3; ++axis)
        fit = PyUnicode_Check(dims[axis].ptr()) && PyUnicode_CompareWithASCIIString(dims[axis].ptr(), labels[axis]) == 0;
    if (!fit) throw nb::value_error("expected the dims I, J, K");
    return x(0, 0, 0);
}

// One to three dimensions of the type `T`, by a view of these.
template <typename T, typename Array> static auto &first(Array &x) {
    switch (x.ndim()) {
    case 1: return x.template view<T, nb::ndim<1>>()(0);
    case 2: return x.template view<T, nb::ndim<2>>()(0, 0);
    case 3: return x.template view<T, nb::ndim<3>>()(0, 0, 0);
    default: throw nb::type_error("expected one to three dimensions");
    }
}

static double read_by_type(const nb::ndarray<nb::ro, nb::device::cpu> &x) {
    if (x.dtype() == nb::dtype<float>()) return first<const float>(x);
    if (x.dtype() == nb::dtype<double>()) return first<const double>(x);
    throw nb::type_error("expected float32 or float64");
}

static void write_by_type(const nb::ndarray<nb::device::cpu> &x) {
    if (x.dtype() == nb::dtype<float>()) first<float>(x) = 1;
    else if (x.dtype() == nb::dtype<double>()) first<double>(x) = 1;
    else throw nb::type_error("expected float32 or float64");
}

// The numbers below `stop`, on the memory of a vector, as a NumPy array.
static auto count_to(uint32_t stop) {
    auto numbers = new std::vector<uint32_t>(stop);
    std::iota(numbers->begin(), numbers->end(), 0);
    nb::capsule owner(numbers, [](void *made) noexcept { delete static_cast<std::vector<uint32_t> *>(made); });
    return nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>(numbers->data(), {numbers->size()}, owner);
}

// A tensor of doubles on the host that stays imported.
template <typename T> struct Kept {
    nb::ndarray<T, nb::device::cpu> array;

    std::vector<double> values() const {
        std::vector<double> found;
        for (size_t n = 0; n < std::min<size_t>(array.size(), 6); ++n) {
            int64_t offset = 0;
            size_t rest = n;
            for (size_t axis = array.ndim(); axis-- > 0; rest /= array.shape(axis))
                offset += static_cast<int64_t>(rest % array.shape(axis)) * array.stride(axis);
            found.push_back(array.data()[offset]);
        }
        return found;
    }
};

NB_MODULE(nanobind_peer, m) {
    nb::class_<Kept<const double>>(m, "Kept").def("values", &Kept<const double>::values);
    m.def("keep", [](nb::ndarray<const double, nb::device::cpu> x) { return Kept<const double>{x}; });
    m.def("set_first", [](nb::ndarray<double, nb::device::cpu> x) { x.data()[0] = 9.0; });
    m.def("count_to", count_to);
    m.def("take_ro", [](nb::ndarray<nb::ro>) {});
    m.def("empty", [](Vector, Vector, Vector) {});
    m.def("read", [](Field x) { return x(0, 0, 0); });
    m.def("write", [](const nb::ndarray<double, nb::ndim<3>, nb::device::cpu> &x) { x(0, 0, 0) = 1.0; });
    m.def("read_labelled", read_labelled);
    m.def("read_by_type", read_by_type);
    m.def("write_by_type", write_by_type);
    m.def("fields1", [](Field) {});
    m.def("fields4", [](Field, Field, Field, Field) {});
    m.def("fields16", [](Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field,
                         Field, Field) {});
    m.def("sum", sum, nb::call_guard<nb::gil_scoped_release>());
    m.attr("noop") = nb::steal(PyCFunction_New(&noop_def, nullptr));
}
