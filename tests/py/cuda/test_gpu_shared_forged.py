"""Shared memory of a device that lies about itself: whoever attaches it gets an error, and keeps nothing."""

import fcntl
import json
import os
import re
from typing import Any

import pytest

import dlfield as dl
from children import run_child
from driver import IS_FAKE
from forged_memory import forged, header, state

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no such device": ({"uuid": "00" * 16}, "DeviceError: name: .*UUID 0{32}, which this process does not see"),
    "no such memory": ({"handle": "01" * 64}, "DeviceError: device: cuIpcOpenMemHandle on cuda:0 failed"),
    "a short handle": ({"handle": "01" * 63}, "ExchangeError: name: .* holds no tensor .*63 bytes"),
    "a short UUID": ({"uuid": "01" * 15}, "ExchangeError: name: .* holds no tensor"),
    "no hexadecimal number": ({"handle": "xy"}, "ExchangeError: name: .* holds no tensor"),
    "no text": ({"handle": 3}, "ExchangeError: name: .* holds no tensor"),
    "a longer block": ({"nbytes": 1 << 40}, "ExchangeError: name: a block of 1099511627776 bytes in memory of 2097152"),
    "another size": ({"sizes": [104, 0]}, "ExchangeError: name: .* 96 bytes of data for a field of 104"),
    "elements outside": ({"numbers": [[3, 4], [8, 1]]}, "ExchangeError: name: .* bytes 0 to 160 of a buffer of 96"),
    "shared elements": ({"numbers": [[3, 4], [0, 1]]}, "ExchangeError: name: .* holds no tensor"),
    "no alignment": (
        {"metadata": [None, None, None, False, None, "none", 1 << 20, None]},
        "ExchangeError: name: .* not aligned as it is said to be",
    ),
    "objects": ({"dtype": "object"}, "ExchangeError: name: .* holds no tensor .*dtype"),
    "read-only": ({"device": ["cuda:0", True]}, "ExchangeError: name: .* holds no tensor"),
    "another number of the device": ({"device": ["cuda:77", False]}, "cuda:0"),
}


def forge(shared: dl.Tensor, changes: dict[str, Any]) -> tuple[str, int]:
    """Make a file with the handle of a tensor's memory, but for the changes; return its name and number."""
    text = os.pread(int(dl.shared_name(shared).split("-")[2]), 4096, 0)[32:]
    uuid, handle = json.loads(text.rstrip(b"\0"))[6:]
    known = {"uuid": uuid, "handle": handle, "nbytes": 96, "device": ["cuda:0", False], **changes}
    uuid, handle, nbytes = known.pop("uuid"), known.pop("handle"), known.pop("nbytes")
    return forged(header([*state(**known), uuid, handle], nbytes=nbytes))


def test_forged_memory_is_refused() -> None:
    shared = dl.zeros((3, 4), device="cuda:0").share()
    made = [forge(shared, changes) for changes, _ in CASES.values()]
    output = run_child(f"""
for name in {[name for name, _ in made]!r}:
    try:
        print(dl.attach(name).device)
    except dl.Error as error:
        print(f"{{type(error).__name__}}: {{error}}")
print(driver.report().get("live_opened", 0), misuse())
""")
    for _, file in made:
        os.close(file)
    assert output[-1] == "0 {}"
    for case, (_, expected), found in zip(CASES, CASES.values(), output, strict=False):
        if IS_FAKE or case != "no alignment":
            assert re.match(expected, found), (case, found)


def test_memory_that_is_about_to_be_freed_is_not_found() -> None:
    """The process that allocated it has the lock then; before it closes the file, and afterwards."""
    shared = dl.zeros((3, 4), device="cuda:0").share()
    name, file = forge(shared, {})
    fcntl.flock(file, fcntl.LOCK_EX)
    output = run_child(f"""
try:
    dl.attach({name!r})
except dl.ExchangeError as error:
    print("no process has the memory" in str(error))
""")
    os.close(file)
    assert output == ["True"]


def test_memory_of_this_process_is_not_opened() -> None:
    """CUDA would refuse it."""
    shared = dl.zeros((3, 4), device="cuda:0").share()
    name, file = forge(shared, {})
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(name)
    os.close(file)
