"""Pickles and copies: NumPy's lose padding and layout, ours keep every attribute."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import oracle
from catalog import CODES, CPU_PRESETS, dtype_named
from childproc import run_python

KEPT = ("shape", "dtype", "dims", "layout", "strides", "alignment_size", "aligned_index", "origin", "halo", "device")

# As in NumPy, a shallow copy has memory of its own too.
COPIES: list[Callable[[dl.Tensor], dl.Tensor]] = [dl.Tensor.copy, copy.copy, copy.deepcopy]
PICKLES = [(lambda field, protocol=protocol: pickle.loads(pickle.dumps(field, protocol))) for protocol in (2, 3, 4, 5)]


def labelled(preset: str) -> dl.Tensor:
    """A filled field without any default property."""
    field = dl.zeros(
        (3, 4, 5), "f4", backend=preset, dims="KIJ", halo=((1, 0), 1, (0, 2)), origin=(2, 2, 2), alignment_size=128
    )
    field[...] = np.arange(60).reshape(3, 4, 5)
    return field


@pytest.mark.parametrize("preset", CPU_PRESETS)
@pytest.mark.parametrize("duplicate", [*COPIES, *PICKLES])
def test_every_attribute_is_kept(duplicate: Callable[[dl.Tensor], dl.Tensor], preset: str) -> None:
    field = labelled(preset)
    twin = duplicate(field)
    for name in KEPT:
        assert getattr(twin, name) == getattr(field, name), name
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()
    assert oracle.aligned_address(twin) % 128 == 0
    assert not twin.readonly
    twin[...] = 0
    assert field[2, 3, 4] == 59, "independent memory"


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("duplicate", [*COPIES, *PICKLES])
def test_every_dtype_keeps_its_bits(duplicate: Callable[[dl.Tensor], dl.Tensor], name: str) -> None:
    field = dl.zeros((3, 5), dtype_named(name), layout=(1, 0))
    raw = np.random.default_rng(0).integers(0, 2 if name == "bool" else 256, 15 * field.itemsize, dtype="u1")
    field.to_numpy().T[...] = raw.view(field.dtype).reshape(5, 3)
    assert duplicate(field).to_numpy().tobytes("F") == raw.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
@pytest.mark.parametrize("duplicate", [*COPIES, *PICKLES])
def test_scalars_and_empties(duplicate: Callable[[dl.Tensor], dl.Tensor], shape: tuple[int, ...]) -> None:
    field = dl.full(shape, 2.5, backend="gtmc")
    twin = duplicate(field)
    assert (twin.shape, twin.dims, twin.layout) == (field.shape, field.dims, field.layout)
    assert twin.to_numpy().tolist() == field.to_numpy().tolist()


@pytest.mark.parametrize("duplicate", [*COPIES, *PICKLES])
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


def test_copy_of_a_broadcast_has_memory_for_every_element() -> None:
    twin = dl.from_dlpack(np.broadcast_to(np.arange(3.0), (2, 3))).copy()
    assert len(set(oracle.addresses(twin))) == 6
    assert twin.to_numpy().tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_keeps_readonly_and_copies_do_not(protocol: int) -> None:
    readonly = dl.ones(3).as_readonly()
    twin = pickle.loads(pickle.dumps(readonly, protocol))
    assert twin.readonly
    assert not twin.to_numpy().flags.writeable
    assert not readonly.copy().readonly


def test_protocols_0_and_1_work_too() -> None:
    for protocol in (0, 1):
        assert pickle.loads(pickle.dumps(dl.ones(3), protocol)).to_numpy().tolist() == [1, 1, 1]


def test_deepcopy_keeps_identity_within_its_object() -> None:
    field = dl.ones(3)
    first, second = copy.deepcopy([field, field])
    assert first is second
    assert first.ptr != field.ptr


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_protocol_5_is_out_of_band(preset: str) -> None:
    field = dl.full((64, 64, 8), 1.5, backend=preset)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(field, 5, buffer_callback=buffers.append)
    assert len(data) < 1000
    assert sum(memoryview(buffer).nbytes for buffer in buffers) >= field.nbytes
    twin = pickle.loads(data, buffers=buffers)
    assert (twin.to_numpy() == 1.5).all()
    assert (twin.strides, twin.layout) == (field.strides, field.layout)


def test_out_of_band_pickling_copies_nothing() -> None:
    field = dl.ones((64, 64))
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps(field, 5, buffer_callback=buffers.append)
    [buffer] = buffers
    raw = np.frombuffer(memoryview(buffer).cast("B"), "u1")
    assert field.ptr <= raw.ctypes.data + raw.nbytes - 1
    assert raw.ctypes.data <= field.ptr < raw.ctypes.data + raw.nbytes


def test_out_of_band_readonly_data_stays_readonly() -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(dl.full((8, 8), 2.5), 5, buffer_callback=buffers.append)
    frozen = [bytes(memoryview(buffer).cast("B")) for buffer in buffers]
    twin = pickle.loads(data, buffers=frozen)
    assert (twin.to_numpy() == 2.5).all()
    if not twin.readonly:
        twin[...] = 0
    assert frozen == [bytes(memoryview(buffer).cast("B")) for buffer in buffers], "bytes objects are immutable"


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
