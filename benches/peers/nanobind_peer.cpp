// The cost of a nanobind binding: a function with an array argument that does nothing.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

// The floor: CPython's own call of a C function, without nanobind's wrapper.
static PyObject *noop(PyObject *, PyObject *) { Py_RETURN_NONE; }
static PyMethodDef noop_def = {"noop", noop, METH_O, nullptr};

NB_MODULE(nanobind_peer, m) {
    m.def("take_ro", [](nb::ndarray<nb::ro>) {});
    m.attr("noop") = nb::steal(PyCFunction_New(&noop_def, nullptr));
}
