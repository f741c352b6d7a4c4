"""`Signature.wrap`: functions of C, numba, f2py and Python that get what an order names of the checked fields."""

import ctypes
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fortran_modules import LANGUAGES, SOURCES, f2py_module, shared_library

SOURCE = """
#include <stddef.h>
#include <stdint.h>

void laplacian(const double *inp, const ptrdiff_t *x, double *out, const ptrdiff_t *y,
               const ptrdiff_t *points, double scale)
{
    for (ptrdiff_t i = 0; i < points[0]; i++)
        for (ptrdiff_t j = 0; j < points[1]; j++) {
            const double *at = inp + i * x[0] + j * x[1];
            out[i * y[0] + j * y[1]] = scale * (at[-x[0]] + at[x[0]] + at[-x[1]] + at[x[1]] - 4.0 * *at);
        }
}

int64_t first(const void *at, int ni, int nj) { return (int64_t)ni * 1000 + nj + (at == NULL ? 1000000 : 0); }
"""
INP = dl.FieldSpec("float64", "IJ", boundary=(1, 1))
OUT = dl.FieldSpec("float64", "IJ", access="w")
PAIR = dl.Signature(inp=INP, out=OUT)
ONE = dl.Signature(u=dl.FieldSpec("float64", "IJ"))
ORDER = "domain_ptr element_strides domain scale"
DOUBLES, SIZES = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_ssize_t)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrapped")
    (folder / "wrapped.c").write_text(SOURCE)
    return shared_library(folder, folder / "wrapped.c", "wrapped.so")


def of_ctypes(library: Path) -> Any:
    function = ctypes.CDLL(str(library)).laplacian
    function.argtypes, function.restype = (DOUBLES, SIZES, DOUBLES, SIZES, SIZES, ctypes.c_double), None
    return function


def of_cffi(library: Path) -> Any:
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef(SOURCE[SOURCE.index("void") : SOURCE.index("{")] + ";")
    return ffi.addressof(ffi.dlopen(str(library)), "laplacian")


def of_numba(_: Path) -> Any:
    numba = pytest.importorskip("numba")
    double, size = numba.types.CPointer(numba.types.double), numba.types.CPointer(numba.types.intp)

    @numba.cfunc(numba.types.void(double, size, double, size, size, numba.types.double))  # type: ignore[untyped-decorator, unused-ignore]
    def laplacian(inp: Any, x: Any, out: Any, y: Any, points: Any, scale: float) -> None:
        for i in range(points[0]):
            for j in range(points[1]):
                at = i * x[0] + j * x[1]
                around = inp[at - x[0]] + inp[at + x[0]] + inp[at - x[1]] + inp[at + x[1]]
                out[i * y[0] + j * y[1]] = scale * (around - 4.0 * inp[at])

    return laplacian


def expected(inp: Any) -> Any:
    u = dl.as_numpy(inp)
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


@pytest.mark.parametrize("make", [of_ctypes, of_cffi, of_numba])
def test_c_functions_compute_the_domain_of_any_layout(library: Path, make: Any) -> None:
    laplacian = PAIR.wrap(make(library), ORDER)
    values = np.random.default_rng(0).random((6, 5))
    inp = dl.from_array(values, backend="gt:cpu_ifirst", halo=(1, 1), alignment_size=64)
    for out in (dl.zeros((6, 5), halo=(1, 1)), dl.zeros((3, 4), dims="JI"), dl.zeros((4, 3), backend="F")):
        laplacian(inp, out, scale=2.0)
        found = out.domain_view.transpose("I", "J").to_numpy()
        assert np.allclose(found, 2.0 * expected(values), rtol=1e-14)
    assert str(inspect.signature(laplacian)) == "(inp, out, scale)"
    with pytest.raises(dl.LayoutError, match='field "inp": origin'):
        laplacian(values, np.zeros((4, 3)), 1.0)
    with pytest.raises(dl.OverlapError, match='field "out"'):
        laplacian(inp, inp, 1.0)


def test_a_c_function_without_types_gets_addresses_and_sizes(library: Path) -> None:
    function = ctypes.CDLL(str(library)).first
    seen: list[Any] = []
    as_python = PAIR.wrap(lambda *arguments: seen.extend(arguments), "inp.ptr, inp.shape out.strides *domain inp.ndim")
    inp, out = dl.zeros((5, 4), halo=(1, 1)), dl.zeros((3, 2))
    as_python(inp, out)
    assert seen == [inp.ptr, (5, 4), (16, 8), 3, 2, 2]
    with pytest.raises(TypeError, match="order: numbers need the types of the C function; set its argtypes"):
        ONE.wrap(function, "ptr *shape")
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int), ctypes.c_int64
    assert ONE.wrap(function, "ptr *shape")(np.zeros((2, 3))) == 2003
    absent = dl.Signature(u=dl.FieldSpec("float64", "IJ", optional=True)).wrap(function, "ptr ni nj")
    assert absent(None, 2, nj=3) == 1_002_003


def test_functions_of_python_get_numpys_arrays() -> None:
    add = PAIR.wrap(lambda inp, out: np.add(inp, 1, out=out))
    out = np.zeros((3, 4), order="F")
    assert add(dl.zeros((4, 3), dims="JI", halo=(1, 1)), out) is not None
    assert (out == 1).all()


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions_of_f2py(tmp_path: Path, language: str) -> None:
    module = f2py_module(tmp_path, SOURCES / "probe.pyf", SOURCES / f"probe{'.c' if language == 'c' else '.f90'}")
    u = dl.ones((5, 3), backend="F")
    taken = dl.Signature(u=dl.FieldSpec("float64", "IJ", access="rw")).wrap(module.taken)
    assert taken(u) == u.ptr


ORDERS = [
    (None, TypeError, "order: expected the arguments of the C function"),
    ("u.array", TypeError, "order: 'array' is for functions of Python"),
    ("u", ValueError, "order: expected an attribute of the fields, 'domain' or a scalar, got 'u'"),
    ("x.ptr", ValueError, r"order: expected FIELD.NAME with a field of \('u',\), got 'x.ptr'; the attributes are"),
    ("u.address", ValueError, "got 'u.address'"),
    ("ptr elementstrides w", ValueError, "got 'elementstrides'; did you mean 'element_strides'"),
    ("ptr stride w", ValueError, "got 'stride'; did you mean 'strides'"),
    ("ptr domains w", ValueError, "got 'domains'; did you mean 'domain'"),
    ("*dt", ValueError, r"got '\*dt'"),
    ("ptr", TypeError, "order: the C function takes 3 arguments, got 1"),
    ("ptr *shape u.ndim", TypeError, "order: the C function takes 3 arguments, and u.ndim is one more"),
    ("ptr shape u.ndim", TypeError, "order: argument 2, u.shape: the C function takes a c_int, expected a pointer"),
]


@pytest.mark.parametrize(("order", "error", "message"), ORDERS)
def test_orders_that_do_not_fit_are_refused(library: Path, order: Any, error: Any, message: str) -> None:
    function = ctypes.CDLL(str(library)).first
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    with pytest.raises(error, match=message):
        ONE.wrap(function, order)(np.zeros((2, 3)))


def test_types_and_numbers_of_a_call_are_checked(library: Path) -> None:
    laplacian = of_ctypes(library)
    single = dl.Signature(inp=dl.FieldSpec("float32", "IJ"), out=dl.FieldSpec("float32", "IJ", access="w"))
    with pytest.raises(
        TypeError, match=r"argument 1, inp.domain_ptr: the C function takes float64, the field is float32"
    ):
        single.wrap(laplacian, ORDER)(np.zeros((2, 3), "f4"), np.zeros((2, 3), "f4"), 1.0)
    first = ctypes.CDLL(str(library)).first
    first.argtypes = (ctypes.c_void_p, ctypes.c_int8, ctypes.c_int8)
    with pytest.raises(OverflowError, match=r"order: argument 2, \*u.shape: 300 does not fit c_byte"):
        ONE.wrap(first, "ptr *shape")(np.zeros((300, 1)))
    wrapped = PAIR.wrap(laplacian, ORDER)
    for scale, error, message in (
        ("abc", TypeError, r"^scale: expected a number \(c_double\), got 'abc'$"),
        (None, TypeError, r"^scale: expected a number \(c_double\), got None$"),
        (2**53 + 1, OverflowError, "^scale: 9007199254740993 does not fit c_double$"),
    ):
        with pytest.raises(error, match=message):
            wrapped(dl.zeros((6, 5), halo=(1, 1)), np.zeros((4, 3)), scale)
    for arguments, keywords, message in (
        ((1, 2, 3, 4), {}, "takes 3 arguments: inp, out, scale; got 4"),
        ((1,), {"inp": 2}, "two values for 'inp'"),
        ((1, 2), {}, "the argument 'scale' is missing"),
    ):
        with pytest.raises(TypeError, match=message):
            wrapped(*arguments, **keywords)
    with pytest.raises(TypeError, match="function: expected a function"):
        ONE.wrap("laplacian", "ptr")  # type: ignore[arg-type]


def test_descriptions_have_the_address_of_the_domain_and_the_interface_of_ctypes() -> None:
    field = dl.from_array(np.arange(20.0).reshape(4, 5), halo=((1, 0), (2, 1)), alignment_size=64)
    seen = dl.describe(field)
    assert seen.domain_ptr == seen.ptr + seen.strides[0] + 2 * seen.strides[1] == dl.describe(field.domain_view).ptr
    assert seen.element_strides == tuple(stride // 8 for stride in seen.strides) == (8, 1)
    array = np.asarray(field)
    for name in ("data", "shape", "strides"):
        ours, theirs = getattr(seen.ctypes, name), getattr(array.ctypes, name)
        assert ours == theirs if name == "data" else list(ours) == list(theirs), name
    assert list(seen.ctypes.shape_as(ctypes.c_int16)) == [4, 5]
    assert seen.ctypes.data_as(DOUBLES)[1] == 1.0
    with pytest.raises(OverflowError, match="64 does not fit"):
        dl.describe(dl.zeros((2, 33))).ctypes.strides_as(ctypes.c_int8)


def test_the_domain_of_a_call_goes_by_label_and_is_shown() -> None:
    with PAIR.bind(inp=dl.zeros((6, 5), halo=(1, 1)), out=np.zeros((4, 3))) as fields:
        assert tuple(fields.domain) == (4, 3)
        assert fields.domain.dims == ("I", "J")
        assert (fields.domain["J"], fields.domain[0], fields.domain[::-1]) == (3, 4, (3, 4))
        with pytest.raises(dl.DimsError, match=r"domain: expected one of .*, got 'K'"):
            fields.domain["K"]
        assert repr(fields).startswith("BoundCall(domain=(4, 3), inp=Descriptor(shape=(6, 5)")
        assert "dims=('I', 'J'), halo=((1, 1), (1, 1)), origin=(1, 1)" in repr(fields.inp)
