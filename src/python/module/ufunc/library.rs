//! Chooses NumPy or CuPy for a ufunc call, converts tensors to its arrays, and calls it.

use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arithmetic::LabelledShape;
use crate::device::Device;
use crate::layout::Spec;
use crate::python::convert::errors::ErrorKind;
use crate::python::copies;
use crate::python::ffi::getattr::{self, Keyword};
use crate::python::ffi::new_error::new_error;
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export::{self, cupy};
use crate::python::module::ufunc::name;
use crate::python::module::ufunc::operands::{Array, LabelSource, Operand, Operands};
use crate::python::module::ufunc::outputs::Outputs;
use crate::tensor::Tensor;

/// CuPy's functions for reductions, as most of its ufuncs have no `reduce`.
const REDUCTIONS: [(&str, &str); 8] = [
    ("add", "sum"),
    ("multiply", "prod"),
    ("logical_and", "all"),
    ("logical_or", "any"),
    ("maximum", "max"),
    ("minimum", "min"),
    ("fmax", "nanmax"),
    ("fmin", "nanmin"),
];

/// The library that computes.
pub(super) enum ArrayLibrary<'py> {
    NumPy,
    CuPy {
        module: Bound<'py, PyModule>,
        /// A CUDA device, or managed memory, which is used on the first device.
        device: Device,
    },
}

impl<'py> ArrayLibrary<'py> {
    /// Chooses by the devices of the arrays: all on the host, or all tensors on one device. Managed memory fits both; host
    /// arrays of other libraries are copied to the device.
    #[inline]
    pub(super) fn choose(operands: &Operands<'py>, outputs: &Outputs<'py>) -> PyResult<ArrayLibrary<'py>> {
        let on_host = |array: &Array<'py>| array.tensor().descriptor().device() == Device::CPU;
        if operands.arrays().all(on_host) && outputs.given().all(on_host) {
            return Ok(ArrayLibrary::NumPy);
        }
        ArrayLibrary::choose_cold(operands, outputs)
    }

    #[cold]
    fn choose_cold(operands: &Operands<'py>, outputs: &Outputs<'py>) -> PyResult<ArrayLibrary<'py>> {
        let (mut wanted, mut host, mut any_host, mut py) = (None, None, false, None);
        let inputs = operands.arrays().map(|array| (array, array.labels == LabelSource::Tensor));
        // Arrays of other libraries can be copied to a device first, but not outputs.
        for (array, stays) in inputs.chain(outputs.given().map(|array| (array, true))) {
            py = Some(array.tensor.py());
            let device = array.tensor().descriptor().device();
            if device.is_cuda() {
                match wanted {
                    Some(other) if other != device => return Err(different_devices(other, device)),
                    _ => wanted = Some(device),
                }
            } else if device != Device::CUDA_MANAGED {
                any_host = true;
                host = host.or(Some(device).filter(|_| stays));
            }
        }
        if let (Some(device), Some(host)) = (wanted, host) {
            let is_array =
                |array: &Array<'py>| array.own_tensor().is_none() && array.tensor().descriptor().device() == host;
            return Err(match outputs.given().any(is_array) {
                true => host_output(host, device),
                false => different_devices(host, device),
            });
        }
        let device = wanted.unwrap_or(Device::CUDA_MANAGED);
        match py {
            Some(py) if wanted.is_some() || !any_host => {
                Ok(ArrayLibrary::CuPy { module: cupy::module(py, &format!("arithmetic on {device}"))?, device })
            }
            _ => Ok(ArrayLibrary::NumPy),
        }
    }

    /// Sets the device of a new result to the one that computes.
    pub(super) fn spec(&self, spec: Spec) -> Spec {
        match self {
            ArrayLibrary::CuPy { device, .. } => spec.with_device(*device),
            ArrayLibrary::NumPy => spec,
        }
    }

    /// Converts an operand to an array of the library, with the labels and sizes to compute in.
    #[inline]
    pub(super) fn operand(&self, operand: &Operand<'py>, space: &LabelledShape) -> PyResult<Bound<'py, PyAny>> {
        match (operand, self) {
            (Operand::Array(array), _) => self.input(&array.tensor, space),
            // CuPy takes NumPy's numbers, but not its arrays.
            (Operand::Number(number), ArrayLibrary::CuPy { .. }) if number.cast::<PyUntypedArray>().is_ok() => {
                number.get_item(PyTuple::empty(number.py()))
            }
            (Operand::Number(number), _) => Ok(number.clone()),
        }
    }

    /// Converts a tensor that is read, and copies it to the device if needed.
    #[inline]
    pub(super) fn input(&self, tensor: &Bound<'py, PyTensor>, space: &LabelledShape) -> PyResult<Bound<'py, PyAny>> {
        let (py, found) = (tensor.py(), &tensor.get().0);
        let matches = is_arranged_as(found, space);
        match self {
            // NumPy itself repeats an array without dimensions.
            ArrayLibrary::NumPy if matches || found.descriptor().ndim() == 0 => export::numpy::view_of(tensor),
            ArrayLibrary::NumPy => {
                let wide = found.broadcast_to(space.dims(), space.shape())?;
                export::numpy::view_of(&PyTensor::create(py, wide)?)
            }
            ArrayLibrary::CuPy { device, .. } => {
                let on_device =
                    copies::to(py, found, if device.is_cuda() { *device } else { found.descriptor().device() }, None)?;
                let wide = if matches { on_device } else { on_device.arranged(space.dims(), space.shape())? };
                cupy::array(&PyTensor::create(py, wide.into_readable())?)
            }
        }
    }

    /// Converts a tensor that is written. It differs from `space` at most in the order of dimensions.
    #[inline]
    pub(super) fn output(&self, tensor: &Bound<'py, PyTensor>, space: &LabelledShape) -> PyResult<Bound<'py, PyAny>> {
        let found = &tensor.get().0;
        let arranged = if is_arranged_as(found, space) {
            tensor.clone()
        } else {
            PyTensor::create(tensor.py(), found.arranged(space.dims(), space.shape())?)?
        };
        match self {
            ArrayLibrary::NumPy => export::numpy::view_of(&arranged),
            ArrayLibrary::CuPy { .. } => cupy::array(&arranged),
        }
    }

    /// Calls the library's ufunc with arrays for the results.
    #[inline]
    pub(super) fn call(
        &self,
        ufunc: &Bound<'py, PyAny>,
        inputs: &[Bound<'py, PyAny>],
        outputs: &[Bound<'py, PyAny>],
        keywords: Option<&Bound<'py, PyDict>>,
        written: &[Bound<'py, PyTensor>],
    ) -> PyResult<()> {
        static OUT: Keyword = Keyword::new("out");
        let py = ufunc.py();
        let ArrayLibrary::CuPy { module, device } = self else {
            let several;
            let out = match outputs {
                [out] => out,
                _ => {
                    several = PyTuple::new(py, outputs)?.into_any();
                    &several
                }
            };
            let Some(keywords) = keywords else {
                let arguments: SmallVec<[_; 4]> = inputs.iter().chain([out]).collect();
                return getattr::call(ufunc, &arguments, Some(OUT.get(py)?)).map(drop);
            };
            keywords.set_item(intern!(py, "out"), out)?;
            return ufunc.call(PyTuple::new(py, inputs)?, Some(keywords)).map(drop);
        };
        let function = function(module, &name(ufunc)?)?;
        if let Some(keywords) = keywords
            && let Some(mask) = keywords.get_item("where")?
        {
            // CuPy's name for `where`.
            keywords.set_item("_where", mask)?;
            keywords.del_item("where")?;
        }
        // Older versions take several results by position only.
        let arguments = PyTuple::new(py, inputs.iter().chain(outputs).collect::<SmallVec<[_; 4]>>())?;
        cupy::on(module, *device, written, || function.call(arguments, keywords).map(drop))
    }

    /// Copies an array to all of a tensor, both as arrays of the library.
    pub(super) fn assign(
        &self,
        to: &Bound<'py, PyAny>,
        from: &Bound<'py, PyAny>,
        written: &Bound<'py, PyTensor>,
    ) -> PyResult<()> {
        let assign = || to.set_item(to.py().Ellipsis(), from);
        match self {
            ArrayLibrary::NumPy => assign(),
            ArrayLibrary::CuPy { module, device } => cupy::on(module, *device, std::slice::from_ref(written), assign),
        }
    }

    /// Reduces an array with the given keywords.
    pub(super) fn reduce(
        &self,
        ufunc: &Bound<'py, PyAny>,
        array: &Bound<'py, PyAny>,
        keywords: &Bound<'py, PyDict>,
        written: &[Bound<'py, PyTensor>],
    ) -> PyResult<()> {
        let py = ufunc.py();
        let ArrayLibrary::CuPy { module, device } = self else {
            return ufunc.call_method(intern!(py, "reduce"), (array,), Some(keywords)).map(drop);
        };
        let lacking = |keyword: &str| {
            let what = format!("{keyword}: CuPy's reductions do not have it; copy the field with to_device('cpu')");
            new_error::<PyTypeError>(what)
        };
        if keywords.contains("initial")? {
            return Err(lacking("initial"));
        }
        // What the mask leaves out is replaced by what changes no result.
        let mask = keywords.get_item("where")?;
        let identity = ufunc.getattr(intern!(py, "identity"))?;
        if mask.is_some() {
            if identity.is_none() {
                return Err(lacking("where"));
            }
            keywords.del_item("where")?;
        }
        let name = name(ufunc)?;
        let reduction = match REDUCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, reduction)) => module.getattr(*reduction)?,
            None => {
                let what = format!("{name}.reduce: CuPy has no such reduction; copy the field with to_device('cpu')");
                return Err(new_error::<PyTypeError>(what));
            }
        };
        // As NumPy, reduces elements of the type of `out`, if no other is given.
        let dtype = match keywords.get_item("dtype")? {
            Some(given) if !given.is_none() => given,
            _ => written[0].get().dtype(py)?.into_any(),
        };
        let takes_dtype = matches!(&*name, "add" | "multiply");
        if takes_dtype {
            keywords.set_item("dtype", &dtype)?;
        } else if keywords.contains("dtype")? {
            keywords.del_item("dtype")?;
        }
        cupy::on(module, *device, written, || {
            let selected = match &mask {
                Some(mask) => Some(module.call_method1(intern!(py, "where"), (mask, array, &identity))?),
                None => None,
            };
            let array = selected.as_ref().unwrap_or(array);
            if !matches!(&*name, "maximum" | "minimum" | "fmax" | "fmin") {
                return reduction.call((array,), Some(keywords)).map(drop);
            }
            // By keyword: CuPy has other parameters before `copy`, which it rejects.
            let no_copy = [("copy", false)].into_py_dict(py)?;
            let array = array.call_method(intern!(py, "astype"), (dtype,), Some(&no_copy))?;
            // CuPy 14.2 takes `out` for the dtype where CUB reduces, which is for whole arrays without gaps.
            let out = keywords.get_item("out")?;
            keywords.del_item("out")?;
            let found = reduction.call((array,), Some(keywords))?;
            out.map_or(Ok(()), |out| out.set_item(py.Ellipsis(), found))
        })
    }
}

/// Whether a tensor has these labels in this order, with these sizes.
#[inline]
fn is_arranged_as(tensor: &Tensor, space: &LabelledShape) -> bool {
    tensor.descriptor().shape() == space.shape() && tensor.dims() == *space.dims()
}

fn different_devices(one: Device, other: Device) -> PyErr {
    ErrorKind::Device.error(format!(
        "device: expected tensors on one device, got {one} and {other}; copy one with to_device('{other}')"
    ))
}

/// The error for an array of another library on the host, such as `array` in `array += field`, for the result on a device.
#[cold]
fn host_output(host: Device, device: Device) -> PyErr {
    ErrorKind::Device.error(format!(
        "out: expected an array on {device}, where the field is, got one on {host}; copy the field: field.to_device('{host}')"
    ))
}

/// CuPy's function of this name.
fn function<'py>(module: &Bound<'py, PyModule>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    module.getattr_opt(name)?.ok_or_else(|| {
        new_error::<PyTypeError>(format!("{name}: CuPy has no such ufunc; copy the fields with to_device('cpu')"))
    })
}
