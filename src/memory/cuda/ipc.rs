//! What processes tell each other of device memory that they share.

use super::twin;
use crate::device::Device;
use crate::error::Result;

/// What another process needs to open an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    /// Number of the device, the same in all processes.
    pub uuid: [u8; 16],
    /// The driver's handle of the memory, `CUipcMemHandle`.
    pub handle: [u8; 64],
    /// Number, in this process, of the file that is locked by processes that have the memory open.
    pub file: i32,
}

/// Returns the device with this UUID; `None` if this process sees none.
///
/// # Errors
/// [`crate::DeviceError`].
pub fn device_of_uuid(uuid: [u8; 16]) -> Result<Option<Device>> {
    twin::device_of_uuid(uuid)
}
