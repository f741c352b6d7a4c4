// The cost of a nanobind binding: functions with array arguments that do nothing.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

// The floor: CPython's own call of a C function, without nanobind's wrapper.
static PyObject *noop(PyObject *, PyObject *) { Py_RETURN_NONE; }
static PyMethodDef noop_def = {"noop", noop, METH_O, nullptr};

// Arguments as a stencil's: double, three dimensions, on the host.
using Field = const nb::ndarray<const double, nb::ndim<3>, nb::device::cpu> &;
using Vector = const nb::ndarray<const float, nb::ndim<1>, nb::device::cpu> &;

NB_MODULE(nanobind_peer, m) {
    m.def("take_ro", [](nb::ndarray<nb::ro>) {});
    m.def("empty", [](Vector, Vector, Vector) {});
    m.def("fields1", [](Field) {});
    m.def("fields4", [](Field, Field, Field, Field) {});
    m.def("fields16", [](Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field, Field,
                         Field, Field) {});
    m.attr("noop") = nb::steal(PyCFunction_New(&noop_def, nullptr));
}
