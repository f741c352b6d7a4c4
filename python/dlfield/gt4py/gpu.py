"""One call of a wrapped stencil for a GPU."""

from functools import partial
from typing import Any

from dlfield.cuda import stream
from dlfield.gt4py.call import Call
from dlfield.gt4py.signatures import Options
from dlfield.interop.frameworks import _cupy_view, imported

__all__ = ["GpuCall"]


class _CurrentStream:
    """CuPy's current stream in the CUDA stream protocol, which CuPy supports since version 14."""

    def __init__(self, cupy: Any) -> None:
        self._stream = cupy.cuda.get_current_stream()

    def __cuda_stream__(self) -> tuple[int, int]:
        # The legacy default stream is 0 in CuPy and 1 in the protocol's users.
        return 0, self._stream.ptr or 1


class GpuCall(Call):
    """Imports the arguments in CuPy's current stream, and passes CuPy arrays to the stencil.

    GT4Py runs its stencils on device 0: the code that it generates waits for that device.
    """

    _device = "cuda:0"

    def __init__(self, stencil: Any, options: Options) -> None:
        self._cupy = imported("cupy", "a stencil for a GPU")
        # CuPy has no read-only arrays: a view is writable, for fields that the stencil only reads too.
        self._export = self._export_readonly = partial(_cupy_view, self._cupy)
        super().__init__(stencil, options)

    def _execute(self, *arguments: Any) -> None:
        with self._cupy.cuda.Device(0), stream(_CurrentStream(self._cupy), 0):
            super()._execute(*arguments)
