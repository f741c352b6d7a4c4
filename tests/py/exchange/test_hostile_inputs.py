"""dlfield reads each hostile input right, or refuses it with an error; docs/about/safety.md has its peers too."""

import json

import pytest

from childproc import run_python
from hostile_inputs import INPUTS, HostileInput

# A process of its own, which a crash would end at the input that it has printed last.
CODE = """
import gc, json
import numpy as np
import dlfield as dl
from hostile_inputs import INPUTS, Consumer, result

def set_first(tensor):
    tensor[...] = 9.0

dlfield = Consumer(dl.from_dlpack, lambda tensor: [float(value) for value in np.asarray(tensor).flat[:6]], set_first)
# Searching the objects of PyTorch takes half a second for each input.
gc.collect()
gc.freeze()
for inputs in INPUTS.values():
    for one in inputs:
        print(json.dumps(one.what), flush=True)
        print(json.dumps(result(dlfield, one)))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    lines = [json.loads(line) for line in run_python(CODE).splitlines()]
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("hostile", [one for inputs in INPUTS.values() for one in inputs], ids=lambda one: one.what)
def test_a_hostile_input_is_read_right_or_refused(hostile: HostileInput, outcomes: dict[str, str]) -> None:
    assert outcomes[hostile.what] in ({"error"} if hostile.values is None else {"correct", "error"})
