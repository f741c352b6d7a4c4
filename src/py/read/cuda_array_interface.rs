//! `__cuda_array_interface__` and its twin of ROCm, `__hip_array_interface__`.
//!
//! Source: Numba's page on the CUDA array interface, versions 2 and 3. Nothing here needs a GPU: memory is described, not
//! touched.

use pyo3::prelude::*;

use super::{Purpose, Reading, Request, buffer, dictionary, kept};
use crate::device::Device;
use crate::protocol::ExchangeError;
use crate::protocol::array_interface::{CUDA, HIP, Interface};
use crate::py::args;
use crate::py::keep::Keep;

/// One of the two.
struct Side {
    interface: &'static Interface,
    /// The kinds of device whose memory it may describe. It does not say which device that is.
    kinds: &'static [&'static str],
    /// The device where the caller does not know better.
    default: Device,
}

static SIDES: [Side; 2] = [
    Side { interface: &CUDA, kinds: &["cuda", "cuda_managed"], default: Device::cuda(0) },
    Side { interface: &HIP, kinds: &["rocm"], default: Device::rocm(0) },
];

pub(super) fn read_cuda(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    SIDES[0].read(object, request, purpose)
}

pub(super) fn read_hip(
    object: &Bound<'_, PyAny>,
    request: &Request<'_, '_>,
    purpose: Purpose,
) -> PyResult<Option<Reading>> {
    SIDES[1].read(object, request, purpose)
}

impl Side {
    fn read(
        &self,
        object: &Bound<'_, PyAny>,
        request: &Request<'_, '_>,
        purpose: Purpose,
    ) -> PyResult<Option<Reading>> {
        let wanted = request.device.filter(|device| self.kinds.contains(&device.kind()));
        if let Some(other) = request.device.filter(|_| wanted.is_none())
            && is_elsewhere_too(object, other)?
        {
            return Ok(None);
        }
        let Some(value) = object.getattr_opt(self.interface.name)? else { return Ok(None) };
        let dict = dictionary::of(self.interface.name, &value)?;
        let found = dictionary::on_device(object, &dict, self.interface)?;
        let descriptor = found.read(self.interface, wanted.unwrap_or(self.default))?;
        check_order(self.interface, request.stream, found.stream)?;
        let object = (purpose == Purpose::Own).then(|| Keep::new(object));
        let keeper = (object, Keep::new(dict.as_any()));
        Ok(Some(kept(descriptor, keeper)))
    }
}

/// Whether an object with memory on a GPU has a protocol for another device too.
fn is_elsewhere_too(object: &Bound<'_, PyAny>, device: Device) -> PyResult<bool> {
    if device == Device::CPU {
        return Ok(buffer::is_exporter(object) || object.getattr_opt("__array_interface__")?.is_some());
    }
    Ok(device.kind() == "rocm" && object.getattr_opt(HIP.name)?.is_some())
}

/// Refuses a consumer's stream that work of the producer on another stream would have to be waited for on.
pub(super) fn check_order(
    interface: &Interface,
    wanted: Option<&Bound<'_, PyAny>>,
    found: Option<i64>,
) -> PyResult<()> {
    let Some(wanted) = wanted.filter(|stream| !stream.is_none()) else { return Ok(()) };
    let refuse = |allowed| ExchangeError::Argument { argument: "stream", got: args::shown(wanted), allowed };
    let stream: i64 = wanted.extract().map_err(|_| refuse("None, -1 or the number of a stream"))?;
    if stream == -1 {
        // The caller sees to the order.
        return Ok(());
    }
    if let Some(allowed) = interface.refuses_stream(stream) {
        return Err(refuse(allowed).into());
    }
    if found.is_some_and(|found| found != stream) {
        let allowed = "the producer's own stream, or -1 for no waiting: this build of dlfield cannot order streams";
        return Err(refuse(allowed).into());
    }
    Ok(())
}
