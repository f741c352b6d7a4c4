"""Means with weights and anomalies, by label."""

import numpy as np
import xarray

import dlfield as dl

lat = np.arange(-75.0, 76.0, 30.0)
values = np.cos(np.deg2rad(lat))[:, None] + np.arange(4.0)
values[0, 0] = np.nan
t = dl.from_array(values, dims="lat lon")
weights = dl.from_array(np.cos(np.deg2rad(lat)), dims="lat")

zonal = t.mean("lon", skipna=True)
mean = (zonal * weights).sum("lat") / weights.sum()
anomaly = t - zonal
print(zonal.dims, float(mean), anomaly.dims, float(np.abs(anomaly.mean("lon", skipna=True)).max()))
theirs = xarray.DataArray(values, dims=("lat", "lon"))
expected = theirs.mean("lon").weighted(xarray.DataArray(weights)).mean("lat")
assert abs(float(mean) - float(expected)) < 1e-12
difference = theirs.transpose("lon", "lat") - t
assert float(abs(difference).max()) == 0.0
