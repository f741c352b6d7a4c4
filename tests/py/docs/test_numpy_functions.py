"""The page on arithmetic says what NumPy's functions return for a field."""

import re
from pathlib import Path
from typing import Any

import pytest

import dlfield as dl
from catalog import numbered
from untyped import np

PAGE = (Path(__file__).parents[3] / "docs/fields/compute.md").read_text(encoding="utf8")
ROWS = {
    name: result
    for names, result in re.findall(r"^\| (`\w+`[^|]*) \| ([^|]*) \|", PAGE, re.M)
    for name in re.findall(r"\w+", names)
}
# What a function takes beside the field.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("add", "maximum", "roll", "isclose", "pad"), (1,)),
    **dict.fromkeys(("moveaxis", "swapaxes", "clip"), (0, 1)),
    **dict.fromkeys(("dot", "matmul"), (np.ones(3),)),
    "flip": (0,),
    "split": (2,),
    "percentile": (50,),
    "reshape": ((3, 2),),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_result_is_what_the_page_says(name: str) -> None:
    field, function = numbered((2, 3), "f8", dims=("lat", "lon")), getattr(np, name)

    def call(*more: Any, **keywords: Any) -> Any:
        if name in ("concatenate", "stack"):
            return function([field, field])
        if name == "where":
            return function(field > 1, field, 0)
        found = function(field, *ARGUMENTS.get(name, ()), *more, **keywords)
        return found[0] if isinstance(found, (list, tuple)) else found

    if ROWS[name].startswith("TypeError"):
        with pytest.raises(TypeError):
            call()
        return
    kind = dl.Tensor if ROWS[name].startswith("field") else (np.ndarray, np.number)
    assert isinstance(call(), kind)
    if "axis" in ROWS[name] and not isinstance(function, np.ufunc):
        assert call(axis="lat").dims == ("lon",)
    if "for a label" in ROWS[name]:
        with pytest.raises(TypeError):
            call(axis="lat")
