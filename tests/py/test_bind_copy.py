"""`on_mismatch="copy"`: copies that stand in for arguments, filled on entry and copied back where they are written."""

import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from fakes import FakeTensor, Producer
from fakes_interfaces import NOWHERE, Hooked, cuda, host
from heap import malloc_bytes, python_blocks
from oracle import Seen, values

Array = npt.NDArray[Any]


def copying(**fields: Any) -> dl.Signature:
    return dl.Signature(on_mismatch="copy", **fields)


def spec(access: Any = "r", dtype: str = "float64", dims: Any = "IJ", **keywords: Any) -> dl.FieldSpec:
    return dl.FieldSpec(dtype, dims, access=access, **keywords)


def numbers(dtype: str = "float64") -> Array:
    return np.arange(12).reshape(3, 4).astype(dtype)


def view(field: dl.Descriptor) -> Array:
    """What a kernel sees."""
    return np.asarray(Seen(field))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.LayoutWarning)
        yield


def torch_of(array: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def dataarray(array: Array) -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=("I", "J"))


WRITABLE: dict[str, Callable[[Array], Any]] = {
    "numpy": lambda array: array,
    "torch": torch_of,
    "tensor": dl.from_dlpack,
    "DLPack only": lambda array: Producer(FakeTensor(array)),
    "data interface": lambda array: Hooked(array, []),
    "buffer": lambda array: array.data,
    "DataArray": dataarray,
}
MISMATCHES: dict[str, Callable[[], Array]] = {
    "dtype": lambda: numbers("float32"),
    "layout": lambda: np.asfortranarray(numbers()),
    "alignment": lambda: misaligned(),
    "dtype and layout": lambda: np.asfortranarray(numbers("float32")),
    "float32 with gaps": lambda: np.repeat(numbers("float32"), 2, axis=1)[:, ::2],
}


def misaligned() -> Array:
    """Starts 8 bytes behind a multiple of 64."""
    block = np.zeros(40)
    array = block[(72 - block.ctypes.data) % 64 // 8 :][:12].reshape(3, 4)
    array[...] = numbers()
    return array


WANTED: dict[str, Any] = {"layout": (0, 1), "alignment_size": 64}


@pytest.mark.parametrize("mismatch", MISMATCHES)
@pytest.mark.parametrize("name", WRITABLE)
def test_copies_are_filled_and_copied_back(name: str, mismatch: str) -> None:
    array = MISMATCHES[mismatch]()
    before = array.copy()
    with copying(x=spec("rw", **WANTED)).bind(x=WRITABLE[name](array)) as fields:
        found = fields.x
        assert (found.dtype, found.shape, found.layout, found.ptr % 64) == (np.dtype("float64"), (3, 4), (0, 1), 0)
        assert (found.dims, found.origin, found.readonly, found.protocol) == (("I", "J"), (0, 0), False, "dlfield")
        assert values(found) == before.tolist()
        view(found)[1:] += 0.5
        assert (array == before).all()
    before[1:] += 0.5
    assert (array == before).all()


def test_negative_strides_and_many_elements() -> None:
    array = np.arange(1 << 20, dtype="float32").reshape(128, 64, 128)[::-1, :, ::-1]
    before = array.copy()
    sig = copying(x=spec("rw", dims="IJK", layout=(2, 1, 0), alignment_size=64))
    with sig.bind(x=array) as fields:
        assert (view(fields.x) == before).all()
        view(fields.x)[...] *= 2
    assert (array == before * 2).all()


def test_jax_is_copied_to_be_read(jnp: Any) -> None:
    array = jnp.arange(12, dtype="float32").reshape(3, 4)
    sig = copying(x=spec(), out=spec("w"))
    with sig.bind(x=array, out=np.zeros((3, 4))) as fields:
        view(fields.out)[...] = view(fields.x) * 2
        assert fields.x.dtype == np.dtype("float64")
    with pytest.raises(dl.ExchangeError, match=r'field "out": access: the memory is read-only'):
        sig.bind(x=array, out=array)


def test_what_fits_is_not_copied() -> None:
    array = numbers()
    bound = copying(x=spec("rw", layout=(0, 1)), y=spec(dtype="float32")).bind(x=array, y=numbers("float32"))
    assert bound.x.ptr == array.ctypes.data
    # Nothing has to be entered then.
    assert bound.y.dtype == np.dtype("float32")


def test_what_is_read_is_not_copied_back() -> None:
    array = numbers("float32")
    with copying(x=spec()).bind(x=array) as fields:
        view(fields.x)[...] = 7
    assert (array == numbers("float32")).all()


def test_nothing_is_copied_back_when_the_body_fails() -> None:
    def spoil(found: dl.Descriptor) -> None:
        view(found)[...] = 7
        raise ValueError("body")

    array = numbers("float32")
    with pytest.raises(ValueError, match="body"), copying(x=spec("w")).bind(x=array) as fields:
        spoil(fields.x)
    assert (array == numbers("float32")).all()


@pytest.mark.parametrize("access", ["w", "rw"])
def test_elements_that_the_body_leaves_keep_their_values(access: str) -> None:
    array = numbers("float32")
    array[0, 0] = np.nan
    with copying(x=spec(access)).bind(x=array) as fields:
        view(fields.x)[1, 1] = -5
    wanted = numbers("float32")
    wanted[0, 0], wanted[1, 1] = np.nan, -5
    np.testing.assert_array_equal(array, wanted)


def test_memory_between_the_elements_stays() -> None:
    block = np.full((6, 8), 3.0, "float32")
    with copying(x=spec("w")).bind(x=block[::2, 1:-1]) as fields:
        view(fields.x)[...] = 0
    wanted = np.full((6, 8), 3.0, "float32")
    wanted[::2, 1:-1] = 0
    assert (block == wanted).all()


def test_labels_halo_and_origin_are_the_arguments() -> None:
    halo = ((0, 0), (1, 2), (3, 1))
    field = dl.zeros((4, 8, 9), "float32", dims="KJI", halo=halo)
    field[...] = np.arange(4 * 8 * 9).reshape(4, 8, 9)
    sig = copying(x=spec("rw", dims="IJK", layout=(2, 1, 0), alignment_size=64))
    with sig.bind(x=field) as fields:
        found = fields.x
        assert (found.dims, found.shape, found.layout) == (("I", "J", "K"), (9, 8, 4), (2, 1, 0))
        assert (found.halo, found.origin) == (halo[::-1], (3, 1, 0))
        assert (found.ptr + sum(at * step for at, step in zip(found.origin, found.strides, strict=True))) % 64 == 0
        assert values(found) == field.to_numpy().transpose().tolist()
        inner = view(found)[3:-1, 1:-2]
        inner[...] = -1
        assert fields.domain == (5, 5, 4)
    seen = field.to_numpy()
    assert (seen[:, 1:-2, 3:-1] == -1).all()
    assert (seen == -1).sum() == 4 * 5 * 5


def test_an_origin_at_the_end_is_no_error() -> None:
    field = dl.ones((3, 4), "float32", dims="IJ", origin=(3, 4))
    with copying(x=spec("rw", alignment_size=64)).bind(x=field) as fields:
        assert (values(fields.x), fields.domain) == (np.ones((3, 4)).tolist(), (0, 0))


@given(st.data())
def test_any_mismatch_comes_back_as_it_was_written(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(0, 4))
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    dims = data.draw(st.permutations("IJK0").map(lambda labels: labels[:ndim]))
    wanted = data.draw(st.permutations(dims))
    field = dl.zeros(
        shape,
        data.draw(st.sampled_from(["float32", "float64"])),
        dims=dims,
        layout=data.draw(st.permutations(range(ndim))),
        alignment_size=data.draw(st.sampled_from([1, 8, 64])),
    )
    before = np.random.default_rng(1).integers(0, 100, shape).astype(field.dtype)
    field[...] = before
    layout = data.draw(st.none() | st.permutations(range(ndim)))
    access: Any = data.draw(st.sampled_from(["r", "w", "rw"]))
    alignment = data.draw(st.sampled_from([1, 32, 24]))
    sig = copying(x=dl.FieldSpec("float64", wanted, access=access, layout=layout, alignment_size=alignment))
    axes = [dims.index(dim) for dim in wanted]
    with warnings.catch_warnings(), sig.bind(x=field) as fields:
        seen = view(fields.x)
        assert seen.dtype == np.dtype("float64")
        assert seen.tolist() == before.transpose(axes).tolist()
        if access != "r":
            seen[...] += 1
    assert field.to_numpy().tolist() == (before if access == "r" else before + 1).tolist()


def test_casts_are_those_of_same_kind() -> None:
    for found, wanted, access in [
        ("int32", "float64", "r"),
        ("float64", "float32", "r"),
        ("float64", "float32", "w"),
        ("int64", "int16", "rw"),
        ("float32", "complex64", "r"),
        ("bool", "uint8", "r"),
    ]:
        with copying(x=spec(access, wanted)).bind(x=numbers(found)) as fields:
            assert values(fields.x) == numbers(found).astype(wanted).tolist()
    for found, wanted, access, refused in [
        ("float64", "int32", "r", "float64 does not become int32"),
        ("complex64", "float32", "r", "complex64 does not become float32"),
        # Not back again.
        ("int32", "float64", "rw", "float64 does not become int32"),
        ("int32", "float64", "w", "float64 does not become int32"),
        ("float32", "complex64", "w", "complex64 does not become float32"),
    ]:
        with pytest.raises(dl.DTypeError, match=rf'^field "x": dtype: {refused}'):
            copying(x=spec(access, wanted)).bind(x=numbers(found))


def test_ml_dtypes_are_cast(torch: Any) -> None:
    array = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    with copying(x=spec("rw", "float32")).bind(x=array) as fields:
        view(fields.x)[...] *= 2
    assert array.tolist() == (numbers() * 2).tolist()


def test_no_copy_mends_what_is_wrong() -> None:
    readonly = numbers("float32")
    readonly.flags.writeable = False
    shared = np.lib.stride_tricks.as_strided(np.zeros(4, "float32"), (3, 4), (0, 4), writeable=True)
    array = numbers("float32")
    cases: list[tuple[dl.FieldSpec, Any, type[Exception], str]] = [
        (spec("w"), readonly, dl.ExchangeError, r'^field "x": access: the memory is read-only'),
        (spec("w"), shared, dl.LayoutError, r'^field "x": strides'),
        (spec(), np.zeros(3, "float32"), dl.DimsError, r'^field "x": dims'),
        (spec(shape=(4, 3)), array, dl.LayoutError, r'^field "x": shape: 3 points in dimension "I"; wanted are 4'),
        (spec(), cuda(shape=(3, 4), typestr="<f8"), dl.DeviceError, r'^field "x": .*cuda:0'),
    ]
    for wanted, argument, error, message in cases:
        with pytest.raises(error, match=message):
            copying(x=wanted).bind(x=argument)
    with pytest.raises(dl.LayoutError, match=r'field "y": it is written, and shares memory with field "x"'):
        copying(x=spec(), y=spec("w")).bind(x=array, y=array)
    with pytest.raises(dl.DeviceError, match=r'^field "x": .*cpu.*cuda:0'):
        dl.Signature(device="cuda:0", on_mismatch="copy", x=spec()).bind(x=array)
    gpu = cuda(shape=(3, 4), typestr="<f4", data=(NOWHERE, False))
    with pytest.raises(dl.DTypeError, match=r'^field "x": dtype: float32'):
        dl.Signature(device="cuda:0", on_mismatch="copy", x=spec()).bind(x=gpu)


def test_read_only_memory_may_be_read() -> None:
    array = numbers("float32")
    array.flags.writeable = False
    wide = np.broadcast_to(np.float32(2), (3, 4))
    with copying(x=spec(), y=spec()).bind(x=array, y=wide) as fields:
        assert values(fields.x) == numbers().tolist()
        assert values(fields.y) == np.full((3, 4), 2.0).tolist()


def test_the_same_array_may_be_read_twice() -> None:
    array = numbers("float32")
    with copying(x=spec(), y=spec(dtype="float32")).bind(x=array, y=array) as fields:
        assert values(fields.x) == values(fields.y)


def test_a_copy_too_large_is_a_memory_error() -> None:
    vast = np.broadcast_to(np.float32(2), (1 << 22, 1 << 23))
    sig = copying(x=spec(), y=spec("w"))
    other = numbers("float32")
    held = sys.getrefcount(other)
    for _ in range(3):
        with pytest.raises(MemoryError):
            sig.bind(y=other, x=vast)
    assert sys.getrefcount(other) == held


def test_plain_use_of_a_copy_is_refused() -> None:
    array, fine = numbers("float32"), numbers()
    bound = copying(x=spec(), y=spec()).bind(x=array, y=fine)
    message = r'^field "x": a copy stands in for it, which is filled on entry and copied back on exit; use it within'
    with pytest.raises(RuntimeError, match=message):
        bound.x  # noqa: B018
    with pytest.raises(RuntimeError, match=message):
        bound["x"]
    assert bound.y.ptr == fine.ctypes.data
    assert bound.domain == (3, 4)
    assert repr(bound).startswith("Bound(x=")
    with bound:
        found = bound.x
    with pytest.raises(RuntimeError, match=message):
        bound.x  # noqa: B018
    assert values(found) == numbers().tolist()
    # The memory is the description's for as long as it lives.
    del bound
    gc.collect()
    assert values(found) == numbers().tolist()


def test_what_was_never_filled_is_never_seen() -> None:
    log: list[str] = []
    holder: list[Any] = []

    def acquire() -> None:
        with pytest.raises(RuntimeError, match="filled on entry"):
            holder[0].x  # noqa: B018
        log.append("asked")
        raise ZeroDivisionError

    holder.append(copying(x=spec(), y=spec()).bind(x=numbers("float32"), y=Hooked(numbers(), [], acquire=acquire)))
    with pytest.raises(ZeroDivisionError):
        holder[0].__enter__()
    with pytest.raises(RuntimeError, match="filled on entry"):
        holder[0].x  # noqa: B018
    assert log == ["asked"]


def test_a_bound_is_entered_once() -> None:
    array = numbers("float32")
    bound = copying(x=spec("rw")).bind(x=array)
    for _ in range(2):
        with suppress(RuntimeError), bound as fields:
            view(fields.x)[...] += 1
    assert (array == numbers("float32") + 1).all()
    with pytest.raises(RuntimeError, match="entered before; bind again for another call"):
        bound.__enter__()


def test_what_is_acquired_is_what_is_copied() -> None:
    """Copies are filled after all that was acquired, and copied back before anything is touched."""
    array = np.zeros((3, 4), "float32")
    seen: list[float] = []

    def acquire() -> None:
        array[...] = 5

    def note() -> None:
        seen.append(float(array[0, 0]))

    x = Hooked(array, [], acquire=acquire, touch=note, release=note)
    with copying(x=spec("rw"), y=spec()).bind(x=x, y=Hooked(numbers(), [], acquire=note)) as fields:
        assert values(fields.x) == np.full((3, 4), 5.0).tolist()
        view(fields.x)[...] = 6
    assert seen == [5, 6, 6]


def test_the_warning_comes_once_for_each_field_of_a_signature() -> None:
    def told(sig: dl.Signature, **fields: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sig.bind(**fields)
        assert all(warning.category is dl.LayoutWarning and warning.filename == __file__ for warning in caught)
        return [str(warning.message) for warning in caught]

    for _ in range(2):
        sig = copying(x=spec(), y=spec(layout=(1, 0)))
        first = 'field "x": dtype: float32; wanted is float64; a copy stands in for it'
        second = 'field "y": layout: [0, 1] for dims (I, J); wanted is [1, 0]; a copy stands in for it'
        fitting = np.asfortranarray(numbers())
        assert told(sig, x=numbers(), y=fitting) == []
        assert told(sig, x=numbers("float32"), y=fitting) == [first]
        assert told(sig, x=numbers("float32"), y=numbers()) == [second]
        assert told(sig, x=numbers("int32"), y=numbers("float32")) == []


def test_a_layout_that_cannot_be_copied_is_slow() -> None:
    """Where there is memory of a GPU, a warning says that it is slow, each time."""
    sig = dl.Signature(device="cuda:0", on_mismatch="copy", x=spec(layout=(1, 0)))
    for _ in range(2):
        with pytest.warns(dl.LayoutWarning, match=r'field "x": layout: \[0, 1\] .*; this is slow'):
            assert sig.bind(x=cuda(shape=(3, 4), typestr="<f8")).x.ptr == NOWHERE


def test_a_warning_that_is_an_error_leaves_nothing_behind() -> None:
    array = numbers("float32")
    sig = copying(x=spec("w"))
    held = sys.getrefcount(array)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dl.LayoutWarning, match='field "x": dtype'):
                sig.bind(x=array)
        assert sys.getrefcount(array) == held
    assert (array == numbers("float32")).all()
    # The call came to nothing, so the next one that works says it.
    with pytest.warns(dl.LayoutWarning, match="a copy stands in"):
        sig.bind(x=array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sig.bind(x=array)


def test_a_warning_may_bind() -> None:
    """What shows warnings is any code."""
    sig = copying(x=spec())
    shown: list[str] = []

    def show(message: Any, *_: Any, **__: Any) -> None:
        shown.append(str(message))
        with sig.bind(x=numbers("float32")) as fields:
            assert values(fields.x) == numbers().tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        with sig.bind(x=numbers("float32")) as fields:
            assert values(fields.x) == numbers().tolist()
    assert len(shown) == 1


def test_failures_of_hooks_and_copies_leave_nothing_acquired() -> None:
    log: list[str] = []
    array = numbers("float32")
    sig = copying(x=spec("rw"))
    x = Hooked(array, log, "x", touch=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError), sig.bind(x=x) as fields:
        view(fields.x)[...] = 1
    assert log == ["acquire x", "release x"]
    assert (array == 1).all()


def test_an_object_may_hold_a_bound_that_copies_it() -> None:
    def cycle() -> weakref.ref[Any]:
        foreign = host(numbers("float32"))
        vars(foreign)["bound"] = copying(x=spec("w")).bind(x=foreign)
        foreign.bound.__enter__()
        return weakref.ref(foreign)

    for _ in range(3):
        reference = cycle()
        gc.collect()
        assert reference() is None


def uses() -> Iterator[tuple[str, Callable[[], object]]]:
    array, hooked = numbers("float32"), Hooked(numbers("float32"), [], acquire=None, touch=None, release=lambda: None)
    failing = Hooked(numbers("float32"), [], acquire=lambda: 1 / 0)
    sig = copying(x=spec("rw", alignment_size=64))

    def entered(x: Any) -> None:
        with sig.bind(x=x) as fields:
            view(fields.x)[...] += 1

    def raising() -> None:
        with sig.bind(x=array):
            raise ValueError

    def refused() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            copying(x=spec()).bind(x=array)

    yield "bind", lambda: sig.bind(x=array)
    yield "enter", lambda: entered(array)
    yield "enter hooks", lambda: entered(hooked)
    yield "body raises", raising
    yield "acquire raises", lambda: entered(failing)
    yield "not entered", lambda: sig.bind(x=array).x
    yield "a warning that is an error", refused
    yield "no such cast", lambda: sig.bind(x=numbers("complex64"))


USES = dict(uses())


@pytest.mark.parametrize("name", USES)
def test_nothing_leaks(name: str) -> None:
    rounds = 300

    def run() -> tuple[int, int]:
        for _ in range(rounds):
            with suppress(TypeError, ValueError, RuntimeError, ZeroDivisionError, dl.LayoutWarning):
                USES[name]()
        gc.collect()
        return python_blocks(), malloc_bytes()

    run()
    before, after = run(), run()
    assert after[0] - before[0] < rounds // 2
    assert after[1] - before[1] < 8 * rounds
