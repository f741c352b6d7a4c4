//! Where memory lives: DLPack's device types under the names this library uses.

use std::fmt;
use std::str::FromStr;

use dlpark::ffi::{DLDevice, DLDeviceType};

/// DLPack's code of each kind of device, and its name here.
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

/// A device: its kind and its number.
///
/// # Example
/// ```
/// use dlfield::Device;
/// let device: Device = "gpu".parse().unwrap();
/// assert_eq!(device.to_string(), "cuda:0");
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    kind: DLDeviceType,
    id: i32,
}

/// What is wrong with a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A device name nobody knows.
    #[error(
        "device: {got:?} is not a device; allowed are 'cpu', 'cuda:N', 'cuda_host', 'cuda_managed', \
         'gpu' (which is cuda:0) and the names of DLPack's other devices with ':N'"
    )]
    UnknownName {
        /// What was given.
        got: String,
    },
    /// A DLPack device type outside the header.
    #[error(
        "device: DLPack device ({code}, {id}) is not a device; allowed are the device types of DLPack 1.3 with an id of 0 or more, 0 for memory of the host"
    )]
    UnknownCode {
        /// `DLDevice.device_type`.
        code: i64,
        /// `DLDevice.device_id`.
        id: i64,
    },
    /// Memory of a device this build cannot allocate.
    #[error(
        "device: cannot allocate on {device}: dlfield has no support for it; allowed are 'cpu', 'cuda:N', 'cuda_host' and 'cuda_managed'"
    )]
    NotSupported {
        /// The device asked for.
        device: Device,
    },
    /// Memory of a device this build cannot look after.
    #[error(
        "device: the memory is on {device}, and dlfield can own memory of the host and of CUDA only; describe() it, or copy it to the host first"
    )]
    NotOwned {
        /// Where the memory is.
        device: Device,
    },
    /// Memory on one device, wanted on another.
    #[error("device: the memory is on {found}, wanted on {wanted}; copy it there: from_dlpack(obj, device='{wanted}')")]
    Mismatch {
        /// Where the memory is.
        found: Device,
        /// Where it was wanted.
        wanted: Device,
    },
    /// An address of which CUDA's driver does not know, said to be a device's.
    #[error(
        "device: the memory at {address:#x} is wanted on {wanted}, and CUDA's driver knows of none there; allowed is memory \
         that CUDA allocated"
    )]
    NotOfCuda {
        /// Where the memory is said to be.
        address: usize,
        /// The device asked for.
        wanted: Device,
    },
    /// CUDA was asked for where there is none.
    #[error("device: {device} cannot be used: {why}")]
    NoCuda {
        /// The device asked for.
        device: Device,
        /// What was looked for and not found.
        why: String,
    },
    /// A function of CUDA's driver failed.
    #[error("device: {function} on {device} failed: {words} ({code})")]
    Driver {
        /// Where.
        device: Device,
        /// The driver's function.
        function: &'static str,
        /// `CUresult`.
        code: u32,
        /// The driver's words for it.
        words: String,
    },
    /// A number that is no stream.
    #[error(
        "stream: {got} is not a CUDA stream; allowed are 1 (legacy default), 2 (per-thread default) and handles of streams \
         that are alive"
    )]
    Stream {
        /// What was given.
        got: String,
    },
    /// A stream of another device.
    #[error("stream: {stream} belongs to cuda:{found}; allowed is a stream of {device}")]
    StreamElsewhere {
        /// The handle.
        stream: u64,
        /// The device the work is for.
        device: Device,
        /// The number of the device the stream belongs to.
        found: i32,
    },
    /// A stream of a context that only its maker knows.
    #[error(
        "stream: its context is not the primary one of {device}; allowed are streams of that: make it by `CudaContext::new`"
    )]
    OtherContext {
        /// The device.
        device: Device,
    },
    /// Waiting for a stream that does not work.
    #[error("stream: the work of stream {stream} of {device} is being recorded as a graph, so nothing can wait for it")]
    Capturing {
        /// Where.
        device: Device,
        /// The handle.
        stream: u64,
    },
    /// The host was asked to read memory it cannot reach.
    #[error("device: the memory is on {found}; the host can read cpu, cuda_host and cuda_managed only")]
    NotHostReadable {
        /// Where the memory is.
        found: Device,
    },
}

impl DeviceError {
    /// 0 where a stream is wanted.
    pub(crate) fn stream_0() -> DeviceError {
        DeviceError::Stream { got: "0, which may mean either default stream,".to_owned() }
    }
}

impl Device {
    /// Ordinary host memory, DLPack's `(1, 0)`.
    pub const CPU: Device = Device { kind: DLDeviceType::CPU, id: 0 };

    /// The CUDA device with number `id`.
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

    /// Memory that the host and all CUDA devices can reach, DLPack's `(13, 0)`.
    pub const CUDA_MANAGED: Device = Device { kind: DLDeviceType::CUDAMANAGED, id: 0 };

    /// The ROCm device with number `id`.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::rocm(0).to_string(), "rocm:0");
    /// ```
    pub const fn rocm(id: u16) -> Device {
        Device { kind: DLDeviceType::ROCM, id: id as i32 }
    }

    /// Reads DLPack's pair of device type and id.
    ///
    /// # Errors
    /// [`DeviceError::UnknownCode`] for a type outside the DLPack header or a negative id.
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
        // The header fixes the id of these to 0, and producers disagree on what else to put there.
        Ok(if device.is_numbered() { device } else { Device { id: 0, ..device } })
    }

    /// The device as DLPack writes it.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).to_dlpack().device_id, 1);
    /// ```
    pub fn to_dlpack(self) -> DLDevice {
        DLDevice { device_type: self.kind, device_id: self.id }
    }

    /// The kind's name: `"cpu"`, `"cuda"`, `"cuda_host"`, …
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).kind(), "cuda");
    /// ```
    pub fn kind(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("unknown", |(_, name)| name)
    }

    /// The number among devices of its kind; 0 where there is only one.
    ///
    /// # Example
    /// ```
    /// assert_eq!(dlfield::Device::cuda(1).id(), 1);
    /// ```
    pub fn id(self) -> i32 {
        self.id
    }

    /// Whether host code may read the memory.
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

    /// Whether it is a CUDA device, whose memory the host cannot reach.
    pub(crate) fn is_cuda(self) -> bool {
        self.kind == DLDeviceType::CUDA
    }

    /// Whether CUDA's driver knows the memory.
    pub(crate) fn is_of_cuda(self) -> bool {
        self.is_cuda() || self == Device::CUDA_HOST || self == Device::CUDA_MANAGED
    }

    /// Whether memory there can be owned: the host reads it, or CUDA's driver looks after it.
    #[cfg(feature = "python")]
    pub(crate) fn is_ownable(self) -> bool {
        self.is_host_readable() || self.is_of_cuda()
    }

    /// The number of the CUDA device whose driver context looks after the memory; the first for that of all devices.
    pub(crate) fn cuda_ordinal(self) -> i32 {
        if self.is_cuda() { self.id } else { 0 }
    }

    /// Whether an address may mean the same memory on both.
    pub(crate) fn shares_addresses(self, other: Device) -> bool {
        // CUDA gives the host and all devices one range of addresses, and the same memory goes under several names.
        let of_one_range = |device: Device| device.is_host_readable() || device.is_cuda();
        self == other || of_one_range(self) && of_one_range(other)
    }

    /// Whether several devices of this kind are told apart by a number.
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

    /// Reads `"cpu"`, `"cuda:1"`, `"gpu"`, …; a missing number is 0.
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
