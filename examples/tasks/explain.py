"""Why something was a copy, and whose memory it is."""

import dlfield as dl

field = dl.zeros((10, 8, 4), backend="gtmc", halo=(1, 1, 0))
print(dl.explain(field))
print(dl.preflight(field, "torch"))
print(dl.preflight(field, "jax"))

with dl.trace_copies() as log:
    tensor, array = dl.as_torch(field), dl.as_jax(field)
print(log)
assert tensor.data_ptr() == field.ptr and array.unsafe_buffer_pointer() != field.ptr
print(dl.memory_report())
