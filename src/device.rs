//! Devices of memory: DLPack's device types, with this crate's names.

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

/// An invalid or unavailable device or stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// An unknown device name.
    #[error(
        "device: {got:?} is not a device; allowed are 'cpu', 'cuda:N', 'cuda_host', 'cuda_managed', \
         'gpu' (which is cuda:0) and the names of DLPack's other devices with ':N'"
    )]
    UnknownName {
        /// The name given.
        got: String,
    },
    /// A DLPack device outside the header.
    #[error(
        "device: DLPack device ({code}, {id}) is not a device; allowed are the device types of DLPack 1.3 with an id of 0 or more, 0 for memory of the host"
    )]
    UnknownCode {
        /// `DLDevice.device_type`.
        code: i64,
        /// `DLDevice.device_id`.
        id: i64,
    },
    /// A device on which this build cannot allocate.
    #[error(
        "device: cannot allocate on {device}: dlfield has no support for it; allowed are 'cpu', 'cuda:N', 'cuda_host' and 'cuda_managed'"
    )]
    NotSupported {
        /// The device asked for.
        device: Device,
    },
    /// A device whose memory this build cannot own.
    #[error(
        "device: the memory is on {device}, and dlfield can own memory of the host and of CUDA only; describe() it, or copy it to the host first"
    )]
    NotOwned {
        /// Device of the memory.
        device: Device,
    },
    /// Memory that the device wanted cannot access.
    #[error("device: the memory is on {found}, wanted on {wanted}; copy it there: from_dlpack(obj, device='{wanted}')")]
    Mismatch {
        /// Device of the memory.
        found: Device,
        /// The device wanted.
        wanted: Device,
    },
    /// An address that CUDA's driver does not know, wanted on a CUDA device.
    #[error(
        "device: {wanted} is requested, but according to the driver no CUDA memory is at {address:#x}; allowed is memory that \
         CUDA allocated"
    )]
    NotOfCuda {
        /// The address.
        address: usize,
        /// The device asked for.
        wanted: Device,
    },
    /// A CUDA device that cannot be used.
    #[error("device: {device} cannot be used: {why}")]
    NoCuda {
        /// The device asked for.
        device: Device,
        /// What is missing.
        why: String,
    },
    /// A failed function of CUDA's driver.
    #[error("device: {function} on {device} failed: {words} ({code})")]
    Driver {
        /// The device.
        device: Device,
        /// The driver's function.
        function: &'static str,
        /// `CUresult`.
        code: u32,
        /// The driver's message.
        words: String,
    },
    /// A number that is not a stream.
    #[error(
        "stream: {got} is not a CUDA stream; allowed are 1 (legacy default), 2 (per-thread default) and handles of streams \
         that exist"
    )]
    Stream {
        /// The number given.
        got: String,
    },
    /// A stream of another device.
    #[error("stream: {stream} belongs to cuda:{found}; allowed is a stream of {device}")]
    StreamElsewhere {
        /// The handle.
        stream: u64,
        /// The device of the work.
        device: Device,
        /// The id of the stream's device.
        found: i32,
    },
    /// A stream whose context is not the device's primary one.
    #[error(
        "stream: its context is not the primary context of {device}; allowed are streams of that: use `CudaContext::new`"
    )]
    OtherContext {
        /// The device.
        device: Device,
    },
    /// A stream that nothing can wait for, as it is under graph capture.
    #[error("stream: stream {stream} of {device} is capturing a graph, so its work cannot be waited for")]
    Capturing {
        /// The device.
        device: Device,
        /// The handle.
        stream: u64,
    },
    /// A device whose first use would be during a graph capture, which that would invalidate.
    #[error("device: {device} was not used before this graph capture; call dlfield.cuda.init() before it")]
    FirstUse {
        /// The device.
        device: Device,
    },
    /// Memory that the host cannot read.
    #[error("device: the memory is on {found}; the host can read cpu, cuda_host and cuda_managed only")]
    NotHostReadable {
        /// Device of the memory.
        found: Device,
    },
}

impl DeviceError {
    /// Returns the error for 0 as a stream.
    pub(crate) fn stream_0() -> DeviceError {
        DeviceError::Stream { got: "0, which may mean either default stream,".to_owned() }
    }
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
    /// [`DeviceError::UnknownCode`] unless the type is in the DLPack header and the id is 0 or more.
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
            return Err(DeviceError::UnknownCode { code: device.device_type.0.into(), id: device.device_id.into() });
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
        let unknown = || DeviceError::UnknownName { got: text.to_owned() };
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
