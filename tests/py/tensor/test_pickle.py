"""Pickles and copies: every attribute, layout and padding are kept, and pickle protocol 5 copies no memory."""

import copy
import pickle
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import oracle
from catalog import CPU_PRESETS
from childproc import run_python
from fakes import Meddling

KEPT = ("shape", "strides", "dtype", "dims", "layout", "alignment_size", "aligned_index", "origin", "halo", "device")


def pickled(protocol: int, field: dl.Tensor) -> Any:
    return pickle.loads(pickle.dumps(field, protocol))


# As in NumPy, a shallow copy has memory of its own too.
DUPLICATES: dict[str, Callable[[dl.Tensor], dl.Tensor]] = {
    "copy": dl.Tensor.copy,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    **{f"pickle {protocol}": partial(pickled, protocol) for protocol in range(6)},
}
duplicates = pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)


def labelled(preset: str = "numpy") -> dl.Tensor:
    """A field without any default property, whose padding is not zero."""
    field = dl.empty(
        (3, 4, 5), "f4", backend=preset, dims="KIJ", halo=((1, 0), 1, (0, 2)), origin=(2, 2, 2), alignment_size=128
    )
    field.block[...] = 7.0
    field[...] = np.arange(60).reshape(3, 4, 5)
    return field


def attributes(field: dl.Tensor) -> list[Any]:
    return [getattr(field, name) for name in KEPT]


@pytest.mark.parametrize("preset", CPU_PRESETS)
@duplicates
def test_every_attribute_is_kept(duplicate: Callable[[dl.Tensor], dl.Tensor], preset: str) -> None:
    field = labelled(preset)
    twin = duplicate(field)
    assert attributes(twin) == attributes(field)
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()
    assert oracle.aligned_address(twin) % 128 == 0
    assert not twin.readonly
    twin[...] = 0
    assert field[2, 3, 4] == 59, "independent memory"


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
@duplicates
def test_scalars_and_empties(duplicate: Callable[[dl.Tensor], dl.Tensor], shape: tuple[int, ...]) -> None:
    field = dl.full(shape, 2.5, backend="gtmc")
    twin = duplicate(field)
    assert (twin.shape, twin.dims, twin.layout) == (field.shape, field.dims, field.layout)
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()


@duplicates
@pytest.mark.parametrize(
    "index", [np.s_[1:, 1:-1], np.s_[::2], np.s_[:, 2], np.s_[::-1, :, ::-2], np.s_[1:1], np.s_[2, 3, 4, ...]]
)
def test_views(duplicate: Callable[[dl.Tensor], dl.Tensor], index: Any) -> None:
    view = labelled("gt:cpu_ifirst")[index]
    twin = duplicate(view)
    assert twin.to_numpy().tolist() == view.to_numpy().tolist()
    for name in ("shape", "dtype", "dims", "origin", "halo", "layout"):
        assert getattr(twin, name) == getattr(view, name), name
    if twin.size:
        assert oracle.aligned_address(twin) % twin.alignment_size == 0
    assert len(set(oracle.addresses(twin))) == twin.size


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_keeps_readonly_and_copies_do_not(protocol: int) -> None:
    readonly = dl.ones(3).as_readonly()
    twin = pickle.loads(pickle.dumps(readonly, protocol))
    assert twin.readonly
    assert not twin.to_numpy().flags.writeable
    assert not readonly.copy().readonly


def test_deepcopy_keeps_identity_within_its_object() -> None:
    field = dl.ones(3)
    first, second = copy.deepcopy([field, field])
    assert first is second
    assert first.ptr != field.ptr


def test_pickle_is_read_by_another_process(tmp_path: Any) -> None:
    path = tmp_path / "field.pickle"
    path.write_bytes(pickle.dumps(labelled("gtmc")))
    output = run_python(f"""
        import pickle
        field = pickle.loads(open({str(path)!r}, "rb").read())
        print(field.dims, field.layout, field.strides, field.alignment_size, float(field.to_numpy().sum()))
    """)
    field = labelled("gtmc")
    assert output.strip() == f"{field.dims} {field.layout} {field.strides} 128 1770.0"


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_hold_no_bytes_outside_of_a_view(protocol: int) -> None:
    """The column that the view cuts off lies in its row padding, and must not be pickled."""
    whole = dl.full((4, 8), 1.0, alignment_size=64)
    whole[:, 7] = 12345.0
    pickled = pickle.dumps(whole[:, :7], protocol)
    assert np.float64(12345.0).tobytes() not in pickled
    assert pickle.loads(pickled).to_numpy().tolist() == [[1.0] * 7] * 4


def test_equal_fields_have_equal_pickles() -> None:
    fields = [dl.full((5, 5), 2.0, alignment_size=64) for _ in range(3)]
    assert len({pickle.dumps(field, 5) for field in fields}) == 1


def test_defaults_are_defaults_again() -> None:
    for field in (dl.zeros((4, 4)), pickle.loads(pickle.dumps(dl.zeros((4, 4))))):
        made = dl.zeros_like(field, halo=(1, 1))
        assert (made.origin, made.aligned_index) == ((1, 1), (1, 1))


def dumped(field: dl.Tensor) -> tuple[bytes, memoryview]:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(field, 5, buffer_callback=buffers.append)
    [buffer] = buffers
    return data, memoryview(buffer).cast("B")


def address(buffer: Any) -> int:
    return int(np.frombuffer(buffer, "u1").ctypes.data)


def aligned_copy(buffer: memoryview, offset: int = 0, readonly: bool = False) -> np.ndarray[Any, Any]:
    """A copy `offset` bytes after an address that fits all alignments here."""
    room = np.zeros(buffer.nbytes + 8192, "u1")
    start = -room.ctypes.data % 4096 + offset
    copy = room[start : start + buffer.nbytes]
    copy[...] = np.frombuffer(buffer, "u1")
    copy.flags.writeable = not readonly
    return copy


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_padded_fields_are_dumped_and_loaded_in_place(preset: str) -> None:
    field = labelled(preset)
    values = field.to_numpy().tolist()
    data, buffer = dumped(field)
    assert (address(buffer), buffer.nbytes) == (field.block.ptr, field.block.nbytes)
    assert len(data) < 1000
    arrived = aligned_copy(buffer)
    twin = pickle.loads(data, buffers=[arrived])
    assert not twin.readonly
    assert attributes(twin) == attributes(field)
    assert twin.to_numpy().tolist() == values
    assert (twin.block.ptr, twin.block.nbytes) == (arrived.ctypes.data, arrived.nbytes)
    assert oracle.aligned_address(twin) % 128 == 0
    twin[0, 0, 0] = 60.0
    assert pickle.loads(data, buffers=[arrived])[0, 0, 0] == 60.0
    # What was loaded goes on without a copy, too.
    assert address(dumped(twin)[1]) == arrived.ctypes.data


@pytest.mark.parametrize("preset", CPU_PRESETS)
@pytest.mark.parametrize("change", [lambda field: field, dl.Tensor.as_readonly, lambda field: field.T])
def test_padding_is_zero_and_the_elements_stay(change: Callable[[dl.Tensor], dl.Tensor], preset: str) -> None:
    field = labelled(preset)
    expected = dl.zeros(
        (3, 4, 5), "f4", backend=preset, halo=field.halo, origin=field.origin, alignment_size=128, dims="KIJ"
    )
    expected[...] = field
    assert dumped(change(field))[1] == memoryview(expected.block).cast("B")
    assert (field.to_numpy() == expected.to_numpy()).all()


@pytest.mark.parametrize("key", [np.s_[:, :, :4], np.s_[1:2], np.s_[:, 1:3], np.s_[::2], np.s_[0, :, 1:]])
@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_views_neither_ship_nor_change_their_parent(key: Any, preset: str) -> None:
    field = labelled(preset)
    before = field.block.to_numpy().copy()
    view = field[key]
    data, buffer = dumped(view)
    assert (field.block.to_numpy() == before).all()
    shipped = np.frombuffer(buffer, "f4")
    assert set(shipped) <= {0.0, *view.to_numpy().ravel().tolist()}
    twin = pickle.loads(data, buffers=[buffer])
    assert twin.to_numpy().tolist() == view.to_numpy().tolist()
    assert twin.halo == view.halo


def test_a_view_without_gaps_is_its_part_of_the_memory() -> None:
    field = dl.from_array(np.arange(60.0).reshape(3, 4, 5))
    for view in (field[1:], field[1], field[1, 1:3], field[::-1], field[2, ::-1, ::-1], field[0, 0, 0, ...]):
        data, buffer = dumped(view)
        assert buffer.nbytes == view.nbytes
        assert field.block.ptr <= address(buffer) <= view.ptr
        twin = pickle.loads(data, buffers=[buffer])
        assert (twin.ptr, twin.strides, twin.shape) == (view.ptr, view.strides, view.shape)


def test_readonly_buffers_make_readonly_fields() -> None:
    data, buffer = dumped(labelled())
    for arrived in (aligned_copy(buffer, readonly=True), memoryview(aligned_copy(buffer).data).toreadonly()):
        twin = pickle.loads(data, buffers=[arrived])
        assert twin.readonly
        assert twin.block.ptr == address(arrived)
        assert address(dumped(twin)[1]) == address(arrived)
    frozen = pickle.loads(*[dumped(dl.ones(3).as_readonly())[0]], buffers=[bytearray(24)])
    assert frozen.readonly


@pytest.mark.parametrize("offset", [4, 64, 1])
@pytest.mark.parametrize("readonly", [False, True])
def test_other_addresses_are_copied(offset: int, readonly: bool) -> None:
    field = labelled()
    data, buffer = dumped(field)
    arrived = aligned_copy(buffer, offset, readonly)
    twin = pickle.loads(data, buffers=[arrived])
    assert attributes(twin) == attributes(field)
    assert oracle.aligned_address(twin) % 128 == 0
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()
    assert not twin.readonly
    assert twin.block.nbytes == field.block.nbytes


@pytest.mark.parametrize("offset", [1, 2, 4])
def test_elements_are_aligned_without_a_promise(offset: int) -> None:
    data, buffer = dumped(dl.ones((3, 4)))
    twin = pickle.loads(data, buffers=[aligned_copy(buffer, offset)])
    assert twin.ptr % 8 == 0
    assert (twin.to_numpy() == 1).all()


@pytest.mark.parametrize("make", [bytes, bytearray, lambda buffer: np.frombuffer(bytes(buffer), "i2"), memoryview])
def test_buffers_of_any_kind(make: Callable[[memoryview], Any]) -> None:
    field = dl.from_array(np.arange(60.0).reshape(3, 4, 5))
    data, buffer = dumped(field)
    arrived = make(buffer)
    twin = pickle.loads(data, buffers=[arrived])
    assert twin.ptr == address(arrived)
    assert twin.readonly == memoryview(arrived).readonly
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()


def test_loaded_memory_stays() -> None:
    data, buffer = dumped(dl.ones(1000))
    raw = bytearray(buffer)
    twin = pickle.loads(data, buffers=[raw])
    with pytest.raises(BufferError):
        raw.append(0)
    array = np.frombuffer(buffer, "u1").copy()
    other = pickle.loads(data, buffers=[array])
    with pytest.raises(ValueError, match="resize"):
        array.resize(4, refcheck=False)
    del raw, array, buffer
    assert float(twin.sum() + other.sum()) == 2000.0


def test_round_trips_in_one_process_make_no_chain() -> None:
    field = labelled()
    first = pickle.loads(dumped(field)[0], buffers=[dumped(field)[1]])
    assert first.ptr == field.ptr
    for _ in range(10_000):
        data, buffer = dumped(first)
        first = pickle.loads(data, buffers=[buffer])
    assert first.ptr == field.ptr
    assert first.block.shape == field.block.shape


def test_elements_are_untouched_while_another_thread_writes() -> None:
    field = dl.zeros((200, 5), alignment_size=64)
    done = threading.Event()

    def count() -> None:
        array = field.to_numpy()
        for _ in range(2000):
            array += 1
        done.set()

    thread = threading.Thread(target=count)
    thread.start()
    while not done.is_set():
        dumped(field)
    thread.join()
    assert (field.to_numpy() == 2000).all()


def state_of(field: dl.Tensor) -> list[Any]:
    _, (_, state) = field.__reduce_ex__(5)
    return list(state)


def rebuilt(data: Any, state: Sequence[Any]) -> dl.Tensor:
    rebuild, _ = dl.ones(1).__reduce_ex__(5)
    made = rebuild(data, tuple(state))
    assert isinstance(made, dl.Tensor)
    return made


HUGE = 2**62
FORGED: list[tuple[int, Any, str]] = [
    (0, (88, 0), "expected 88 bytes of data, got 96"),
    (0, (HUGE, 0), "bytes of data, got 96"),
    (0, (-1, 0), "expected -1 bytes of data, got 96"),
    (0, (96, 8), "got 8 to 104"),
    (0, (96, -8), "got -8 to 88"),
    (0, (96, HUGE), "of the buffer, got|address space"),
    (0, (96, -HUGE * 2), "of the buffer, got|address space"),
    (1, ((3, 5), (4, 1)), "got 0 to 104"),
    (1, ((3, 4), (-4, 1)), "got -64 to 32"),
    (1, ((3, 4), (5, 1)), "got 0 to 112"),
    (1, ((HUGE, 4), (4, 1)), "address space|less than"),
    (1, ((HUGE, 4), (0, 1)), "address space|2\\*\\*63|order"),
    (1, ((3, 4), (2, 1)), "share memory"),
    (1, ((-3, 4), (4, 1)), "got -3 at axis"),
    (1, ((3, 4), (4,)), "strides: .* got 1 entry"),
    (1, ((3,), (4, 1)), "layout"),
    (1, ((3, 4), (HUGE * 2 - 1, 1)), "address space|less than"),
    (1, ((3, 4), (1, 3)), "order of the layout"),
    (2, "float99", "unknown dtype float99"),
    (2, "complex128", "got 0 to 192"),
    (3, (None, None, None, False, [0, 0], "none", 1, None), "layout"),
    (3, (None, None, None, False, [0], "none", 1, None), "layout"),
    (3, (["I"], None, None, False, None, "none", 1, None), "dims"),
    (3, (None, [5, 0], None, False, None, "none", 1, None), "origin"),
    (3, (None, None, [(3, 1), (0, 0)], False, None, "none", 1, None), "halo"),
    (3, (None, None, None, False, None, "some", 1, None), "padding"),
    (3, (None, None, None, False, None, "none", 0, None), "alignment_size"),
    (3, (None, None, None, False, None, "none", -8, None), "alignment_size"),
    (3, (None, None, None, False, None, "none", 64, [9, 0]), "aligned_index"),
    (3, (None, None, None, False, None, "none", 64, [HUGE, HUGE]), "align"),
    (3, (None, None, None, False, None, "none", 64, [0]), "aligned_index"),
    (3, (None, None, None, False, None, "none", 2**61, None), ""),
    (4, ("moon", False), "device"),
]


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize(("at", "part", "error"), FORGED)
def test_forged_states_are_refused(at: int, part: Any, error: str, is_shared: bool) -> None:
    state = state_of(dl.ones((3, 4)))
    state[at] = part
    state[5] = (is_shared, True)
    for offset in (0, 8):
        with pytest.raises((ValueError, TypeError, MemoryError, dl.Error), match=error or None):
            rebuilt(aligned_copy(memoryview(bytes(96)), offset), state)


def test_other_data_and_states_are_refused() -> None:
    for data in (None, 3, "text", np.zeros((4, 6))[:, :3]):
        with pytest.raises((TypeError, BufferError)):
            rebuilt(data, state_of(dl.ones((3, 4))))
    for state in ((), (1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6), (1,) * 7):
        with pytest.raises((TypeError, ValueError)):
            rebuilt(bytes(96), state)


def test_states_of_older_pickles_load() -> None:
    """What `__reduce_ex__` returned before buffers were adopted."""
    metadata = (["K", "I"], None, [(1, 1), (0, 2)], False, [0, 1], "row", 64, [1, 0])
    memory = np.zeros((3, 8))
    memory[:, :5] = np.arange(15.0).reshape(3, 5)
    data = memory.tobytes()[: (2 * 8 + 5) * 8]
    field = rebuilt(data, ((3, 5), "float64", metadata, "cpu", False))
    assert field.to_numpy().tolist() == np.arange(15.0).reshape(3, 5).tolist()
    assert (field.dims, field.halo, field.strides, field.alignment_size) == (("K", "I"), ((1, 1), (0, 2)), (64, 8), 64)
    assert not field.readonly
    with pytest.raises(ValueError, match="bytes of data"):
        rebuilt(data[:-1], ((3, 5), "float64", metadata, "cpu", False))


@pytest.mark.parametrize("error", [RuntimeError("not now"), KeyboardInterrupt(), OSError("looped")])
def test_an_error_of_the_state_reaches_the_caller(error: BaseException) -> None:
    def fail() -> None:
        # An error may be its own cause.
        raise error from error if isinstance(error, OSError) else KeyError("inner")

    state = state_of(dl.zeros((3, 4)))
    state[0] = (Meddling(fail), 0)
    with pytest.raises(type(error)) as raised:
        rebuilt(bytearray(96), state)
    assert raised.value is error


def test_a_part_of_the_wrong_type_is_named() -> None:
    state = state_of(dl.zeros((3, 4)))
    state[2] = 5
    with pytest.raises(ValueError, match=r"pickle of a dlfield\.Tensor: .*'int' object"):
        rebuilt(bytearray(96), state)
