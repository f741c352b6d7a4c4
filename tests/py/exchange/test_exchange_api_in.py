"""`describe` and `from_dlpack` through a producer's C exchange API."""

from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from catalog import READERS, dtype_named
from dlpack_structs import READ_ONLY, capsule_pointer
from fakes import FakeTensor, Producer, exchange_type, int_matrix

ROWS = [[0, 1, 2], [3, 4, 5]]


def test_a_table_that_fails_without_an_exception_is_named(read: Callable[..., Any]) -> None:
    kind = exchange_type(None, silent=True)

    class Both(kind, Producer):  # type: ignore[misc, valid-type]
        pass

    for obj in (kind(), Both(FakeTensor(int_matrix()))):
        with pytest.raises(dl.ExchangeError) as caught:
            read(obj)
        message = str(caught.value)
        assert message.startswith("__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync: ")
        assert type(obj).__name__ in message


def test_cuda_cores_view_of_bfloat16_is_an_error_that_names_it() -> None:
    """The view's table fails without an exception."""
    views = pytest.importorskip("cuda.core.utils").StridedMemoryView
    view = views.from_any_interface(dl.zeros(3, dtype_named("bfloat16")), stream_ptr=-1)
    for read in READERS:
        with pytest.raises(dl.ExchangeError, match=r"^__dlpack_c_exchange_api__\.\w+: .*StridedMemoryView"):
            read(view)


def test_a_table_that_raises_a_buffer_error_is_followed_by_dlpack(read: Callable[..., Any]) -> None:
    """dlfield's own table refuses read-only memory so: consumers of `__dlpack__` respect its read-only flag."""

    class Both(exchange_type(None, error=BufferError("not this way")), Producer):  # type: ignore[misc]
        pass

    fake = FakeTensor(int_matrix(), flags=READ_ONLY)
    found = read(Both(fake))
    assert (found.ptr, found.readonly) == (fake.data.ctypes.data, True)
    del found
    assert fake.settled()


def test_other_errors_of_a_table_are_final() -> None:
    class Both(exchange_type(None, error=RuntimeError("mine")), Producer):  # type: ignore[misc]
        pass

    producer = Both(FakeTensor(int_matrix()))
    with pytest.raises(RuntimeError, match="mine"):
        dl.from_dlpack(producer)
    assert not producer.calls
    with pytest.raises(BufferError, match="not this way"):
        dl.from_dlpack(exchange_type(None, error=BufferError("not this way"))())


def test_exchange_api_of_a_foreign_major_is_walked_back() -> None:
    older = exchange_type(FakeTensor(int_matrix()))
    address = capsule_pointer(older.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    newer = exchange_type(None, version=(2, 0), prev_api=address)
    assert dl.from_dlpack(newer()).to_numpy().tolist() == ROWS
    assert older.handed_out == 1


def test_exchange_api_of_a_foreign_major_alone_moves_on_to_dlpack() -> None:
    class Both(exchange_type(None, version=(2, 0)), Producer):  # type: ignore[misc]
        pass

    assert dl.from_dlpack(Both(FakeTensor(int_matrix()))).to_numpy().tolist() == ROWS


def test_exchange_attribute_that_is_no_capsule() -> None:
    class Odd:
        __dlpack_c_exchange_api__ = 3

    with pytest.raises(dl.Error, match="__dlpack_c_exchange_api__"):
        dl.from_dlpack(Odd())


@pytest.mark.parametrize("take", [dl.describe, dl.from_dlpack, lambda obj: dl.describe(obj, dims="I")])
def test_a_tensor_that_moves_during_the_import_is_described_at_its_new_address(torch: Any, take: Any) -> None:
    """A subclass may run any code in `is_neg`, which tells whether a tensor is negated lazily."""

    class Moving(torch.Tensor):  # type: ignore[misc]
        def is_neg(self) -> bool:
            self.untyped_storage().resize_(8 * 1_000_000)
            return False

    tensor = torch.ones(400_000, dtype=torch.float64).as_subclass(Moving)[::2]
    assert take(tensor).ptr == tensor.data_ptr()
