"""An array of a library that dlfield does not know: it supports only DLPack."""

from typing import Any

import numpy as np
import numpy.typing as npt


class OnlyDLPack:
    """An object that has only `__dlpack__` and `__dlpack_device__`."""

    def __init__(self, array: npt.NDArray[np.float64]) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()
