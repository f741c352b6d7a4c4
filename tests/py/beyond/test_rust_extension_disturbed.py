"""The example extension in Rust when reading an argument changes another one or fails, or NumPy is missing."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import FakeTensor, Producer

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


def reallocate(array: Any) -> None:
    array.resize(10 * LONG, refcheck=False)


def set_state(array: Any) -> None:
    array.__setstate__((1, (2,), array.dtype, False, bytes(16)))


def set_shape(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape = (2, LONG // 2)


def subclassed(array: Any) -> Any:
    class Subclass(np.ndarray[Any, Any]):
        pass

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


def panics(message: str, call: Callable[..., Any], array: Any, deed: Callable[[], Any]) -> None:
    """PyO3 converts numbers itself: the memory is looked at again before the first view."""
    with pytest.raises(BaseException, match=message) as caught:
        call(array, Number(deed))
    assert type(caught.value).__name__ == "PanicException"


@pytest.mark.parametrize("deed", [reallocate, set_state, set_shape, lambda array: array.setflags(write=False)])
def test_an_array_that_a_later_number_moves_has_no_view(deed: Callable[[Any], None]) -> None:
    array = np.ones(LONG)
    panics(MOVED, kinds.fill, array, lambda: deed(array))
    kept = np.ones(LONG)
    kinds.fill(kept, Number(lambda: None))
    assert set(kept) == {2.0}


TORCH_DEEDS: list[Callable[[Any], Any]] = [
    lambda tensor: tensor.untyped_storage().resize_(0),
    lambda tensor: tensor.untyped_storage().resize_(80 * LONG),
    lambda tensor: tensor.resize_(3),
    lambda tensor: tensor.resize_(10 * LONG),
    lambda tensor: setattr(tensor, "data", tensor.new_zeros(3)),
]


@pytest.mark.parametrize("deed", TORCH_DEEDS)
def test_a_torch_tensor_that_another_argument_moves_is_refused(torch: Any, deed: Callable[[Any], Any]) -> None:
    tensor = torch.ones(LONG, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"moved: .*torch.Tensor"):
        kinds.several([tensor, Meddler(lambda: deed(tensor))], [])
    later = torch.ones(LONG, dtype=torch.float64)
    panics(MOVED, kinds.fill, later, lambda: deed(later))


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

    panics(r"moved: .* now it is an array with elements of a type that", kinds.fill, array, set_dtype)


def test_bools_that_a_later_number_spoils_have_no_view() -> None:
    flags = np.ones(LONG, "?")
    panics(r"moved: .*bool with the byte 7", kinds.flags_before, flags, lambda: flags.view("u1").fill(7))
    assert kinds.flags_before(np.ones(LONG, "?"), 1.0) == (LONG, 1.0)
    # Moved ones are not read to check them.
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
    with pytest.raises(dl.DimsError, match=r"__gt_dims__: .* got a plain text"):
        kinds.labels(np.ones(3).view(Labelled))


def test_labels_that_raise_or_move_the_memory_are_an_error() -> None:
    class Labelled(np.ndarray[Any, Any]):
        def deed(self) -> None:
            reallocate(self)

        @property
        def __gt_dims__(self) -> Any:
            self.deed()
            return ("I",)

    class Interrupting(Labelled):
        def deed(self) -> None:
            raise KeyboardInterrupt("in __gt_dims__")

    with pytest.raises(KeyboardInterrupt, match="in __gt_dims__"):
        kinds.labels(Interrupting((3,)))
    with pytest.raises(TypeError, match="changed"):
        kinds.labels(Labelled((LONG,)))


def test_code_run_by_the_first_lookup_of_a_class_is_detected(torch: Any) -> None:
    """A type's attributes are looked up once, and the lookup may run code, such as a descriptor's."""
    array = np.ones(LONG)

    class Table:
        def __get__(self, instance: Any, owner: Any) -> Any:
            array.resize(10 * LONG, refcheck=False)
            return torch.Tensor.__dlpack_c_exchange_api__

    class Late(torch.Tensor):  # type: ignore[misc]
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


@pytest.mark.parametrize("inner", [np.asarray, dl.from_array, lambda array: dl.from_array(array).as_readonly()])
@pytest.mark.parametrize("outer", [lambda array: array, wrapped, dl.describe])
def test_unmoved_arrays_are_accepted(inner: Callable[[Any], Any], outer: Callable[[Any], Any]) -> None:
    arrays = [outer(inner(np.ones(3))) for _ in range(3)]
    assert kinds.several([*arrays, Meddler(lambda: None), *arrays], []) == 21.0


def test_importing_an_array_to_keep_may_not_move_another() -> None:
    array = np.ones(LONG)
    with pytest.raises(TypeError, match="moved"):
        rx.kinds_views.sum_and_keep(array, Meddler(lambda: reallocate(array)))
    assert rx.kinds_views.sum_and_keep(np.ones(3), np.zeros(3))[0] == 3.0
