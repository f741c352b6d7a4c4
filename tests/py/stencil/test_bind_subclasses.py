"""Subclasses of NumPy's arrays may have what exact arrays lack: labels, hooks, a mask, another memory."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from calls import F8, W8, cube, spec
from fakes_interfaces import interface_of


class Labelled(np.ndarray):
    __gt_dims__ = ("J", "I")
    __gt_origin__ = (1, 2)


class Elsewhere(np.ndarray):
    """Exports other memory than its own."""

    other: npt.NDArray[Any]

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.other.__dlpack__(**keywords)


class Hooked(np.ndarray):
    called: list[str]

    @property
    def __gt_data_interface__(self) -> dict[str, Any]:
        names = ("acquire", "touch", "release")
        hooks = {name: (lambda name=name: self.called.append(name)) for name in names}
        return {"cpu": interface_of(np.asarray(self)) | hooks}

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Self:
        made = array.view(cls)
        made.called = []
        return made


def test_labels_of_a_subclass_are_obeyed() -> None:
    array = np.arange(12.0).reshape(3, 4).view(Labelled)
    bound = dl.Signature(x=spec("IJ")).bind(x=array)
    assert (bound.x.shape, bound.x.strides, bound.x.origin) == ((4, 3), (8, 32), (1, 2))


def test_memory_that_a_subclass_exports_is_used() -> None:
    array = cube().view(Elsewhere)
    array.other = cube()
    bound = dl.Signature(x=F8).bind(x=array)
    assert bound.x.ptr == array.other.ctypes.data
    assert bound.x.protocol == "dlpack"


def test_hooks_of_a_subclass_are_called() -> None:
    array = Hooked.of(cube())
    with dl.Signature(x=W8).bind(x=array):
        assert array.called == ["acquire"]
    assert array.called == ["acquire", "touch", "release"]


def test_a_mask_is_not_lost() -> None:
    with pytest.raises(dl.ExchangeError, match=r'"x": .*mask'):
        dl.Signature(x=F8).bind(x=np.ma.masked_array(cube(), mask=cube() > 3))


def test_a_field_of_its_own_is_checked_for_elements_that_share_memory() -> None:
    """With one field there is no other to compare with, but a written one must not overlap itself."""
    shared = np.lib.stride_tricks.as_strided(np.zeros(9), (2, 3, 4), (16, 8, 8), writeable=True)
    with pytest.raises(dl.LayoutError, match="share"):
        dl.Signature(x=W8).bind(x=shared)
    dl.Signature(x=F8).bind(x=shared)


def test_an_array_is_refused_for_a_device() -> None:
    with pytest.raises(dl.DeviceError, match=r'"x": .*cpu'):
        dl.Signature(x=F8, device="cuda:0").bind(x=cube())


def test_recycled_bounds_keep_no_field() -> None:
    two = dl.Signature(x=F8, y=dl.FieldSpec("float64", "IJK", optional=True))
    one, array = dl.Signature(z=F8), cube()
    for _ in range(100):
        both = two.bind(x=array, y=cube())
        del both
        alone = two.bind(x=array)
        assert alone.y is None
        assert alone.x.ptr == array.ctypes.data
        del alone
        assert len(one.bind(z=array)) == 1
