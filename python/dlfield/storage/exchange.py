"""Export of host/device pairs: synchronizes the exported buffer, and marks it as modified if it may be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dlfield.storage.sides import Sides

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

__all__ = ["ExchangedSides"]

# DLPack's device type and id of the host.
_CPU = (1, 0)


class ExchangedSides(Sides):
    """A host/device pair that exports each buffer by every protocol for its memory."""

    __slots__ = ()

    @property
    def data(self) -> memoryview:
        """Memory of the host buffer, which is synchronized and marked as modified."""
        with self._state.lock:
            self.device_to_host()
            data = memoryview(self._host)
            self.set_host_modified()
        return data

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the device buffer, which is synchronized and marked as modified."""
        return self.to_cupy().data

    @property
    def __gt_data_interface__(self) -> dict[str | tuple[str, int] | None, dict[str, Any]]:
        host = self._host.__gt_data_interface__
        device = self._device.__gt_data_interface__
        for entry in host.values():
            entry.update(acquire=self.device_to_host, touch=self.set_host_modified)
        for entry in device.values():
            entry.update(acquire=self.host_to_device, touch=self.set_device_modified)
        return host | device

    @property
    def __array_interface__(self) -> dict[str, Any]:
        with self._state.lock:
            self.device_to_host()
            interface = self._host.__array_interface__
            self.set_host_modified()
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with self._state.lock:
            self.host_to_device()
            interface = self._device.__cuda_array_interface__
            self.set_device_modified()
        return interface

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Any:
        with self._state.lock:
            self.device_to_host()
            array = self._host.__array__(dtype, copy)
            if np.may_share_memory(array, self._host.to_numpy()):
                self.set_host_modified()
        return array

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return a NumPy array on the host buffer, which is synchronized and marked as modified."""
        with self._state.lock:
            self.device_to_host()
            array = self._host.to_numpy()
            self.set_host_modified()
        return array

    @property
    def variable(self) -> Any:
        """The `xarray.Variable` on the host buffer, which is synchronized and marked as modified."""
        variable = self._host.variable
        self.to_numpy()
        return variable

    def to_cupy(self) -> Any:
        """Return a CuPy array on the device buffer, which is synchronized and marked as modified."""
        with self._state.lock:
            # Before the export, which orders CuPy's work after the work submitted so far.
            self.host_to_device()
            array = self._device.to_cupy()
            self.set_device_modified()
        return array

    def to_ndarray(self) -> Any:
        """Return a CuPy array on the device buffer, as `to_cupy`."""
        return self.to_cupy()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        # The device buffer accepts or rejects every request that is not for the host buffer itself.
        on_host = dl_device in (_CPU, self._host.__dlpack_device__())
        side = self._host if on_host else self._device
        # Managed memory can be exported as memory of any CUDA device.
        is_at_hand = dl_device in (None, _CPU, side.__dlpack_device__()) or side.device.type == "cuda_managed"
        is_copied = copy or not is_at_hand
        with self._state.lock:
            (self.device_to_host if on_host else self.host_to_device)()
            capsule = side.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
            if not is_copied:
                (self.set_host_modified if on_host else self.set_device_modified)()
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.__dlpack_device__()
