"""Fields as arguments of Fortran routines that f2py has wrapped: used in place, refused, or copied, by their layout."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import dlfield as dl
from fortran_modules import LANGUAGES, SOURCES, f2py_module


@pytest.fixture(scope="module", params=LANGUAGES)
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    suffix = {"c": ".c", "fortran": ".f90"}[request.param]
    folder: Path = tmp_path_factory.mktemp("probe")
    return f2py_module(folder, SOURCES / "probe.pyf", SOURCES / f"probe{suffix}")


# Fields that Fortran sees as they are: the first index is contiguous, without padding.
FITTING: list[dict[str, Any]] = [
    {"backend": "F"},
    {"backend": "F", "dims": "JI"},
    {"backend": "F", "halo": (2, 1)},
    {"backend": "F", "alignment_size": 128, "padding": "none"},
    {"backend": "gt:cpu_ifirst"},
    {"backend": "gt:cpu_ifirst", "halo": ((2, 1), 1)},
    {"backend": "dace:cpu_KJI"},
    {"backend": "gtmc", "dims": "JK", "alignment_size": 1},
    {"layout": (1, 0)},
]

# Fields of the same values that are not contiguous for Fortran.
OTHERS: list[dict[str, Any]] = [
    {},
    {"backend": "gt:cpu_kfirst"},
    {"backend": "F", "alignment_size": 64},
    {"backend": "gt:cpu_ifirst", "alignment_size": 64, "halo": (2, 1)},
]

# What an `inplace` argument makes of a copy.
WRITES_BACK = np.lib.NumpyVersion(np.__version__) >= "2.5.0"

IN_PLACE = ["taken", "changed", "changed_aligned", "returned", "replaced"]


def result(found: Any) -> tuple[Any, int]:
    """Return the array that a routine returns, or None, and the address it has got."""
    return found if isinstance(found, tuple) else (None, found)


@pytest.mark.parametrize("keywords", FITTING, ids=repr)
@pytest.mark.parametrize("routine", IN_PLACE)
def test_contiguous_fields_are_used_in_place(probe: Any, routine: str, keywords: dict[str, Any]) -> None:
    field = dl.ones((5, 3), **keywords)
    assert field.is_contiguous("F")
    array = np.asarray(field)
    returned, address = result(getattr(probe, routine)(array))
    assert address == field.ptr == array.ctypes.data
    assert (np.asarray(field) == 2.0).all()
    assert returned is None or returned is array


def test_a_tensor_itself_is_read_in_place(probe: Any) -> None:
    field = dl.ones((5, 3), backend="F")
    assert probe.taken(field) == field.ptr
    for routine in ("changed", "replaced"):
        with pytest.raises(TypeError, match="not an array"):
            getattr(probe, routine)(field)


@pytest.mark.parametrize("keywords", OTHERS, ids=repr)
def test_other_layouts_are_refused_by_inout_and_else_copied(probe: Any, keywords: dict[str, Any]) -> None:
    field = dl.ones((5, 3), **keywords)
    assert not field.is_contiguous("F")
    for routine in ("changed", "changed_aligned"):
        with pytest.raises(ValueError, match="not fortran contiguous"):
            getattr(probe, routine)(np.asarray(field))
    inside = range(field.block.ptr, field.block.ptr + field.block.nbytes)
    for routine in ("taken", "returned", "replaced"):
        array = np.asarray(field)
        returned, address = result(getattr(probe, routine)(array))
        assert address not in inside
        # The routine has written to the copy, which the caller gets from two of them, in different ways.
        assert (np.asarray(field) == (2.0 if routine == "replaced" and WRITES_BACK else 1.0)).all()
        assert returned is None or (returned == 2.0).all()
        assert (array == (2.0 if routine == "replaced" else 1.0)).all()


@pytest.mark.parametrize("keywords", [{"alignment_size": 64}, {"alignment_size": 64, "halo": (1, 0, 1)}, {}], ids=repr)
@pytest.mark.parametrize("backend", ["F", "gt:cpu_ifirst"])
def test_padded_rows_are_passed_with_their_leading_dimension(
    probe: Any, backend: str, keywords: dict[str, Any]
) -> None:
    field = dl.ones((5, 3, 2), backend=backend, **keywords)
    lda = field.strides[1] // field.itemsize
    rows = dl.frombuffer(
        field.block,
        (lda, 3, 2),
        field.dtype,
        strides=field.strides,
        offset=field.ptr - field.block.ptr,
    )
    assert rows.is_contiguous("F")
    assert (lda > 5) == bool(keywords)
    rows[...] = 0.0
    field[...] = 1.0
    # Two dimensions for the routine: the last two as one.
    matrix = np.asarray(rows).reshape((lda, 6), order="F")
    assert probe.changed(matrix) == field.ptr
    assert (np.asarray(field) == 2.0).all()
    assert (np.asarray(rows)[5:] == 1.0).all()
    # A view begins elsewhere: its rows would end behind the block.
    part = field[1:]
    offset = part.ptr - part.block.ptr
    with pytest.raises(dl.ExchangeError, match="of the buffer, got"):
        dl.frombuffer(part.block, (lda, 3, 2), part.dtype, strides=part.strides, offset=offset)


def test_fields_in_c_order_are_used_in_place_by_routines_for_it(probe: Any) -> None:
    field = dl.ones((5, 3))
    assert probe.changed_in_c_order(np.asarray(field)) == field.ptr
    assert probe.changed(np.asarray(field.T)) == field.ptr
    assert (np.asarray(field) == 3.0).all()


def test_read_only_fields_are_never_written(probe: Any) -> None:
    field = dl.ones((5, 3), backend="F").as_readonly()
    # The message of f2py is the same as for another layout.
    with pytest.raises(ValueError, match="not fortran contiguous"):
        probe.changed(np.asarray(field))
    with pytest.raises(ValueError, match="read-only") if WRITES_BACK else nullcontext():
        probe.replaced(np.asarray(field))
    assert (np.asarray(field) == 1.0).all()
    # Reading takes place in the array, but in a copy of the tensor, for which f2py demands that it can be written.
    assert probe.taken(field) != field.ptr
    assert (np.asarray(field) == 1.0).all()
    assert probe.taken(np.asarray(field)) == field.ptr


def test_other_element_types_are_refused_by_inout_and_else_copied(probe: Any) -> None:
    for dtype, message in (("float32", "expected elsize=8 but got 4"), ("int64", "'l' not compatible to 'd'")):
        field = dl.ones((5, 3), dtype, backend="F")
        with pytest.raises(ValueError, match=message):
            probe.changed(np.asarray(field))
        returned, address = probe.returned(np.asarray(field))
        assert address != field.ptr
        assert (returned.dtype, float(returned[4, 2])) == (np.dtype("float64"), 2.0)


def test_alignment_is_checked_where_a_routine_asks_for_it(probe: Any) -> None:
    memory = dl.zeros((4 + 15,))
    field = dl.frombuffer(memory, (5, 3), "float64", strides=(8, 40), offset=8)
    assert field.alignment() == 8
    with pytest.raises(ValueError, match="not 16-aligned"):
        probe.changed_aligned(np.asarray(field))
    assert probe.changed(np.asarray(field)) == field.ptr
    # Fortran cannot use an address that is not a multiple of the element size.
    odd = dl.frombuffer(bytearray(200), (5, 3), "float64", strides=(8, 40), offset=1)
    odd = odd if odd.alignment() < 8 else dl.frombuffer(bytearray(200), (5, 3), "float64", strides=(8, 40), offset=2)
    with pytest.raises(ValueError, match="not fortran contiguous"):
        probe.changed(np.asarray(odd))


def test_arrays_that_f2py_makes_become_fields(probe: Any) -> None:
    array, address = probe.made(5, 3)
    field = dl.from_dlpack(array, dims="IJ")
    del array
    assert (field.ptr, field.layout, field.is_contiguous("F")) == (address, (1, 0), True)
    assert (np.asarray(field) == 1.0).all()


@pytest.mark.skipif("fortran" not in LANGUAGES, reason="f2py shows arrays of modules with Fortran of its own")
def test_arrays_of_modules_become_fields(tmp_path: Path) -> None:
    state: Any = f2py_module(tmp_path, SOURCES / "model.f90", SOURCES / "model.f90").state
    state.allocate_u(4, 3, 2)
    for array in (state.u, state.table):
        field = dl.from_dlpack(array)
        assert (field.ptr, field.is_contiguous("F"), field.readonly) == (array.ctypes.data, True, False)
        field[...] = 2.0
    assert state.sum_of_u() == 48.0
    assert (state.table == 2.0).all()


def test_a_kernel_checks_the_arguments_of_a_routine(probe: Any) -> None:
    torch = pytest.importorskip("torch")

    @dl.kernel
    def add_one(a: Annotated[Any, dl.FieldSpec("float64", "IJ", access="rw")]) -> int:
        return int(probe.changed(dl.as_numpy(a)))

    for field in (dl.ones((5, 3), backend="F"), dl.ones((3, 5), dims="JI"), np.ones((5, 3), order="F")):
        address = field.ptr if isinstance(field, dl.Tensor) else field.ctypes.data
        assert add_one(field) == address
        assert (np.asarray(field) == 2.0).all()
    tensor = torch.ones(3, 5, dtype=torch.float64).T
    assert add_one(tensor) == tensor.data_ptr()
    with pytest.raises(dl.DTypeError, match="float32"):
        add_one(np.ones((5, 3), "float32", order="F"))
    with pytest.raises(dl.ExchangeError, match="read-only"):
        add_one(dl.ones((5, 3), backend="F").as_readonly())
    with pytest.raises(ValueError, match="not fortran contiguous"):
        add_one(np.ones((5, 3)))
