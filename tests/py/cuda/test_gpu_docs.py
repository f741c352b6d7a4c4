"""The GPU example of the how-to runs as printed."""

import re
from pathlib import Path
from typing import Any

import numpy as np

import dlfield as dl
from driver import Driver

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "gpu.md"


def test_the_lines_of_the_page(torch: Any, cupy: Any, driver: Driver) -> None:  # noqa: ARG001 (as_cupy needs CuPy)
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if "cuda" in block)
    values = np.random.default_rng(1).random((64, 64, 80))
    theirs = dl.as_cupy(dl.from_array(values, device="cuda:0"))
    with driver.stream() as stream:
        shown: dict[str, Any] = {"dl": dl, "numpy_array": values, "cupy_array": theirs, "stream": stream}
        exec(block, shown)
        assert (shown["field"].device, shown["host"].device) == ("cuda:0", "cpu")
        assert isinstance(shown["tensor"], torch.Tensor)
        assert shown["tensor"].data_ptr() == shown["field"].ptr
        assert shown["other"].ptr == theirs.data.ptr
        assert (np.asarray(shown["host"]) == values).all()
        shown.clear()
