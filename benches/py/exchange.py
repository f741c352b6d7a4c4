"""Handing memory over, next to NumPy doing it with itself."""

import numpy as np

import dlfield as dl
from interleaved import best_times
from report import Line


def lines() -> list[Line]:
    tensor, array = dl.zeros((8, 8, 8)), np.zeros((8, 8, 8))
    times = best_times(
        {
            "np.from_dlpack(ndarray)": lambda: np.from_dlpack(array),
            "np.from_dlpack(tensor)": lambda: np.from_dlpack(tensor),
        },
        rounds=50,
    )
    return [
        Line(
            "`np.from_dlpack(tensor)`",
            times["np.from_dlpack(tensor)"],
            "`np.from_dlpack(ndarray)`",
            times["np.from_dlpack(ndarray)"],
            "at most 1.1",
        )
    ]
