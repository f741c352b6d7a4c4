"""SPEC's tables as data: presets, their layouts, and element types with their DLPack codes."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import dlfield as dl

# What takes an object of another library as it is.
READERS: tuple[Callable[..., Any], ...] = (dl.describe, dl.from_dlpack)


class PresetRow(NamedTuple):
    """A line of SPEC's table: `alignment` in elements (None: 64-byte base), `rule` the ranks of I, J, K, or C or F."""

    device: str
    alignment: int | None
    rule: str


PRESETS = {
    "numpy": PresetRow("cpu", 1, "012"),
    "debug": PresetRow("cpu", 1, "012"),
    "C": PresetRow("cpu", 1, "C"),
    "F": PresetRow("cpu", 1, "F"),
    "gt:cpu_kfirst": PresetRow("cpu", 1, "012"),
    "gtx86": PresetRow("cpu", 1, "012"),
    "gt:cpu_ifirst": PresetRow("cpu", 1, "210"),
    "gtmc": PresetRow("cpu", 8, "021"),
    "gt:gpu": PresetRow("cuda:0", 32, "210"),
    "gtcuda": PresetRow("cuda:0", 32, "210"),
    "dace:cpu": PresetRow("cpu", 1, "120"),
    "dace:cpu_kfirst": PresetRow("cpu", 1, "012"),
    "dace:cpu_KJI": PresetRow("cpu", 1, "210"),
    "dace:gpu": PresetRow("cuda:0", 1, "210"),
    "dace:gpu_IJK": PresetRow("cuda:0", 1, "012"),
    "jax": PresetRow("cpu", None, "012"),
    "torch": PresetRow("cpu", None, "012"),
    "cupy": PresetRow("cuda:0", None, "012"),
}
CPU_PRESETS = [name for name, row in PRESETS.items() if row.device == "cpu"]

RULES = ("012", "120", "210", "021", "C", "F")

# dims in index order, then the layout that each of RULES gives them.
LAYOUTS = {
    "I": ("0", "0", "0", "0", "0", "0"),
    "J": ("0", "0", "0", "0", "0", "0"),
    "K": ("0", "0", "0", "0", "0", "0"),
    "IJ": ("01", "01", "10", "01", "01", "10"),
    "JI": ("10", "10", "01", "10", "01", "10"),
    "IK": ("01", "10", "10", "01", "01", "10"),
    "KI": ("10", "01", "01", "10", "01", "10"),
    "JK": ("01", "10", "10", "10", "01", "10"),
    "KJ": ("10", "01", "01", "01", "01", "10"),
    "IJK": ("012", "120", "210", "021", "012", "210"),
    "IKJ": ("021", "102", "201", "012", "012", "210"),
    "JIK": ("102", "210", "120", "201", "012", "210"),
    "JKI": ("120", "201", "102", "210", "012", "210"),
    "KIJ": ("201", "012", "021", "102", "012", "210"),
    "KJI": ("210", "021", "012", "120", "012", "210"),
    "01": ("01", "01", "01", "01", "01", "10"),
    "10": ("10", "10", "10", "10", "01", "10"),
    "K0": ("10", "10", "10", "10", "01", "10"),
    "IJK0": ("1230", "2310", "3210", "1320", "0123", "3210"),
    "0IJK": ("0123", "0231", "0321", "0132", "0123", "3210"),
    "IJK01": ("23401", "34201", "43201", "24301", "01234", "43210"),
    "1KI0": ("1320", "1230", "1230", "1320", "0123", "3210"),
}


def digits(text: str) -> tuple[int, ...]:
    return tuple(int(digit) for digit in text)


def spec_layout(rule: str, dims: str) -> tuple[int, ...]:
    return digits(LAYOUTS[dims][RULES.index(rule)])


def permutations_of_subsets(labels: str) -> list[str]:
    """Every ordered choice of one or more of `labels`."""
    return ["".join(choice) for count in range(1, len(labels) + 1) for choice in itertools.permutations(labels, count)]


# name: (code, bits) of DLDataType. The ones of SUBBYTE take a byte an element here, which DLPack calls padded.
NUMPY_CODES = {
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "complex64": (5, 64),
    "complex128": (5, 128),
}
ML_CODES = {
    "bfloat16": (4, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
SUBBYTE_CODES = {
    "float6_e2m3fn": (15, 6),
    "float6_e3m2fn": (16, 6),
    "float4_e2m1fn": (17, 4),
    "int4": (0, 4),
    "uint4": (1, 4),
    "int2": (0, 2),
    "uint2": (1, 2),
}
CODES = {**NUMPY_CODES, **ML_CODES, **SUBBYTE_CODES}


def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a key of CODES."""
    return np.dtype(name if name in NUMPY_CODES else getattr(ml_dtypes, name))


def count_up(preset: str, dtype: str = "float32") -> dl.Tensor:
    """A 3 x 4 tensor with the values 0 to 11 in the layout of `preset`."""
    field = dl.zeros((3, 4), dtype_named(dtype), backend=preset, dims="JI")
    field[...] = np.arange(12).reshape(3, 4)
    return field


def numbered(shape: tuple[int, ...], dtype: Any = "f8", **keywords: Any) -> dl.Tensor:
    """A field whose elements are 1, 2, 3, ... in index order."""
    made = dl.empty(shape, dtype, **keywords)
    made[...] = np.arange(1, made.size + 1).reshape(shape).astype(dtype)
    return made
