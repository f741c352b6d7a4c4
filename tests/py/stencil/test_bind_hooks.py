"""The hooks of data interfaces around a stencil: `acquire`, `touch`, `release`, of the buffer in use."""

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import SIG, array, dataarray, spec
from fakes import FakeTensor, Producer
from fakes_interfaces import MISSING, NOWHERE, Duck, Exposing, Hooked, device_interface, interface_of
from interleaved_threads import run_in_threads

KEYS = ("acquire", "touch", "release")


def hooked(log: list[str], names: str, **changes: Any) -> dict[str, Hooked]:
    """An argument for each name; all write into `log`."""
    return {name: Hooked(array(), log, name, **changes) for name in names}


def failing(message: str, log: list[str], error: type[BaseException] = RuntimeError) -> Callable[[], None]:
    def fail() -> None:
        log.append(message)
        raise error(message)

    return fail


@pytest.mark.parametrize("attribute", ["__gt_data_interface__", "__gt_interface__"])
@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("called", [False, True])
def test_all_are_called_in_order(attribute: str, device: Any, called: bool) -> None:
    log: list[str] = []
    bound = SIG.bind(**hooked(log, "cba", attribute=attribute, device=device, called=called))
    assert bound.b.shape == (3, 4)
    assert log == [], "plain use calls none"
    with bound:
        assert log == ["acquire a", "acquire b", "acquire c"]
        log.clear()
    assert log == ["touch b", "touch c", "release a", "release b", "release c"]


def test_hooks_may_be_absent_or_none() -> None:
    log: list[str] = []
    a = Hooked(array(), log, "a", acquire=MISSING, touch=None)
    b = Hooked(array(), log, "b", release=None)
    with SIG.bind(a=a, b=b, c=array()):
        pass
    assert log == ["acquire b", "touch b", "release a"]


@pytest.mark.parametrize("key", KEYS)
def test_a_hook_that_cannot_be_called_is_refused_and_one_that_raises_is_named(key: str) -> None:
    with pytest.raises(dl.ExchangeError, match=rf'^field "b": {key}: .*None, got 5'):
        SIG.bind(a=array(), **hooked([], "b", **{key: 5}))
    with pytest.raises(RuntimeError) as caught, SIG.bind(a=array(), **hooked([], "b", **{key: failing(key, [])})):
        pass
    assert caught.value.__notes__ == [f'field "b": {key}']


def test_the_same_object_twice_is_acquired_twice() -> None:
    log: list[str] = []
    both = Hooked(array(), log)
    with dl.Signature(a=spec(), b=spec()).bind(a=both, b=both):
        pass
    assert log == ["acquire x", "acquire x", "release x", "release x"]


def test_fields_acquired_before_a_failure_are_released() -> None:
    log: list[str] = []
    fields = {**hooked(log, "ac"), **hooked(log, "b", acquire=failing("fail b", log))}
    with pytest.raises(RuntimeError, match="fail b"):
        SIG.bind(**fields).__enter__()
    assert log == ["acquire a", "fail b", "release a"]


def test_a_release_after_a_failed_acquire_may_fail_too() -> None:
    a = hooked([], "a", release=failing("fail a", []))
    bound = SIG.bind(**a, **hooked([], "b", acquire=failing("fail b", [])))
    with pytest.raises(ExceptionGroup, match="several hooks failed") as caught:
        bound.__enter__()
    assert [str(error) for error in caught.value.exceptions] == ["fail b", "fail a"]
    with pytest.raises(RuntimeError, match="entered twice"):
        bound.__enter__()


@pytest.mark.parametrize("key", ["touch", "release"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_failing_hook_does_not_stop_the_others(key: str, error: type[BaseException]) -> None:
    log: list[str] = []
    fields = {**hooked(log, "ac"), **hooked(log, "b", **{key: failing(f"{key} b", log, error)})}
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


def test_errors_of_hooks_keep_that_of_the_body() -> None:
    body = ValueError("body")
    for changes, error in (
        ({"release": failing("one", [])}, RuntimeError),
        ({"touch": failing("one", []), "release": failing("two", [])}, ExceptionGroup),
    ):
        with pytest.raises(error) as caught, SIG.bind(a=array(), **hooked([], "b", **changes)):
            raise body
        assert caught.value.__context__ is body


def test_a_bound_is_entered_and_left_once() -> None:
    log: list[str] = []
    bound = SIG.bind(**hooked(log, "a"), b=array())
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
    bound = SIG.bind(**hooked(log, "a"), b=array())
    entered: list[int] = []

    def enter(number: int) -> None:
        with suppress(RuntimeError):
            bound.__enter__()
            entered.append(number)

    run_in_threads(enter, range(4))
    assert len(entered) == 1
    assert log == ["acquire a"]


# Which hooks run: those of the buffer in use, however the object became an argument.


def dlpack_with_hooks(inside: Hooked) -> Producer:
    producer = Producer(FakeTensor(inside.array))
    vars(producer)["__gt_data_interface__"] = {None: inside.buffer}
    return producer


def subclass_with_hooks(inside: Hooked) -> Any:
    class Storage(np.ndarray[Any, Any]):
        __gt_data_interface__ = {"cpu": inside.buffer}  # noqa: RUF012

    return inside.array.view(Storage)


def duck_in_xarray(inside: Hooked) -> Any:
    array = inside.array
    duck: Any = Duck(shape=array.shape, dtype=array.dtype, array=array, __gt_data_interface__={None: inside.buffer})
    wrapped = dataarray(duck, "IJ")
    assert isinstance(wrapped.data, Duck)
    return wrapped


OTHERS: dict[str, tuple[Callable[[Hooked], Any], str]] = {
    "DLPack": (dlpack_with_hooks, "dlpack"),
    "ndarray": (subclass_with_hooks, "numpy"),
    "xarray": (duck_in_xarray, "gt"),
    "description": (dl.describe, "dlfield"),
    "bound field": (lambda inside: SIG.bind(a=inside, b=array()).a, "dlfield"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_hooks_run_for_objects_read_by_another_protocol(name: str) -> None:
    log: list[str] = []
    make, protocol = OTHERS[name]
    b = make(Hooked(array(), log, "b"))
    before = log.copy()
    with SIG.bind(a=array(), b=b) as fields:
        assert fields.b.protocol == protocol
    assert log == [*before, "acquire b", "touch b", "release b"]


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


def test_a_stencil_runs_no_hooks_for_a_tensor_of_the_memory() -> None:
    log: list[str] = []
    tensor = dl.from_dlpack(Hooked(array(), log))
    with SIG.bind(a=array(), b=tensor):
        pass
    assert log == ["acquire x"]
    del tensor
    assert log == ["acquire x", "release x"]


def test_hooks_may_be_spread_over_both_attributes() -> None:
    log: list[str] = []
    memory = array()
    both = Hooked(memory, log, release=None, touch=None)
    older = {None: {**interface_of(memory), "release": lambda: log.append("old release")}}
    setattr(both, "__gt_interface__", older)  # noqa: B010
    with SIG.bind(a=array(), b=both):
        pass
    assert log == ["acquire x", "old release"]


# What hooks may do.


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
