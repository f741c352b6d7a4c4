"""`plot`, and the other methods that do what functions of the package or of other libraries do."""

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dlfield as dl


def test_exports_are_methods() -> None:
    field = dl.zeros((4, 3), dims="KI", backend="jax")
    pytest.importorskip("torch")
    assert field.to_torch().data_ptr() == field.ptr
    assert field.to_torch(copy=True).data_ptr() != field.ptr
    pytest.importorskip("jax")
    assert field.to_jax().unsafe_buffer_pointer() == field.ptr
    assert field.to_jax(copy=True).unsafe_buffer_pointer() != field.ptr
    pytest.importorskip("xarray")
    labelled = field.to_xarray(name="p", coords={"I": [1.0, 2.0, 3.0]})
    assert (labelled.dims, labelled.name, labelled.sel(I=2.0).dims) == (("K", "I"), "p", ("K",))
    assert np.shares_memory(labelled.values, field.to_numpy())
    with pytest.raises(TypeError, match="unexpected keyword argument 'coordinates'"):
        field.to_xarray(coordinates={})


@pytest.mark.parametrize(
    ("call", "library"),
    [("to_torch", "torch"), ("to_jax", "jax"), ("to_xarray", "xarray"), ("plot", "matplotlib")],
)
def test_a_missing_library_is_named(call: str, library: str) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; import dlfield as dl; dl.zeros((3, 3)).{call}()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert re.search(
        rf"ImportError: \S+ needs {library}\S*, which is not installed: pip install {library}\n", done.stderr
    )


def frame_of(axes: Any) -> tuple[float, ...]:
    """Left, bottom, right and top of the only rectangle."""
    (frame,) = axes.patches
    return (*frame.get_xy(), frame.get_x() + frame.get_width(), frame.get_y() + frame.get_height())


def test_a_plane_is_drawn_with_its_halo_outside_of_a_frame() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    field = dl.zeros((6, 5, 4), halo=((1, 2), (0, 1), (2, 0)), backend="gt:cpu_ifirst")
    field[...] = np.arange(120.0).reshape(6, 5, 4)
    axes = field.plot(vmin=0)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("I", "J", "K=2")
    (image,) = axes.images
    assert np.array_equal(image.get_array(), field.to_numpy()[:, :, 2].T)
    assert image.get_clim()[0] == 0
    assert image.origin == "lower"
    assert frame_of(axes) == (0.5, -0.5, 3.5, 3.5)
    assert not field.domain_view.plot().patches
    assert field[:, :, 3].plot(axes) is axes
    line = field[:, 0, 0].plot()
    assert (line.get_xlabel(), line.get_title(), len(line.lines[0].get_ydata()), len(line.lines)) == ("I", "", 6, 3)
    for shape in ((1, 1), (0, 3)):
        with pytest.raises(
            dl.DimsError,
            match=f"^plot: expected points along at least one dimension, got shape {re.escape(str(shape))}$",
        ):
            dl.zeros(shape).plot()
    pyplot.close("all")
