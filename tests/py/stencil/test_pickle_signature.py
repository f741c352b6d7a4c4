"""Specifications and signatures that are pickled or copied."""

import copy
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl

DUPLICATES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *[lambda one, protocol=protocol: pickle.loads(pickle.dumps(one, protocol)) for protocol in (2, 3, 4, 5)],
]
SPECS = [
    dl.FieldSpec(None),
    dl.FieldSpec("float64", "IJ", access="w"),
    dl.FieldSpec("float32 | bfloat16", ("lat", "lon", "0"), access="rw", layout=(2, 0, 1), alignment_size=64),
    dl.FieldSpec("int8", None, shape=(None, 3, "I+1"), optional=True),
    dl.FieldSpec("complex64", "KJI", backend="gtmc", alignment_size=8),
]


@pytest.mark.parametrize("duplicate", DUPLICATES)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_every_attribute_is_kept(duplicate: Callable[[Any], Any], spec: dl.FieldSpec) -> None:
    twin = duplicate(spec)
    assert repr(twin) == repr(spec)
    for name in ("dtype", "dtypes", "dims", "access", "layout", "alignment_size", "shape", "optional", "backend"):
        assert getattr(twin, name) == getattr(spec, name), name


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_signature_binds_as_before(duplicate: Callable[[Any], Any]) -> None:
    fields = {f"field{number}": spec for number, spec in enumerate(SPECS)}
    first = dl.Signature(**fields, device="cuda:1", on_mismatch="copy", allow_overlap=True)
    assert repr(duplicate(first)) == repr(first)
    twin = duplicate(dl.Signature(x=SPECS[1], on_mismatch="copy"))
    for _ in range(2):
        array = np.zeros((2, 3), "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.LayoutWarning)
            with twin.bind(x=array) as bound:
                dl.as_numpy(bound.x)[...] = 2
        assert array.sum() == 12


def test_they_can_be_referenced_weakly() -> None:
    for one in (dl.FieldSpec("f8"), dl.Signature()):
        assert weakref.ref(one)() is one
