"""What to write instead of a name that does not exist in the package."""

import difflib
from collections.abc import Iterable

# Names of other libraries, and modules of the package that have to be imported.
_INSTEAD = {
    "arange": "dl.from_array(numpy.arange(...))",
    "array": "dl.from_array(data), which copies",
    "copy": "field.copy()",
    "dask": "import dlfield.dask",
    "eye": "dl.from_array(numpy.eye(...))",
    "asfield": "dl.asarray(obj)",
    **dict.fromkeys(
        ("from_cupy", "from_jax", "from_numpy", "from_torch", "from_xarray"),
        "dl.asarray(obj), which shares memory, or dl.from_array(data), which copies",
    ),
    "jax": "import dlfield.jax",
    "linspace": "dl.from_array(numpy.linspace(...))",
    "load": "dl.open_field(path)",
    "load_field": "dl.open_field(path)",
    "mpi": "import dlfield.mpi",
    "ndarray": "dl.empty(shape)",
    "rand": "dl.from_array(numpy.random.rand(...))",
    "random": "dl.from_array(numpy.random.rand(...))",
    "save": "dl.save_field(path, field)",
    "share": "field.share()",
    "tensor": "dl.from_array(data), which copies",
    "to_device": "field.to_device(device)",
    "to_numpy": "dl.as_numpy(obj)",
    "to_torch": "dl.as_torch(obj)",
    "to_xarray": "dl.xarray.to_xarray(obj)",
}


def instead_of(name: str, known: Iterable[str]) -> str:
    """Return what to write: a hint for a name of the table, the nearest of the known names, or nothing."""
    if name in _INSTEAD:
        return f"; write {_INSTEAD[name]}"
    # Protocols that are looked up on modules have no near name.
    if name.startswith("_"):
        return ""
    nearest = difflib.get_close_matches(name, [one for one in known if not one.startswith("_")], 1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
