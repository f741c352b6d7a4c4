"""The example extension in Rust when reading an argument changes another one or fails, or NumPy is missing."""

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from dlpack_structs import IS_COPIED
from fakes import FakeTensor, OldProducer, Producer

rx = pytest.importorskip("rust_extension")
kinds = rx.kinds

LONG = 100_000
MOVED = r"moved: converting an argument, or reading its labels, ran code .* pass a copy"


class Meddler:
    """An array whose `__dlpack__` runs `deed` first."""

    def __init__(self, deed: Callable[[], Any], array: Any = None) -> None:
        self.deed = deed
        self.array = np.ones(3) if array is None else array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.deed()
        return self.array.__dlpack__(**keywords)


class InterfaceMeddler:
    def __init__(self, deed: Callable[[], Any]) -> None:
        self.deed = deed
        self.array = np.ones(3)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.deed()
        return self.array.__array_interface__


class Subclass(np.ndarray[Any, Any]):
    pass


def reallocate(array: Any) -> None:
    array.resize(10 * LONG, refcheck=False)


def set_state(array: Any) -> None:
    array.__setstate__((1, (2,), array.dtype, False, bytes(16)))


def set_shape(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape = (2, LONG // 2)


def subclassed(array: Any) -> Any:
    made = Subclass(array.shape)
    made[...] = array
    return made


def wrapped(array: Any) -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims="x")


@pytest.mark.parametrize("deed", [reallocate, set_state, set_shape])
@pytest.mark.parametrize("meddler", [Meddler, InterfaceMeddler])
@pytest.mark.parametrize("passed", [np.asarray, subclassed, wrapped, dl.describe])
def test_an_array_that_another_argument_moves_is_refused(
    deed: Callable[[Any], None], meddler: Callable[..., Any], passed: Callable[[Any], Any]
) -> None:
    array = passed(np.ones(LONG))
    memory = array if isinstance(array, np.ndarray) else array.owner if isinstance(array, dl.Descriptor) else array.data
    if passed is wrapped and deed is reallocate:
        # The argument keeps the inner array, which NumPy then does not reallocate.
        with pytest.raises(ValueError, match="cannot resize"):
            kinds.several([array, meddler(lambda: deed(memory))], [])
        return
    with pytest.raises(TypeError, match=MOVED) as caught:
        kinds.several([array, meddler(lambda: deed(memory))], [])
    assert f"it was float64 of shape [{LONG}] with strides [1] at 0x" in str(caught.value)
    assert caught.value.__notes__
    # No borrow and no refusal outlives the call.
    assert kinds.several([np.ones(3), meddler(lambda: None)], []) == 6.0


class Number:
    """A number whose `__float__` runs `deed` first."""

    def __init__(self, deed: Callable[[], Any]) -> None:
        self.deed = deed

    def __float__(self) -> float:
        self.deed()
        return 2.0


@pytest.mark.parametrize("deed", [reallocate, set_state, set_shape, lambda array: array.setflags(write=False)])
def test_an_array_that_a_later_number_moves_has_no_view(deed: Callable[[Any], None]) -> None:
    """PyO3 converts numbers itself: the memory is looked at again before the first view."""
    array = np.ones(LONG)
    with pytest.raises(BaseException, match=MOVED) as caught:
        kinds.fill(array, Number(lambda: deed(array)))
    assert type(caught.value).__name__ == "PanicException"
    kept = np.ones(LONG)
    kinds.fill(kept, Number(lambda: None))
    assert set(kept) == {2.0}


def test_the_check_before_a_view_runs_no_code() -> None:
    """Other arguments may have views by then."""

    class Title:
        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            raise AssertionError("the element type is not shown")

    array: Any = np.ones(LONG)
    other: Any = np.dtype({"names": ["a"], "formats": ["f8"], "titles": [Title()]})

    def set_dtype() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array.dtype = other

    with pytest.raises(BaseException, match=r"moved: .* now it is an array with elements of a type that"):
        kinds.fill(array, Number(set_dtype))


@pytest.mark.parametrize(
    "deed",
    [
        lambda tensor: tensor.untyped_storage().resize_(0),
        lambda tensor: tensor.resize_(10 * LONG),
        lambda tensor: setattr(tensor, "data", tensor.new_zeros(3)),
    ],
)
def test_a_torch_tensor_that_a_later_number_moves_has_no_view(deed: Callable[[Any], None]) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.ones(LONG, dtype=torch.float64)
    with pytest.raises(BaseException, match=MOVED) as caught:
        kinds.fill(tensor, Number(lambda: deed(tensor)))
    assert type(caught.value).__name__ == "PanicException"


def test_bools_that_a_later_number_spoils_have_no_view() -> None:
    flags = np.ones(LONG, "?")
    with pytest.raises(BaseException, match=r"moved: .*bool with the byte 7") as caught:
        kinds.flags_before(flags, Number(lambda: flags.view("u1").fill(7)))
    assert type(caught.value).__name__ == "PanicException"
    assert kinds.flags_before(np.ones(LONG, "?"), 1.0) == (LONG, 1.0)


def test_moved_bools_are_not_read_to_check_them() -> None:
    flags = np.ones(LONG, "?")
    with pytest.raises(dl.ExchangeError, match=MOVED):
        kinds.any_flags_before(flags, Number(lambda: reallocate(flags)))
    assert kinds.any_flags_before(np.ones(LONG, "?"), 1.0) == (LONG, 1.0)


def test_a_repr_that_unwinds_leaves_later_messages_whole() -> None:
    array = np.ones(LONG)

    class Unwinding:
        def __repr__(self) -> str:
            kinds.fill(array, Number(lambda: reallocate(array)))
            return "never"

    class Labelled(np.ndarray[Any, Any]):
        __gt_dims__: Any = Unwinding()

    class Plain:
        def __repr__(self) -> str:
            return "a plain text"

    with pytest.raises(BaseException, match=MOVED):
        kinds.labels(np.ones(3).view(Labelled))
    Labelled.__gt_dims__ = Plain()
    with pytest.raises(dl.DimsError, match=r"__gt_dims__: a plain text is not"):
        kinds.labels(np.ones(3).view(Labelled))


def test_an_interrupt_in_the_labels_arrives() -> None:
    class Labelled(np.ndarray[Any, Any]):
        @property
        def __gt_dims__(self) -> Any:
            raise KeyboardInterrupt("in __gt_dims__")

    with pytest.raises(KeyboardInterrupt, match="in __gt_dims__"):
        kinds.labels(np.ones(3).view(Labelled))


def test_a_torch_tensor_that_another_argument_moves_is_refused() -> None:
    torch = pytest.importorskip("torch")
    for nbytes in (0, 8 * LONG * 10):
        tensor = torch.ones(LONG, dtype=torch.float64)
        storage = tensor.untyped_storage()
        with pytest.raises(TypeError, match=r"moved: .*torch.Tensor"):
            kinds.several([tensor, Meddler(lambda: storage.resize_(nbytes))], [])  # noqa: B023
    tensor = torch.ones(LONG, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"moved: .*torch.Tensor"):
        kinds.several([tensor, Meddler(lambda: tensor.resize_(3))], [])


def test_code_run_by_the_first_lookup_of_a_class_is_detected() -> None:
    """A type's attributes are looked up once, and the lookup may run code, such as a descriptor's."""
    torch = pytest.importorskip("torch")
    array = np.ones(LONG)

    class Table:
        def __get__(self, instance: Any, owner: Any) -> Any:
            array.resize(10 * LONG, refcheck=False)
            return torch.Tensor.__dlpack_c_exchange_api__

    class Late(torch.Tensor):  # type: ignore[misc, name-defined]
        __dlpack_c_exchange_api__ = Table()

    late = torch.ones(3, dtype=torch.float64).as_subclass(Late)
    with pytest.raises(TypeError, match=MOVED):
        kinds.several([array, late], [])
    # The lookup is cached now.
    assert kinds.several([np.ones(3), late], []) == 6.0


def test_memory_that_becomes_read_only_is_not_written() -> None:
    array = np.zeros(4)
    freeze = Meddler(lambda: setattr(array.flags, "writeable", False), dl.zeros(3))
    with pytest.raises(TypeError, match=r"moved: .*now it is read-only float64"):
        kinds.several([], [array, freeze])
    assert array.tolist() == [0.0] * 4
    # It can still be read.
    thaw = Meddler(lambda: setattr(array.flags, "writeable", True))
    assert kinds.several([array, thaw], []) == 3.0


def test_an_array_that_is_written_may_be_left_as_it_is() -> None:
    array = np.zeros(4)
    kinds.several([Meddler(lambda: array.fill(5.0))], [array])
    assert array.tolist() == [2.0] * 4


class LastWord(FakeTensor):
    """A managed tensor whose deleter runs `deed`."""

    def __init__(self, data: Any, deed: Callable[[], Any]) -> None:
        super().__init__(data)
        self.deed = deed

    def _count(self, address: int) -> None:
        super()._count(address)
        self.deed()


def test_the_release_of_a_copied_array_may_not_move_another() -> None:
    array = np.ones(LONG)
    last = LastWord(np.ones(3, "f4"), lambda: reallocate(array))
    with pytest.raises(TypeError, match="moved"):
        kinds.reading_and_copying(array, Producer(last))
    assert last.deleted == 1
    assert kinds.reading_and_copying(np.ones(3), Producer(LastWord(np.ones(3, "f4"), lambda: None))) == 6.0


def test_a_moved_array_of_an_outer_call_does_not_fail_an_inner_call() -> None:
    array = np.zeros(LONG)

    def reshape_and_sum() -> float:
        set_shape(array)
        return float(kinds.several([Meddler(lambda: None)], []))

    # The outer call already has a view of the array, so it is too late for a refusal.
    assert kinds.viewing(array, reshape_and_sum) == (LONG, 3.0)


def test_bools_are_checked_again() -> None:
    flags = np.array([True, False, True])

    def spoil() -> None:
        flags.view("u1")[1] = 2

    with pytest.raises(TypeError, match=r"moved: .* bool with the byte 2"):
        kinds.both_flags(flags, Meddler(spoil, np.array([True])))
    flags.view("u1")[1] = 1
    assert kinds.both_flags(flags, Meddler(lambda: None, np.array([True]))) == 4


def test_bools_are_checked_only_without_a_writer() -> None:
    flags = np.array([0, 1, 2], "u1").view("?")
    # Otherwise the error would be about the byte 2.
    said = kinds.writing_flags(flags[:2], lambda: refused(lambda: kinds.flags(flags)))
    assert said.startswith("overlap: this array would be read, but another argument or a running call writes memory")
    capsule = FakeTensor(np.array([0, 1, 2], "u1"), dtype=(6, 8, 1)).capsule()
    assert "bool with the byte 2" in refused(lambda: kinds.flags(capsule))


def test_bools_of_a_copy_are_bools() -> None:
    table = np.array([[True, False], [True, True]])
    assert kinds.flags_or_copy(table) == (False, 3)
    assert kinds.flags_or_copy(table.T) == (True, 3)
    table.view("u1")[1, 1] = 2
    for flags in (table, table.T, FakeTensor(table.view("u1"), dtype=(6, 8, 1)).capsule()):
        assert "bool with the byte 2" in refused(lambda: kinds.flags_or_copy(flags))  # noqa: B023


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_overlaps_is_not_consumed(version: tuple[int, int] | None) -> None:
    array = np.zeros(4)
    fake = FakeTensor(array, version=version)
    capsule = fake.capsule()
    assert "overlap" in kinds.writing(array, lambda: refused(lambda: rx.sum(capsule)))
    if version is not None:
        assert "overlap" in kinds.reading(array, lambda: refused(lambda: kinds.fill(capsule, 1.0)))[1]
    assert fake.deleted == 0
    assert rx.sum(capsule) == 4.0
    assert fake.deleted == 1


@pytest.mark.parametrize("data", [np.ones((2, 2), "c16"), np.ones(3)])
def test_a_capsule_that_cannot_be_copied_is_not_consumed(data: Any) -> None:
    fake = FakeTensor(data)
    capsule = fake.capsule()
    refused(lambda: kinds.or_copy(capsule))
    assert fake.deleted == 0
    assert dl.from_dlpack(capsule).to_numpy().tolist() == data.tolist()


def test_a_capsule_with_a_copy_is_not_consumed() -> None:
    fake = FakeTensor(np.ones(3), flags=IS_COPIED)
    capsule = fake.capsule()
    for call in (rx.sum, rx.ndim, lambda given: kinds.fill(given, 1.0)):
        assert "the producer has made a copy" in refused(lambda: call(capsule))  # noqa: B023
    assert fake.deleted == 0
    assert dl.from_dlpack(capsule).to_numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "refuse",
    [
        kinds.c_order,
        lambda source: kinds.fill(source, 1.0),
        lambda source: kinds.both_flags(np.array([True]), source),
        lambda source: kinds.several([np.ones(3), source, [1.0]], []),
    ],
)
@pytest.mark.parametrize("flags", [0, IS_COPIED, 1])
def test_exported_memory_is_released_when_refused(refuse: Callable[[Any], Any], flags: int) -> None:
    data = np.arange(3, dtype="f8")
    data.flags.writeable = False
    fake = FakeTensor(data, flags=flags, dtype=(2, 64, 1), strides=(0,))
    refused(lambda: refuse(Producer(fake)))
    gc.collect()
    assert fake.deleted == 1


def test_no_memory_for_a_copy_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        kinds.or_copy(np.broadcast_to(np.float32(0), (2**42, 4)))


def test_writable_of_a_legacy_description_is_kept() -> None:
    fake = FakeTensor(np.zeros(3), version=None)
    seen = dl.describe(OldProducer(fake), writable=True)
    fresh = FakeTensor(fake.data, version=None)
    seen.owner.tensor = fresh
    kinds.fill(seen, 7.0)
    assert fake.data.tolist() == [7.0] * 3
    seen.owner.tensor = FakeTensor(fake.data, version=None)
    unsure = dl.describe(seen.owner)
    seen.owner.tensor = FakeTensor(fake.data, version=None)
    assert "read-only" in refused(lambda: kinds.fill(unsure, 7.0))


def test_a_description_of_a_capsule_says_why_it_is_refused() -> None:
    seen = dl.describe(dl.zeros(3).__dlpack__())
    with pytest.raises(TypeError, match=r"a dlfield.Descriptor of a DLPack capsule, .*from_dlpack") as caught:
        rx.sum(seen)
    assert type(caught.value) is TypeError


def test_a_process_without_dlfield_says_what_is_refused() -> None:
    code = """
        import sys
        import rust_extension as rx
        sys.modules["dlfield"] = sys.modules["dlfield._native"] = None
        try:
            rx.sum([1.0])
        except TypeError as error:
            print(type(error).__name__, "has no protocol of an array" in str(error))
        try:
            rx.kinds.fail()
        except ValueError as error:
            print(type(error).__name__, error)
    """
    assert run_python(code).splitlines() == [
        "TypeError True",
        "LayoutError shape: extent -1 at axis 0; allowed is 0 or more",
    ]


def test_a_failing_import_of_dlfield_is_raised() -> None:
    code = """
        import sys
        import rust_extension as rx

        class Broken:
            def find_spec(self, name, path=None, target=None):
                if name == "dlfield._native":
                    raise ImportError("built for another Python")

        sys.meta_path.insert(0, Broken())
        for attempt in range(2):
            try:
                rx.kinds.fail()
            except ImportError as error:
                print(error, error.__notes__)
    """
    note = "['while raising dlfield.LayoutError: shape: extent -1 at axis 0; allowed is 0 or more']"
    assert run_python(code).splitlines() == [f"built for another Python {note}"] * 2


WITHOUT_NUMPY = """
    import array
    import sys
    import warnings

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "numpy":
                raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    sys.meta_path.insert(0, Blocked())

    class Interface:
        numbers = array.array("d", [1.0, 2.0])
        __array_interface__ = {"shape": (2,), "typestr": "<f8", "data": (numbers.buffer_info()[0], False), "version": 3}

    class Array:
        def __array__(self, copy=None):
            return [1.0]

    class Void:
        dtype = "V2"
        __array_interface__ = Interface.__array_interface__ | {"typestr": "|V2"}

    def said(call, *arguments):
        try:
            return call(*arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
"""


def test_arrays_are_read_without_numpy() -> None:
    pytest.importorskip("torch")
    code = """
    import rust_extension as rx

    for source in (Interface.numbers, memoryview(Interface.numbers), Interface()):
        print(said(rx.sum, source))
    with warnings.catch_warnings(action="ignore"):
        import torch
    tensor = torch.ones(3, dtype=torch.float64)
    print(said(rx.sum, tensor), said(rx.sum, tensor.__dlpack__()))
    print(said(rx.ndim, b"bytes"), said(rx.ndim, bytearray(3)))
    rx.kinds.fill(Interface.numbers, 4.0)
    print(said(rx.kinds.or_copy, memoryview(array.array("f", [1.0, 2.0])).cast("B").cast("f", (1, 2))))
    print(said(rx.sum, Array()).split(";")[0])
    print(said(rx.sum, [1.0]).split(";")[0])
    print(said(rx.sum, Void()))
    print("numpy" in sys.modules)
    """
    assert run_python(WITHOUT_NUMPY + code).splitlines() == [
        "3.0",
        "3.0",
        "3.0",
        "3.0 3.0",
        "1 1",
        "(True, [1.0, 2.0])",
        "TypeError: __array__: [1.0]",
        "TypeError: obj: <class 'list'> has no protocol of an array",
        "ModuleNotFoundError: No module named 'numpy'",
        "False",
    ]


@pytest.mark.parametrize("inner", [np.asarray, dl.from_array, lambda array: dl.from_array(array).as_readonly()])
@pytest.mark.parametrize("outer", [lambda array: array, wrapped, dl.describe])
def test_unmoved_arrays_are_accepted(inner: Callable[[Any], Any], outer: Callable[[Any], Any]) -> None:
    arrays = [outer(inner(np.ones(3))) for _ in range(3)]
    assert kinds.several([*arrays, Meddler(lambda: None), *arrays], []) == 21.0
