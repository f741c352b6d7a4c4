"""Which hooks a stencil call runs: those of the buffer in use, however the object became an argument."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import SIG, array
from fakes_interfaces import Hooked, interface_of


class Both(Hooked):
    """DLPack gives its memory; its data interface describes a buffer on the GPU."""

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_hooks_of_another_device_are_not_called() -> None:
    log: list[str] = []
    with SIG.bind(a=Both(array(), log, device="gpu"), b=array()):
        pass
    assert log == []


@pytest.mark.parametrize("again", [dl.describe, lambda obj: SIG.bind(a=obj, b=array()).a], ids=["describe", "bind"])
def test_hooks_run_for_descriptions(again: Any) -> None:
    log: list[str] = []
    described = again(Hooked(array(), log))
    before = log.copy()
    with SIG.bind(a=array(), b=described):
        pass
    assert log == [*before, "acquire x", "touch x", "release x"]


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


@pytest.mark.parametrize("key", ["acquire", "touch", "release"])
def test_errors_of_hooks_name_field_and_hook(key: str) -> None:
    def fail() -> None:
        raise ZeroDivisionError(key)

    changes: dict[str, Any] = {key: fail}
    with pytest.raises(ZeroDivisionError) as caught, SIG.bind(a=array(), b=Hooked(array(), [], **changes)):
        pass
    assert caught.value.__notes__ == [f'field "b": {key}']


def test_a_bound_is_a_collection_of_names() -> None:
    bound = SIG.bind(a=array(), b=array())
    assert list(bound) == list(SIG.fields)
    assert len(bound) == len(SIG.fields)
    assert "a" in bound
    assert "nothing" not in bound
    assert all(bound[name] is None or np.asarray(dl.as_numpy(bound[name])).shape == (3, 4) for name in bound)
