"""A field with its layout, labels and halo in a file."""

import numpy as np

import dlfield as dl

field = dl.ones((6, 5, 4), backend="gtmc", halo=(1, 1, 0))
dl.save_field("field.dlf", field)
again = dl.open_field("field.dlf", "r+")
again.domain_view[...] = 2.0
print(again.strides == field.strides, again.dims, again.halo, float(dl.open_field("field.dlf").max()))

np.save("values.npy", field)
assert np.load("values.npy").shape == (6, 5, 4)
