"""What runs without the GIL, in several threads of Python at once, for a checker of data races (`make sanitize`).

Threads copy, cast, fill, allocate and release memory of their own, read a field that all of them share, and export it.
With the argument `race` they also write to one field, so that a checker that finds nothing is noticed.
"""

import sys
import threading
from typing import Any

import numpy as np

import dlfield as dl
from dlpack_structs import release, take

# Large enough for copies to release the GIL and to use several threads.
SHAPE = (32, 64, 80)
SOURCE: Any = np.arange(float(np.prod(SHAPE))).reshape(SHAPE)
SHARED: Any = dl.from_array(SOURCE)
WRITTEN: Any = dl.zeros(SHAPE, "float32")
THREADS, TURNS = 4, 10


def work(number: int) -> None:
    """Use all loops of dlfield that run without the GIL."""
    for turn in range(TURNS):
        field: Any = dl.from_array(SOURCE, backend="F")
        field[...] = SHARED
        field[::2] = SHARED[1::2]
        copied = SHARED.copy().transpose(2, 1, 0).copy()
        assert (copied.to_numpy() == SOURCE.T).all()
        single: Any = dl.from_dlpack(SHARED, copy=True)
        single[...] = 2.5
        cast: Any = dl.zeros(SHAPE, "float32")
        cast[...] = SHARED
        full = dl.full(SHAPE, number + turn)
        managed = take(SHARED.__dlpack__(max_version=(1, 3)))
        assert float(np.asarray(full)[-1, -1, -1]) == number + turn
        # A consumer releases what it was given without the GIL.
        release(managed)
        dl.memory_report()
        if "race" in sys.argv[1:]:
            WRITTEN[...] = SHARED
        if number == 0:
            dl.set_num_threads(1 + turn % 3)


threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{THREADS} threads, {TURNS} turns each")
