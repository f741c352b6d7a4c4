"""The hooks of data interfaces around a stencil: `acquire`, `touch`, `release`."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import SIG, Array, array
from fakes import FakeTensor, Producer
from fakes_interfaces import MISSING, NOWHERE, Exposing, Hooked, device_interface


@pytest.mark.parametrize("attribute", ["__gt_data_interface__", "__gt_interface__"])
@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("called", [False, True])
def test_all_are_called_in_order(attribute: str, device: Any, called: bool) -> None:
    log: list[str] = []
    a, b, c = (Hooked(array(), log, name, attribute=attribute, device=device, called=called) for name in "abc")
    bound = SIG.bind(c=c, b=b, a=a)
    assert log == []
    with bound:
        assert log == ["acquire a", "acquire b", "acquire c"]
        log.clear()
    assert log == ["touch b", "touch c", "release a", "release b", "release c"]


def test_plain_use_calls_none() -> None:
    log: list[str] = []
    bound = SIG.bind(a=Hooked(array(), log), b=Hooked(array(), log))
    assert bound.b.shape == (3, 4)
    del bound
    assert log == []


def test_all_are_called_when_the_body_raises() -> None:
    log: list[str] = []
    error = ValueError("body")
    bound = SIG.bind(a=Hooked(array(), log, "a"), b=Hooked(array(), log, "b"))
    with pytest.raises(ValueError, match="body") as caught, bound:
        raise error
    assert caught.value is error
    assert log == ["acquire a", "acquire b", "touch b", "release a", "release b"]


def test_hooks_may_be_absent_or_none() -> None:
    log: list[str] = []
    a = Hooked(array(), log, "a", acquire=MISSING, touch=None)
    b = Hooked(array(), log, "b", release=None)
    with SIG.bind(a=a, b=b, c=array()):
        pass
    assert log == ["acquire b", "touch b", "release a"]


@pytest.mark.parametrize("key", ["acquire", "touch", "release"])
def test_hooks_that_cannot_be_called_are_refused(key: str) -> None:
    changes: dict[str, Any] = {key: 5}
    with pytest.raises(
        dl.ExchangeError, match=rf'field "b": {key}: 5; allowed is a callable without arguments, or None'
    ):
        SIG.bind(a=array(), b=Hooked(array(), [], **changes))


def test_the_same_object_twice_is_acquired_twice() -> None:
    log: list[str] = []
    sig = dl.Signature(a=dl.FieldSpec("float64", "IJ"), b=dl.FieldSpec("float64", "IJ"))
    both = Hooked(array(), log, "x")
    with sig.bind(a=both, b=both):
        pass
    assert log == ["acquire x", "acquire x", "release x", "release x"]


def failing(message: str, log: list[str], error: type[BaseException] = RuntimeError) -> Callable[[], None]:
    def fail() -> None:
        log.append(message)
        raise error(message)

    return fail


def test_fields_acquired_before_a_failure_are_released() -> None:
    log: list[str] = []
    b = Hooked(array(), log, "b", acquire=failing("fail b", log))
    with (
        pytest.raises(RuntimeError, match="fail b"),
        SIG.bind(a=Hooked(array(), log, "a"), b=b, c=Hooked(array(), log, "c")) as _,
    ):
        raise AssertionError("entered")
    assert log == ["acquire a", "fail b", "release a"]


def test_a_release_after_a_failed_acquire_may_fail_too() -> None:
    log: list[str] = []
    a = Hooked(array(), log, "a", release=failing("fail a", log))
    b = Hooked(array(), log, "b", acquire=failing("fail b", log))
    bound = SIG.bind(a=a, b=b)
    with pytest.raises(ExceptionGroup, match="several hooks failed") as caught:
        bound.__enter__()
    assert [str(error) for error in caught.value.exceptions] == ["fail b", "fail a"]
    with pytest.raises(RuntimeError, match="entered twice"):
        bound.__enter__()


@pytest.mark.parametrize("key", ["touch", "release"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_failing_hook_does_not_stop_the_others(key: str, error: type[BaseException]) -> None:
    log: list[str] = []
    changes: dict[str, Any] = {key: failing(f"{key} b", log, error)}
    fields = {"a": Hooked(array(), log, "a"), "b": Hooked(array(), log, "b", **changes), "c": Hooked(array(), log, "c")}
    with pytest.raises(error, match=f"{key} b"), SIG.bind(**fields):
        log.clear()
    assert log == ["touch b", "touch c", "release a", "release b", "release c"]


def test_several_failures_are_raised_together() -> None:
    log: list[str] = []
    fields = {
        name: Hooked(array(), log, name, touch=failing(f"touch {name}", log), release=failing(f"release {name}", log))
        for name in "abc"
    }
    with pytest.raises(ExceptionGroup, match="several hooks failed") as caught, SIG.bind(**fields):
        log.clear()
    assert log == ["touch b", "touch c", "release a", "release b", "release c"]
    assert [str(error) for error in caught.value.exceptions] == log
    interrupted = Hooked(array(), [], touch=failing("x", []), release=failing("y", [], KeyboardInterrupt))
    with pytest.raises(BaseExceptionGroup) as interrupt, SIG.bind(a=array(), b=interrupted):
        pass
    assert not isinstance(interrupt.value, Exception)


def test_the_bodys_error_is_the_context_of_a_hooks_error() -> None:
    body = ValueError("body")
    one = Hooked(array(), [], release=failing("one", []))
    with pytest.raises(RuntimeError, match="one") as alone, SIG.bind(a=array(), b=one):
        raise body
    assert alone.value.__context__ is body
    both = Hooked(array(), [], touch=failing("one", []), release=failing("two", []))
    with pytest.raises(ExceptionGroup) as several, SIG.bind(a=array(), b=both):
        raise body
    assert several.value.__context__ is body


def test_a_bound_is_entered_and_left_once() -> None:
    log: list[str] = []
    bound = SIG.bind(a=Hooked(array(), log, "a"), b=array())
    with pytest.raises(RuntimeError, match="__exit__ without __enter__"):
        bound.__exit__(None, None, None)
    with bound, pytest.raises(RuntimeError, match=r"entered twice; call bind\(\) again"):
        bound.__enter__()
    for again in (bound.__enter__, lambda: bound.__exit__(None, None, None)):
        with pytest.raises(RuntimeError, match=r"entered twice|without __enter__"):
            again()
    assert log == ["acquire a", "release a"]
    # Its descriptions stay readable.
    assert bound.a.shape == (3, 4)


def test_a_bound_is_entered_by_one_thread() -> None:
    log: list[str] = []
    bound = SIG.bind(a=Hooked(array(), log, "a"), b=array())
    start, outcomes = threading.Barrier(4), []

    def enter() -> None:
        start.wait()
        try:
            bound.__enter__()
            outcomes.append("entered")
        except RuntimeError:
            outcomes.append("refused")

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["entered", "refused", "refused", "refused"]
    assert log == ["acquire a"]


def dlpack_with_hooks(inside: Hooked) -> Producer:
    producer = Producer(FakeTensor(inside.array))
    vars(producer)["__gt_data_interface__"] = {None: inside.buffer}
    return producer


def subclass_with_hooks(inside: Hooked) -> Any:
    class Storage(np.ndarray[Any, Any]):
        __gt_data_interface__ = {"cpu": inside.buffer}  # noqa: RUF012

    return inside.array.view(Storage)


OTHERS: dict[str, tuple[Callable[[Hooked], Any], str]] = {
    "DLPack": (dlpack_with_hooks, "dlpack"),
    "ndarray": (subclass_with_hooks, "numpy"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_hooks_run_for_objects_read_by_another_protocol(name: str) -> None:
    log: list[str] = []
    make, protocol = OTHERS[name]
    b = make(Hooked(array(), log, "b"))
    with SIG.bind(a=array(), b=b) as fields:
        assert fields.b.protocol == protocol
    assert log == ["acquire b", "touch b", "release b"]


class Duck:
    """A duck array that xarray wraps unchanged."""

    def __init__(self, hooked: Hooked) -> None:
        self.hooked = hooked
        self.__gt_data_interface__ = {None: hooked.buffer}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hooked.array.shape

    @property
    def ndim(self) -> int:
        return self.hooked.array.ndim

    @property
    def dtype(self) -> Any:
        return self.hooked.array.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.hooked.array

    def __array_function__(self, *_args: Any) -> Any:
        return NotImplemented

    def __array_ufunc__(self, *_args: Any) -> Any:
        return NotImplemented


def test_hooks_run_for_arrays_in_xarray(xarray: Any) -> None:
    log: list[str] = []
    wrapped = xarray.DataArray(Duck(Hooked(np.zeros((4, 3)), log, "b")), dims=("J", "I"))
    assert isinstance(wrapped.data, Duck)
    with SIG.bind(a=array(), b=wrapped) as fields:
        assert (fields.b.shape, fields.b.protocol) == ((3, 4), "gt")
    assert log == ["acquire b", "touch b", "release b"]


def test_the_hooks_are_those_of_the_device() -> None:
    log: list[str] = []
    cpu, gpu = Hooked(array(), log, "host"), Hooked(array(), log, "gpu")
    hooks = {key: gpu.buffer[key] for key in ("acquire", "touch", "release")}

    def refuse() -> Any:
        raise AssertionError("data would be moved")

    on_gpu = {**device_interface(shape=(3, 4), typestr="<f8"), **hooks}
    spec = dl.FieldSpec("float64", "IJ", access="rw")
    with dl.Signature(x=spec).bind(x=Exposing(__gt_data_interface__={"gpu": refuse, None: lambda: cpu.buffer})):
        pass
    assert log == ["acquire host", "touch host", "release host"]
    log.clear()
    both = Exposing(__gt_data_interface__={None: refuse, ("gpu", 0): lambda: on_gpu})
    with dl.Signature(device="cuda:0", x=spec).bind(x=both) as fields:
        assert fields.x.ptr == NOWHERE
    assert log == ["acquire gpu", "touch gpu", "release gpu"]


def test_hooks_may_do_anything() -> None:
    """A hook may bind, try to enter again, and drop the last reference to the bound object."""
    done: list[Any] = []
    holder: dict[str, Any] = {}

    def acquire() -> None:
        with SIG.bind(a=array(), b=array()) as fields:
            done.append(fields.domain)
        with pytest.raises(RuntimeError, match="entered twice"):
            holder["bound"].__enter__()
        done.append(holder["bound"].b.shape)
        holder.clear()
        gc.collect()

    holder["bound"] = SIG.bind(a=Hooked(array(), [], acquire=acquire), b=array())
    with holder["bound"] as fields:
        assert fields.domain == (3, 4)
    assert done == [(3, 4), (3, 4)]
    assert holder == {}


def test_a_hook_cannot_exit_before_all_is_acquired() -> None:
    log: list[str] = []
    holder: list[Any] = []

    def acquire() -> None:
        log.append("acquire a")
        with pytest.raises(RuntimeError, match="__exit__ without __enter__"):
            holder[0].__exit__(None, None, None)

    holder.append(SIG.bind(a=Hooked(array(), log, "a", acquire=acquire), b=Hooked(array(), log, "b")))
    with holder[0]:
        assert log == ["acquire a", "acquire b"]
    assert log[2:] == ["touch b", "release a", "release b"]
