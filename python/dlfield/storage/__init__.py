"""Fields in host memory, in a device's, or in both and kept equal: the storages of GT4Py's GDP 3.

A storage with one buffer is a `dlfield.Tensor`. One with a buffer on each side copies when one side is used and the
other was modified, and only then.

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
