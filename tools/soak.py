"""A million round trips through every way in and out, mixed: `make soak`. The memory of the process has to stay flat.

The round trips are drawn at random, with a seed that is printed. Compared is the memory that the process has for itself
after a tenth of them, when all caches are full, and at the end.
"""

import argparse
import copy
import gc
import pickle
import random
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dlfield as dl

# Memory at the end, over that after a tenth.
MOST = 1.01

STENCIL = dl.Signature(inp=dl.FieldSpec("float64", "IJK"), out=dl.FieldSpec("float64", "IJK", access="w"))


class OnlyDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


class OnlyInterface:
    """An array that has nothing but an array interface."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__, self.array = array.__array_interface__, array


def _raises(call: Callable[[], object]) -> None:
    try:
        call()
    except dl.Error:
        return
    raise AssertionError("wrong input was taken")


def round_trips(source: random.Random) -> list[Callable[[], object]]:
    """Return the round trips; `source` chooses shapes and presets."""
    shapes = [(8, 8, 8), (3, 4, 5), (33, 17, 2), (64, 64, 4)]
    presets = ["numpy", "gt:cpu_ifirst", "gt:cpu_kfirst", "gtmc", "F"]
    array: Any = np.ones((4, 5, 6))
    tensor = torch.ones(4, 5, 6, dtype=torch.float64)
    field, out = dl.ones((4, 5, 6), dims="IJK"), dl.zeros((4, 5, 6), dims="IJK")

    def new(**keywords: Any) -> dl.Tensor:
        return dl.zeros(source.choice(shapes), backend=source.choice(presets), **keywords)

    return [
        lambda: np.asarray(dl.from_dlpack(array)),
        lambda: torch.from_dlpack(dl.from_dlpack(tensor)),
        lambda: dl.from_dlpack(np.from_dlpack(new())),
        lambda: dl.as_torch(new()),
        lambda: dl.as_numpy(new(dims="KJI", halo=(1, 1, 0))),
        lambda: dl.describe(OnlyDlpack(array)),
        lambda: dl.from_dlpack(OnlyDlpack(tensor)),
        lambda: dl.from_dlpack(OnlyInterface(array)),
        lambda: dl.from_dlpack(memoryview(array)),
        lambda: dl.from_dlpack(dl.describe(field)),
        lambda: dl.from_array(array, backend=source.choice(presets)),
        lambda: dl.frombuffer(bytearray(64), (8,), "float64"),
        lambda: dl.empty((2, 3), buffer=bytearray(512)),
        lambda: new()[1:, ::-1].transpose(2, 0, 1).copy(),
        lambda: copy.deepcopy(field),
        lambda: pickle.loads(pickle.dumps(field, 5)),
        lambda: STENCIL.bind(inp=array, out=out),
        lambda: STENCIL.bind(inp=tensor, out=out),
        lambda: (field + 1.5) * field,
        lambda: field.sum(),
        lambda: repr(new()),
        lambda: dl.preflight(field, "torch"),
        lambda: _raises(lambda: dl.empty((2, -3))),
        lambda: _raises(lambda: dl.from_dlpack(array.astype(">f8"))),
        lambda: _raises(lambda: STENCIL.bind(inp=array[0], out=out)),
    ]


def own_bytes() -> int:
    """Return the bytes of memory that no other process shares."""
    found = re.findall(r"^Private_\w+: +(\d+) kB$", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    return 1024 * sum(map(int, found))


def main() -> int:
    """Run the round trips; return 0 if memory stayed flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    arguments = parser.parse_args()
    source = random.Random(arguments.seed)
    trips = round_trips(source)
    before = 0
    for start in range(10):
        for trip in source.choices(trips, k=arguments.count // 10):
            trip()
        gc.collect()
        now, blocks = own_bytes(), dl.memory_report()
        before = before or now
        done = (start + 1) * (arguments.count // 10)
        print(f"{done:,} round trips: {now:,} bytes, of which {blocks.nbytes:,} in tensors", flush=True)
    print(f"seed {arguments.seed}: {now / before:.4f} of the memory after a tenth; expected at most {MOST}")
    return int(now > MOST * before)


if __name__ == "__main__":
    sys.exit(main())
