"""`dlfield info`: this machine, the installed frameworks and their protocols."""

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import dlfield as dl
from dlfield import _native
from dlfield.cli.installed import Framework, frameworks, offered_protocols


def print_info(*, as_json: bool) -> None:
    """Print versions, devices and frameworks, for people or as JSON."""
    found = _info()
    print(json.dumps(found, indent=2) if as_json else "\n".join(_lines(found)))


def _info() -> dict[str, Any]:
    reason = dl.cuda.unavailable_reason()
    devices = [] if reason else [_native._cuda_device_name(number) for number in range(dl.cuda.device_count())]
    itself = Framework("dlfield", dl.__version__, offered_protocols(dl.zeros(1)))
    return {
        "dlfield": dl.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": dl.num_threads(),
        "cuda": {"devices": devices, "unavailable_reason": reason},
        "frameworks": [asdict(framework) for framework in (itself, *frameworks())],
    }


def _lines(info: dict[str, Any]) -> Iterator[str]:
    yield f"dlfield  {info['dlfield']}"
    yield f"python   {info['python']} on {info['platform']}"
    yield f"threads  {info['threads']} for large copies"
    for number, name in enumerate(info["cuda"]["devices"]):
        yield f"cuda     yes: cuda:{number} is {name}"
    if info["cuda"]["unavailable_reason"] is not None:
        yield f"cuda     no: {info['cuda']['unavailable_reason']}"
    yield ""
    rows = [("framework", "version", "exchanges memory by")]
    rows += [
        (found["name"], found["version"] or "-", found["note"] or ", ".join(found["protocols"]))
        for found in info["frameworks"]
    ]
    width = max(len(version) for _, version, _ in rows)
    for name, version, what in rows:
        yield f"{name:<10} {version:<{width}} {what}"
