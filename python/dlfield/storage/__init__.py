"""The storages of GT4Py's GDP 3: fields in host memory, in device memory, or in a host/device pair.

A storage with one buffer is a `dlfield.Tensor`. A host/device pair copies only when one buffer is used after the other
was modified.

Example
-------
>>> import numpy as np
>>> from dlfield import storage
>>> field = storage.storage(np.ones((4, 3)), defaults="gtx86", halo=(1, 1))
>>> field.domain_view.shape, field.halo
((2, 1), ((1, 1), (1, 1)))
>>> field.host_to_device()
>>> isinstance(field, storage.CPUStorage)
True
"""

from dlfield.storage.allocate import empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
from dlfield.storage.create import as_storage, storage
from dlfield.storage.kinds import CPUStorage, CUDAManagedGPUStorage, GPUStorage, Storage
from dlfield.storage.managed import SoftwareManagedGPUStorage
from dlfield.storage.state import SyncState

__all__ = [
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "GPUStorage",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "as_storage",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "storage",
    "zeros",
    "zeros_like",
]
