//! Devices of memory: DLPack's device types, with this crate's names.

use crate::error::{DeviceError, DeviceErrorKind};
use std::fmt;
use std::str::FromStr;

use dlpark::ffi::{DLDevice, DLDeviceType};

/// DLPack's code of each kind of device, and this crate's name for it.
const KINDS: &[(DLDeviceType, &str)] = &[
    (DLDeviceType::CPU, "cpu"),
    (DLDeviceType::CUDA, "cuda"),
    (DLDeviceType::CUDAHOST, "cuda_host"),
    (DLDeviceType::CUDAMANAGED, "cuda_managed"),
    (DLDeviceType::ROCM, "rocm"),
    (DLDeviceType::ROCMHOST, "rocm_host"),
    (DLDeviceType::OPENCL, "opencl"),
    (DLDeviceType::VULKAN, "vulkan"),
    (DLDeviceType::METAL, "metal"),
    (DLDeviceType::VPI, "vpi"),
    (DLDeviceType::EXTDEV, "ext_dev"),
    (DLDeviceType::ONEAPI, "oneapi"),
    (DLDeviceType::WEBGPU, "webgpu"),
    (DLDeviceType::HEXAGON, "hexagon"),
    (DLDeviceType::MAIA, "maia"),
    (DLDeviceType::TRN, "trn"),
];

/// A device: its kind and its id.
///
/// # Example
/// ```
/// use dlfield::Device;
/// let device: Device = "gpu".parse().unwrap();
/// assert_eq!(device.to_string(), "cuda:0");
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DLDeviceType,
    id: i32,
}

/// Returns the error for a device outside the DLPack header.
#[cold]
pub(crate) fn unknown_code(code: i64, id: i64) -> DeviceError {
    let expected = "a device type of DLPack 1.3 with an id of 0 or more, 0 for memory of the host";
    DeviceError::new("device", &expected, &format_args!("DLPack device ({code}, {id})"))
}

/// Returns the error for a device on which this build cannot allocate.
#[cold]
pub(crate) fn unsupported(device: Device) -> DeviceError {
    let expected = "'cpu', 'cuda:N', 'cuda_host' or 'cuda_managed'";
    let got = format_args!("{device}, on which dlfield cannot allocate");
    DeviceError::new("device", &expected, &got).with_kind(DeviceErrorKind::Unsupported)
}

/// Returns the error for memory that the expected device cannot access.
#[cold]
pub(crate) fn mismatch(found: Device, expected: Device) -> DeviceError {
    DeviceError::new("device", &format_args!("memory on {expected}"), &format_args!("memory on {found}"))
        .with_fix(&format_args!("copy it to '{expected}' first"))
        .with_kind(DeviceErrorKind::Mismatch)
}

/// Returns the error for a device that cannot be used.
#[cold]
pub(crate) fn unavailable(device: Device, why: &dyn fmt::Display) -> DeviceError {
    DeviceError::from_sentence("device", &format_args!("{device} cannot be used: {why}"))
        .with_kind(DeviceErrorKind::Unavailable)
}

/// Returns the error for a number that is not a CUDA stream.
#[cold]
pub(crate) fn not_a_stream(got: &dyn fmt::Display) -> DeviceError {
    let expected = "1 (legacy default), 2 (per-thread default) or the handle of a stream that exists";
    DeviceError::new("stream", &expected, got).with_kind(DeviceErrorKind::Stream)
}

/// Returns the error for 0 as a stream.
#[cold]
pub(crate) fn stream_0() -> DeviceError {
    not_a_stream(&"0, which may mean either default stream")
}

/// Returns the error for memory that the host cannot read.
#[cold]
pub(crate) fn not_host_readable(found: Device) -> DeviceError {
    let expected = "memory that the host can read, of cpu, cuda_host or cuda_managed";
    DeviceError::new("device", &expected, &format_args!("memory on {found}")).with_kind(DeviceErrorKind::Mismatch)
}

impl Device {
    /// Ordinary host memory, DLPack's `(1, 0)`.
    pub const CPU: Device = Device { kind: DLDeviceType::CPU, id: 0 };

    /// Returns the CUDA device with this id.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).to_string(), "cuda:1");
    /// ```
    pub const fn cuda(id: u16) -> Device {
        Device { kind: DLDeviceType::CUDA, id: id as i32 }
    }

    /// Pinned host memory, DLPack's `(3, 0)`.
    pub const CUDA_HOST: Device = Device { kind: DLDeviceType::CUDAHOST, id: 0 };

    /// Managed memory, which the host and all CUDA devices can access, DLPack's `(13, 0)`.
    pub const CUDA_MANAGED: Device = Device { kind: DLDeviceType::CUDAMANAGED, id: 0 };

    /// Returns the ROCm device with this id.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::rocm(0).to_string(), "rocm:0");
    /// ```
    pub const fn rocm(id: u16) -> Device {
        Device { kind: DLDeviceType::ROCM, id: id as i32 }
    }

    /// Converts DLPack's pair of device type and id to a device.
    ///
    /// # Errors
    /// [`DeviceError`] unless the type is in the DLPack header and the id is 0 or more.
    ///
    /// # Example
    /// ```
    /// use dlfield::Device;
    /// use dlfield::dlpark::ffi::{DLDevice, DLDeviceType};
    /// let device = DLDevice { device_type: DLDeviceType::CUDA, device_id: 1 };
    /// assert_eq!(Device::from_dlpack(device).unwrap(), Device::cuda(1));
    /// ```
    pub fn from_dlpack(device: DLDevice) -> Result<Device, DeviceError> {
        if device.device_type == DLDeviceType::CPU && device.device_id == 0 {
            return Ok(Device::CPU);
        }
        let known = KINDS.iter().any(|(kind, _)| *kind == device.device_type);
        if !known || device.device_id < 0 {
            return Err(unknown_code(device.device_type.0.into(), device.device_id.into()));
        }
        let device = Device { kind: device.device_type, id: device.device_id };
        // The header fixes the id of these to 0, but producers use different values.
        Ok(if device.is_numbered() { device } else { Device { id: 0, ..device } })
    }

    /// Converts the device to DLPack's pair.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).to_dlpack().device_id, 1);
    /// ```
    pub fn to_dlpack(self) -> DLDevice {
        DLDevice { device_type: self.kind, device_id: self.id }
    }

    /// Returns the name of the kind: `"cpu"`, `"cuda"`, `"cuda_host"`, …
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).kind(), "cuda");
    /// ```
    pub fn kind(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("unknown", |(_, name)| name)
    }

    /// Returns the id among devices of this kind; 0 for kinds with one device only.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).id(), 1);
    /// ```
    pub fn id(self) -> i32 {
        self.id
    }

    /// Returns whether host code can read the memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::Device;
    /// assert!("cuda_managed".parse::<Device>().unwrap().is_host_readable());
    /// assert!(!Device::cuda(0).is_host_readable());
    /// ```
    pub fn is_host_readable(self) -> bool {
        matches!(
            self.kind,
            DLDeviceType::CPU | DLDeviceType::CUDAHOST | DLDeviceType::CUDAMANAGED | DLDeviceType::ROCMHOST
        )
    }

    /// Returns whether code on this device can use memory of another one, so that the memory is an argument for it: the host
    /// reads and writes pinned and managed memory, and so do the GPUs of the same maker.
    ///
    /// # Example
    /// ```
    /// use dlfield::Device;
    /// assert!(Device::CPU.can_access(Device::CUDA_MANAGED));
    /// assert!(Device::cuda(1).can_access(Device::CUDA_HOST));
    /// assert!(!Device::cuda(0).can_access(Device::CPU));
    /// assert!(!Device::CUDA_MANAGED.can_access(Device::cuda(0)));
    /// ```
    #[inline]
    pub fn can_access(self, memory: Device) -> bool {
        self == memory
            || match self.kind {
                DLDeviceType::CPU => memory.is_host_readable(),
                DLDeviceType::CUDA => memory == Device::CUDA_HOST || memory == Device::CUDA_MANAGED,
                DLDeviceType::ROCM => memory.kind == DLDeviceType::ROCMHOST,
                _ => false,
            }
    }

    /// Returns whether this is a CUDA device, whose memory the host cannot access.
    pub(crate) fn is_cuda(self) -> bool {
        self.kind == DLDeviceType::CUDA
    }

    /// Returns whether CUDA's driver manages the memory.
    pub(crate) fn is_of_cuda(self) -> bool {
        self.is_cuda() || self == Device::CUDA_HOST || self == Device::CUDA_MANAGED
    }

    /// Returns whether memory there can be owned: the host can read it, or CUDA's driver manages it.
    pub(crate) fn is_ownable(self) -> bool {
        self.is_host_readable() || self.is_of_cuda()
    }

    /// Returns the id of the CUDA device whose context manages the memory; 0 for memory that all devices share.
    pub(crate) fn cuda_ordinal(self) -> i32 {
        if self.is_cuda() { self.id } else { 0 }
    }

    /// Returns whether equal addresses on both devices may mean the same memory.
    pub(crate) fn shares_addresses(self, other: Device) -> bool {
        // CUDA gives the host and all devices one address range, and the same memory may be named as several devices.
        let of_one_range = |device: Device| device.is_host_readable() || device.is_cuda();
        self == other || of_one_range(self) && of_one_range(other)
    }

    /// Returns whether devices of this kind have different ids.
    fn is_numbered(self) -> bool {
        !self.is_host_readable()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_numbered() { write!(f, "{}:{}", self.kind(), self.id) } else { f.write_str(self.kind()) }
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    /// Parses `"cpu"`, `"cuda:1"`, `"gpu"`, …; a missing id is 0.
    fn from_str(text: &str) -> Result<Device, DeviceError> {
        let unknown = || {
            let expected = "'cpu', 'cuda:N', 'cuda_host', 'cuda_managed', 'gpu' (which is cuda:0) or the name of another device of \
                            DLPack with ':N'";
            DeviceError::new("device", &expected, &format_args!("{text:?}"))
        };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let name = if name == "gpu" && number.is_none() { "cuda" } else { name };
        let (kind, _) = KINDS.iter().find(|(_, known)| *known == name).ok_or_else(unknown)?;
        let id = match number {
            None => 0,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| unknown())?
            }
            Some(_) => return Err(unknown()),
        };
        let device = Device { kind: *kind, id };
        if id != 0 && !device.is_numbered() { Err(unknown()) } else { Ok(device) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (text, canonical) in [
            ("cpu", "cpu"),
            ("cpu:0", "cpu"),
            ("gpu", "cuda:0"),
            ("cuda", "cuda:0"),
            ("cuda:3", "cuda:3"),
            ("cuda_host", "cuda_host"),
            ("cuda_managed", "cuda_managed"),
            ("rocm:1", "rocm:1"),
        ] {
            let device: Device = text.parse().expect(text);
            assert_eq!(device.to_string(), canonical);
            assert_eq!(Device::from_dlpack(device.to_dlpack()), Ok(device));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "gpu:1", "cpu:1", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "CPU", "cuda:99999999999"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
        let unknown = DLDevice { device_type: DLDeviceType(5), device_id: 0 };
        assert!(Device::from_dlpack(unknown).is_err());
        let negative = DLDevice { device_type: DLDeviceType::CUDA, device_id: -1 };
        assert!(Device::from_dlpack(negative).is_err());
    }
}
