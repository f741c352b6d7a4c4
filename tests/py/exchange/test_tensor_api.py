"""`dlfield.Tensor._c_api`: how extensions in Rust describe and make tensors, also with another version of the table."""

import ctypes
import textwrap
import threading
from collections.abc import Callable
from ctypes import c_int64, c_uint8

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases, run_python
from tensor_api import IS_LENT, IS_PADDED, READ_ONLY, Label, Parts, RawTensor, TensorApi, create, release, share

rx = pytest.importorskip("rust_extension")
kinds = rx.kinds


def test_a_made_tensor_releases_its_owner_once() -> None:
    parts = Parts(b"cell")
    made = create(parts.new)
    assert (made.dims, made.to_numpy().tolist(), made.ptr) == (("cell",), [0.0, 1.0], parts.memory.ctypes.data)
    view = made[1:]
    del made
    assert parts.released == 0
    del view
    assert parts.released == 1


def test_the_structs_are_those_of_version_2() -> None:
    assert [ctypes.sizeof(struct) for struct in (Label, RawTensor, TensorApi)] == [16, 120, 32]


def test_a_made_tensor_has_the_promise_of_its_allocation() -> None:
    parts = Parts(b"cell")
    parts.new.alignment_size, parts.new.flags = 8, IS_PADDED
    parts.new.aligned_index, parts.new.layout = ctypes.pointer(c_int64(1)), ctypes.pointer(c_uint8(0))
    made = create(parts.new)
    assert (made.alignment_size, made.aligned_index, made.layout) == (8, (1,), (0,))
    del made
    assert parts.released == 1


def test_a_shared_tensor_keeps_its_memory_until_each_count_is_given_back() -> None:
    parts = Parts(b"cell")
    made = create(parts.new)
    shared = share(made)
    field = shared.tensor
    assert (field.data, field.ndim, field.shape[0], shared.flags & READ_ONLY) == (made.ptr, 1, 2, 0)
    assert (shared.alignment_size, bool(shared.layout), shared.flags & IS_PADDED) == (1, False, 0)
    readonly = share(made.as_readonly())
    assert readonly.flags & READ_ONLY
    release(readonly)
    # The module adds a user to its own owner, if it is lent, and takes it over otherwise.
    shared.flags |= IS_LENT
    again = create(shared)
    del made
    release(shared)
    assert parts.released == 0
    again = create(share(again))
    assert (parts.released, again.dims, again.to_numpy().tolist()) == (0, ("cell",), [0.0, 1.0])
    del again
    assert parts.released == 1


def test_a_tensor_that_cannot_be_made_releases_its_owner() -> None:
    parts = Parts(b"")
    with pytest.raises(dl.DimsError, match="an empty label at 0"):
        create(parts.new)
    assert parts.released == 1


def test_the_last_reference_may_go_in_another_thread() -> None:
    held = [rx.count_to(4), rx.make_field((3, 4, 5))]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert rx.count_to(4).to_numpy().tolist() == [0, 1, 2, 3]


VIEWS: dict[str, Callable[[], dl.Tensor]] = {
    "no dimensions": lambda: dl.from_array(np.array(2.5)),
    "no elements": lambda: dl.zeros((2, 0, 3)),
    "eight dimensions": lambda: dl.from_array(np.random.default_rng(1).random((2, 1, 3, 1, 2, 1, 2, 2))),
    "reversed and stepped": lambda: dl.from_array(np.arange(24.0).reshape(4, 6))[::-1, ::2],
    "broadcast": lambda: dl.from_dlpack(np.broadcast_to(np.arange(3.0), (4, 3))),
    "padded rows": lambda: dl.from_array(np.arange(15.0).reshape(3, 5), backend="gt:cpu_ifirst"),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_tensors_of_every_layout_are_described(make: Callable[[], dl.Tensor]) -> None:
    field = make()
    # Described by DLPack until the table is found, then by the table.
    for view in (field, field.as_readonly(), field):
        assert rx.ndim(view) == view.ndim
        assert rx.sum(view) == pytest.approx(float(view.to_numpy().sum()))


LABELLED: dict[str, Callable[[], dl.Tensor]] = {
    "nothing set": lambda: dl.zeros((2, 3)),
    "dims": lambda: dl.zeros((2, 3, 4, 2), dims=("K", "cell é", "7", "I")),
    "halo": lambda: dl.zeros((4, 5), halo=((1, 0), (0, 2))),
    "origin": lambda: dl.zeros((4, 5), origin=(2, 3)),
    "a cut halo": lambda: dl.zeros((6, 5), halo=(2, 1))[1:],
    "read-only": lambda: dl.zeros((4, 5), dims="KI", halo=(1, 1)).as_readonly(),
    "no dimensions": lambda: dl.from_array(np.array(2.5)),
}


@pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
def test_labels_in_rust_are_those_in_python(make: Callable[[], dl.Tensor]) -> None:
    field = make()
    assert rx.ndim(field) == field.ndim
    dims, origin, halo = kinds.labels(field)
    assert (tuple(dims), tuple(origin), tuple(halo)) == (field.dims, field.origin, field.halo)


# Modules of another version, whose table is unknown or which have none.
OTHERS = {
    "another version": "dl.Tensor._c_api = new_capsule(ctypes.addressof(table), b'dlfield.Tensor._c_api', None)",
    "another name": "dl.Tensor._c_api = new_capsule(ctypes.addressof(table), b'another table', None)",
    "not a capsule": "dl.Tensor._c_api = 3",
    "none": "del dl.Tensor._c_api",
}

WITHOUT_TABLE = """
for _ in range(2):
    field = dl.zeros((3, 4), dims="KI", halo=(1, 0))
    assert rx.kinds.labels(field) == (["K", "I"], [1, 0], [(1, 1), (0, 0)])
    assert rx.sum(field.as_readonly()) == 0.0
    rx.kinds.fill(field, 2.0)
    assert rx.sum(field) == 24.0
    assert rx.count_to(3).to_numpy().tolist() == [0, 1, 2]
    try:
        rx.kinds.labelled()
    except ImportError as error:
        assert "labels and alignment of a tensor need" in str(error), error
    else:
        raise AssertionError("labels were lost")
"""


def test_an_extension_uses_dlpack_for_a_module_with_another_table() -> None:
    prelude = """
        import ctypes, dlfield as dl, rust_extension as rx
        from dlpack_structs import new_capsule
        table = (ctypes.c_uint32 * 8)(99)
    """
    run_cases(textwrap.dedent(prelude), {name: code + WITHOUT_TABLE for name, code in OTHERS.items()})


def test_the_table_on_another_class_is_refused() -> None:
    run_python(
        """
import dlfield as dl, dlfield._native, rust_extension as rx
table = vars(dl.Tensor)
class Fake(bytes):
    _c_api = table["_c_api"]
    __dlpack_c_exchange_api__ = table["__dlpack_c_exchange_api__"]
dlfield._native.Tensor = Fake
rx.count_to(3)
for fake in (Fake(bytes(1000)), Fake(bytes([1, *bytes(7)]) * 1000)):
    for call in (rx.ndim, rx.kinds.labels, rx.sum):
        try:
            call(fake)
        except TypeError as error:
            assert "expected a dlfield.Tensor" in str(error), error
        else:
            raise AssertionError(call)
"""
    )
