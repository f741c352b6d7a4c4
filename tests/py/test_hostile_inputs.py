"""dlfield reads each hostile input right, or refuses it with an error; docs/hostile.md has its peers too."""

import numpy as np
import pytest

import dlfield as dl
from hostile_inputs import INPUTS, Consumer, HostileInput, outcome


def first_values(tensor: dl.Tensor) -> list[float]:
    return [float(value) for value in np.asarray(tensor).flat[:6]]


def set_first(tensor: dl.Tensor) -> None:
    tensor[...] = 9.0


DLFIELD = Consumer(dl.from_dlpack, first_values, set_first)


@pytest.mark.parametrize("hostile", [one for inputs in INPUTS.values() for one in inputs], ids=lambda one: one.what)
def test_a_hostile_input_is_read_right_or_refused(hostile: HostileInput) -> None:
    assert outcome(DLFIELD, hostile) in ({"error"} if hostile.values is None else {"correct", "error"})
