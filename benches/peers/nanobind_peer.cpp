// The cost of a nanobind binding: functions with array arguments that do nothing, and a loop over strides.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

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

NB_MODULE(nanobind_peer, m) {
    m.def("take_ro", [](nb::ndarray<nb::ro>) {});
    m.def("empty", [](Vector, Vector, Vector) {});
    m.def("fields1", [](Field) {});
    m.def("fields4", [](Field, Field, Field, Field) {});
    m.def("fields16", [](Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field,
                         Field, Field) {});
    m.def("sum", sum, nb::call_guard<nb::gil_scoped_release>());
    m.attr("noop") = nb::steal(PyCFunction_New(&noop_def, nullptr));
}
