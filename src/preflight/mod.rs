//! Decides whether a framework can use a field's memory without a copy: the requirements of all frameworks, in one place.
//!
//! Only the descriptor is read, never the elements. Callers find out whether the installed version of a framework has an
//! element type by trying, and pass the result as [`Support`].

mod terms;

use std::fmt;

pub use self::terms::{Support, Target, Verdict};

use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::dtype::DType;
use crate::layout::is_compact;

/// XLA on the CPU shares memory only at multiples of this many bytes; elsewhere it copies silently.
const JAX_ALIGNMENT: u64 = 64;

const TAKE_A_COPY: &str = "pass copy=None for a copy";
const USE_PRESET: &str = "pass copy=None for a copy, or a whole field allocated with backend='jax'";

/// A verdict with its reason and a fix; both are empty for zero-copy.
///
/// # Example
/// ```
/// use dlfield::{DType, Preset, Spec, Support, Target, Tensor, Verdict, preflight};
///
/// let spec = Spec::new(&[3, 4], DType::F32);
/// let compact = Tensor::zeros(&spec.clone().preset(Preset::find("jax").unwrap())).unwrap();
/// assert_eq!(preflight(compact.descriptor(), Target::Jax, false, Support::Shares).verdict, Verdict::ZeroCopy);
///
/// let padded = Tensor::zeros(&spec.alignment_size(64)).unwrap();
/// let found = preflight(padded.descriptor(), Target::Jax, false, Support::Shares);
/// assert_eq!(found.verdict, Verdict::Copy);
/// assert_eq!(found.reason, "JAX takes compact strides only, found (64, 4) bytes for shape (3, 4)");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Preflight {
    /// The outcome for the memory.
    pub verdict: Verdict,
    /// What was found and what is allowed.
    pub reason: String,
    /// What the user can do about it.
    pub fix: String,
}

impl fmt::Display for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict.fmt(f)?;
        for (mark, part) in [(": ", &self.reason), ("; ", &self.fix)] {
            if !part.is_empty() {
                write!(f, "{mark}{part}")?;
            }
        }
        Ok(())
    }
}

/// Decides whether `target` can use a field's memory; with `write` the array must be writable.
///
/// `support` is how the installed version of the framework supports the field's element type.
///
/// # Example
/// ```
/// use dlfield::{DType, Spec, Support, Target, Tensor, Verdict, preflight};
/// let field = Tensor::zeros(&Spec::new(&[4, 5], DType::F64)).unwrap();
/// let found = preflight(field.descriptor(), Target::NumPy, true, Support::Shares);
/// assert_eq!(found.verdict, Verdict::ZeroCopy);
/// ```
pub fn preflight(field: &Descriptor, target: Target, write: bool, support: Support) -> Preflight {
    if let Some(never) = unwritable(target, write) {
        return never;
    }
    if let Some((reason, fix)) = unreachable(field.device(), target) {
        return Preflight::impossible(reason, fix);
    }
    let (title, dtype) = (target.title(), field.dtype());
    let obstacle = match support {
        Support::Lacks => {
            let fix = "cast to a type that it has, such as float32";
            return Preflight::impossible(format!("the installed {title} has no dtype {dtype}"), fix);
        }
        Support::Copies => Some((format!("the installed {title} does not share memory of dtype {dtype}"), TAKE_A_COPY)),
        Support::Shares => match target {
            Target::NumPy => None,
            Target::Torch => torch_obstacle(field),
            Target::Jax => jax_obstacle(field),
            Target::CuPy => cupy_obstacle(field),
        },
    };
    match obstacle {
        Some((reason, fix)) => Preflight::copy(reason, fix, write),
        None if target == Target::NumPy && write => Preflight::own(target, field.is_readonly(), write),
        None => Preflight::zero_copy(),
    }
}

impl Preflight {
    /// Decides for an array of the framework itself, which is passed on unchanged.
    pub(crate) fn own(target: Target, readonly: bool, write: bool) -> Preflight {
        if let Some(never) = unwritable(target, write) {
            return never;
        }
        if readonly && write {
            let fix = "pass copy=True for an array that may be written";
            return Preflight::copy("the memory is read-only", fix, write);
        }
        Preflight::zero_copy()
    }

    /// Returns the preflight of an object that cannot be described, from the error's message: the reason before the first
    /// semicolon, then how to fix it.
    pub(crate) fn refused(message: &str) -> Preflight {
        let (reason, fix) = message.split_once("; ").unwrap_or((message, ""));
        Preflight::impossible(reason, fix)
    }

    /// Returns the preflight of an object that exports a copy instead of its memory, for any framework.
    pub(crate) fn exported_copy(write: bool) -> Preflight {
        Preflight::copy("obj exports a copy, not its own memory", "pass copy=None to take that copy", write)
    }

    /// Returns whether the framework shares the memory.
    ///
    /// # Example
    /// ```
    /// use dlfield::{Support, Target, Tensor, preflight};
    /// let field = Tensor::zeros(&dlfield::Spec::new(&[3], dlfield::DType::F64)).unwrap();
    /// assert!(preflight(field.descriptor(), Target::NumPy, true, Support::Shares).is_zero_copy());
    /// assert!(!preflight(field.descriptor(), Target::NumPy, true, Support::Copies).is_zero_copy());
    /// ```
    pub fn is_zero_copy(&self) -> bool {
        self.verdict == Verdict::ZeroCopy
    }

    fn zero_copy() -> Preflight {
        Preflight { verdict: Verdict::ZeroCopy, reason: String::new(), fix: String::new() }
    }

    fn copy(reason: impl Into<String>, fix: &str, write: bool) -> Preflight {
        let mut reason = reason.into();
        if write {
            reason.push_str("; what is written to a copy does not reach obj");
        }
        Preflight { verdict: Verdict::Copy, reason, fix: fix.to_owned() }
    }

    fn impossible(reason: impl Into<String>, fix: impl Into<String>) -> Preflight {
        Preflight { verdict: Verdict::Impossible, reason: reason.into(), fix: fix.into() }
    }
}

/// Returns the verdict if arrays of `target` are immutable and `write` is set.
fn unwritable(target: Target, write: bool) -> Option<Preflight> {
    let fix = "write through NumPy or PyTorch: as_numpy, as_torch";
    (write && target == Target::Jax).then(|| Preflight::impossible("JAX arrays are never written to", fix))
}

type Obstacle = Option<(String, &'static str)>;

/// Returns why the framework cannot make an array of memory on this device. Callers check whether the installed PyTorch or JAX
/// has the CUDA device.
fn unreachable(device: Device, target: Target) -> Obstacle {
    let fix = "copy it to the host: from_dlpack(obj, device='cpu')";
    let (reason, fix) = match target {
        Target::NumPy | Target::CuPy if device.is_host_readable() => return None,
        Target::CuPy if is_cuda(device) => return None,
        Target::Torch | Target::Jax if device == Device::CPU || device.is_of_cuda() => return None,
        Target::NumPy if is_cuda(device) => ("which the host cannot read", fix),
        Target::NumPy => ("which the host cannot read", "copy it to the host with the library it comes from"),
        Target::CuPy => ("which CuPy cannot read", "copy it to the host with the library it comes from"),
        Target::Torch => {
            ("and dlfield exports only memory on cpu and CUDA to PyTorch", "pass obj to torch.from_dlpack itself")
        }
        Target::Jax => {
            ("and dlfield exports only memory on cpu and CUDA to JAX", "pass obj to jax.numpy.from_dlpack itself")
        }
    };
    Some((format!("the memory is on {device}, {reason}"), fix))
}

fn is_cuda(device: Device) -> bool {
    matches!(device.kind(), "cuda" | "cuda_managed")
}

/// Returns whether PyTorch can share the memory, if it has the element type: [`preflight`] without the reasons.
pub(crate) fn torch_shares(field: &Descriptor) -> bool {
    field.device() == Device::CPU && torch_obstacle(field).is_none()
}

/// Returns whether JAX takes the memory as it is, regardless of its version and its setting of x64. It may take others too:
/// [`preflight`] says which.
pub(crate) fn jax_takes(field: &Descriptor) -> bool {
    let narrow =
        [DType::F32, DType::I32, DType::F16, DType::BF16, DType::C64, DType::I8, DType::U8, DType::I16, DType::U32];
    let usual = field.device() == Device::CPU && !field.is_readonly() && narrow.contains(&field.dtype());
    usual && jax_obstacle(field).is_none()
}

fn torch_obstacle(field: &Descriptor) -> Obstacle {
    if field.size() == 0 {
        return None;
    }
    if field.is_readonly() {
        return Some(("the memory is read-only and PyTorch would write into it".to_owned(), TAKE_A_COPY));
    }
    if field.shape().iter().zip(field.strides()).any(|(extent, stride)| *extent > 1 && *stride < 0) {
        return Some((format!("PyTorch has no negative strides, found {} bytes", byte_strides(field)), TAKE_A_COPY));
    }
    None
}

fn jax_obstacle(field: &Descriptor) -> Obstacle {
    if field.size() == 0 {
        return None;
    }
    if !is_compact(field.shape(), field.strides()) {
        let (found, shape) = (byte_strides(field), tuple(field.shape().iter().copied()));
        return Some((format!("JAX takes compact strides only, found {found} bytes for shape {shape}"), USE_PRESET));
    }
    if is_cuda(field.device()) && field.is_readonly() {
        // On the host, a read-only NumPy array passes this on.
        return Some((
            "the memory is read-only, and JAX takes GPU memory without a read-only flag".to_owned(),
            TAKE_A_COPY,
        ));
    }
    if field.alignment() < JAX_ALIGNMENT && field.device().is_host_readable() {
        let found = field.ptr().addr();
        let reason = format!("JAX takes addresses that are a multiple of {JAX_ALIGNMENT} bytes only, found {found:#x}");
        return Some((reason, USE_PRESET));
    }
    if field.is_readonly() && !field.is_c_contiguous() {
        let found = byte_strides(field);
        return Some((format!("JAX takes read-only memory in C order only, found strides {found} bytes"), TAKE_A_COPY));
    }
    None
}

fn cupy_obstacle(field: &Descriptor) -> Obstacle {
    if !is_cuda(field.device()) {
        let reason = format!("the memory is on {} and CuPy works on cuda and cuda_managed only", field.device());
        return Some((reason, TAKE_A_COPY));
    }
    if field.is_readonly() && field.size() != 0 {
        return Some(("the memory is read-only and CuPy would write into it".to_owned(), TAKE_A_COPY));
    }
    None
}

fn byte_strides(field: &Descriptor) -> String {
    tuple(field.byte_strides())
}

/// Formats numbers as a Python tuple.
fn tuple(numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("({}{})", numbers.join(", "), if numbers.len() == 1 { "," } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_have_names_and_their_own_arrays_are_handed_on() {
        assert_eq!(Target::from_name("NumPy"), None);
        for target in Target::ALL {
            assert_eq!(Target::from_name(target.name()), Some(target));
            assert!(Preflight::own(target, true, false).is_zero_copy());
            let written = Preflight::own(target, false, true).verdict;
            assert_eq!(written, if target == Target::Jax { Verdict::Impossible } else { Verdict::ZeroCopy });
        }
        assert_eq!(Preflight::own(Target::NumPy, true, true).verdict, Verdict::Copy);
    }

    #[test]
    fn errors_are_taken_apart() {
        let found = Preflight::refused("dtype: expected native byte order, got '>f8'; convert it; with this");
        assert_eq!(
            (found.verdict, &*found.reason),
            (Verdict::Impossible, "dtype: expected native byte order, got '>f8'")
        );
        assert_eq!(found.fix, "convert it; with this");
        assert_eq!(Preflight::refused("no more than this").to_string(), "impossible: no more than this");
        assert_eq!(Preflight::exported_copy(false).verdict, Verdict::Copy);
    }
}
