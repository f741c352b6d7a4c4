"""A NetCDF file becomes a field with a halo, runs through a GT4Py stencil, and is plotted with its coordinates."""

import matplotlib.pyplot as plt
import numpy as np
import xarray
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval

import dlfield as dl
from dlfield.gt4py import wrap
from dlfield.xarray import to_xarray

lon, lat = np.arange(0.0, 360.0, 5.0), np.arange(-85.0, 86.0, 5.0)
waves = np.cos(np.deg2rad(lat))[:, None] * np.sin(np.deg2rad(3 * lon))
t = xarray.DataArray(np.stack([waves, 2 * waves]), {"lev": [1000, 500], "lat": lat, "lon": lon}, name="t")
t.to_netcdf("air.nc")


@gtscript.stencil(backend="numpy")
def smooth(inp: gtscript.Field[float], out: gtscript.Field[float]):
    with computation(PARALLEL), interval(...):
        out = 0.5 * inp + 0.125 * (inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0])


air = xarray.open_dataset("air.nc")["t"].rename(lon="I", lat="J", lev="K")
field = dl.pad(air, {"I": 1, "J": 1}, "wrap", backend="numpy")
out = dl.zeros_like(field)
wrap(smooth)(field, out)
smooth_t = to_xarray(out.domain_view, name="t", coords=air.coords).rename(I="lon", J="lat", K="lev")
smooth_t.sel(lev=500).plot(x="lon")
plt.savefig("air.png")
assert abs(smooth_t).max() < abs(t).max()
