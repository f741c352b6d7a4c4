"""dlfield reads each hostile input right, or refuses it with an error; docs/hostile.md has its peers too."""

import json

import pytest

from childproc import run_python
from hostile_inputs import INPUTS, HostileInput

# A process of its own, as PyTorch's threads are missing in the forks of one that has used them.
CODE = """
import json
import numpy as np
import dlfield as dl
from hostile_inputs import INPUTS, Consumer, outcome

def set_first(tensor):
    tensor[...] = 9.0

dlfield = Consumer(dl.from_dlpack, lambda tensor: [float(value) for value in np.asarray(tensor).flat[:6]], set_first)
print(json.dumps({one.what: outcome(dlfield, one) for inputs in INPUTS.values() for one in inputs}))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    found: dict[str, str] = json.loads(run_python(CODE))
    return found


@pytest.mark.parametrize("hostile", [one for inputs in INPUTS.values() for one in inputs], ids=lambda one: one.what)
def test_a_hostile_input_is_read_right_or_refused(hostile: HostileInput, outcomes: dict[str, str]) -> None:
    assert outcomes[hostile.what] in ({"error"} if hostile.values is None else {"correct", "error"})
