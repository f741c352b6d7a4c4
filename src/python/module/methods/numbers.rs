//! Python numbers and lists of elements, from any device.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::device::Device;
use crate::python::convert::args;
use crate::python::copies;
use crate::python::ffi::new_error::{ArgumentError, new_error};
use crate::python::module::classes::tensor::PyTensor;
use crate::python::module::export;

#[pymethods]
impl PyTensor {
    fn __bool__(slf: &Bound<'_, PyTensor>) -> PyResult<bool> {
        number_array(slf)?.is_truthy()
    }

    fn __index__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        number_array(slf)?.call_method0(intern!(slf.py(), "__index__"))
    }

    fn __int__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        number_array(slf)?.call_method0(intern!(slf.py(), "__int__"))
    }

    fn __float__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        number_array(slf)?.call_method0(intern!(slf.py(), "__float__"))
    }

    fn __complex__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        number_array(slf)?.call_method0(intern!(slf.py(), "__complex__"))
    }

    /// Rounds the number of a tensor without dimensions, as Python's `round` does.
    #[pyo3(signature = (ndigits=None))]
    fn __round__<'py>(slf: &Bound<'py, PyTensor>, ndigits: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let number = number(slf)?.ok_or_else(|| {
            let error = ArgumentError::new("round", &"a tensor without dimensions", &args::shown(slf));
            new_error::<PyTypeError>(error.with_fix(&"numpy.rint(field) rounds each element"))
        })?;
        PyModule::import(slf.py(), intern!(slf.py(), "builtins"))?
            .call_method1(intern!(slf.py(), "round"), (number, ndigits))
    }

    /// Formats the number of a tensor without dimensions; without a format, any tensor as `str`.
    fn __format__<'py>(slf: &Bound<'py, PyTensor>, format_spec: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        if format_spec.is_empty()? {
            return Ok(slf.str()?.into_any());
        }
        if let Some(number) = number(slf)? {
            return number.call_method1(intern!(slf.py(), "__format__"), (format_spec,));
        }
        let got = format_args!("{} for {}", args::shown(format_spec), args::shown(slf));
        let expected = "no format, or a tensor without dimensions";
        Err(new_error::<PyTypeError>(ArgumentError::new("format", &expected, &got)))
    }

    /// Returns one element as a Python number: the only one; or the one at an index, which may also be a position in C order.
    ///
    /// From a device, only this element is copied. Raises `ValueError` without an index unless there is one element, and
    /// `IndexError` for an index outside.
    ///
    /// >>> import dlfield as dl
    /// >>> field = dl.from_array([[1, 2], [3, 4]])
    /// >>> field.item(1, 0), field.item(-1), field[0, 1:].item()
    /// (3, 4, 2)
    #[pyo3(signature = (*args))]
    fn item<'py>(slf: &Bound<'py, PyTensor>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (slf.py(), intern!(slf.py(), "item"));
        let array = number_array(slf)?;
        let descriptor = slf.get().descriptor();
        if descriptor.device().is_host_readable() || descriptor.size() <= 1 {
            return array.call_method1(name, args);
        }
        // NumPy checks the index, on its array of zeros.
        array.call_method1(name, args)?;
        let index = match args.len() {
            1 => args.get_item(0)?,
            _ => args.clone().into_any(),
        };
        let index = if index.is_instance_of::<PyTuple>() {
            index
        } else {
            let position = index
                .call_method0(intern!(py, "__index__"))?
                .call_method1(intern!(py, "__mod__"), (descriptor.size(),))?;
            let shape = slf.get().shape(py)?;
            py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "unravel_index"), (position, shape))?
        };
        slf.get_item(index)?.call_method0(name)
    }

    /// Returns the elements as nested lists of Python numbers, copied from any device; one number without dimensions.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.ones((2, 2), "int32").tolist()
    /// [[1, 1], [1, 1]]
    fn tolist<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        on_host(slf)?.call_method0(intern!(slf.py(), "tolist"))
    }

    /// Returns a copy of the elements as `bytes`, without padding, from any device. `order` is "C", "F" or "A", as for
    /// `numpy.ndarray.tobytes`.
    ///
    /// >>> import dlfield as dl
    /// >>> dl.from_array([[1, 2], [3, 4]], "int8").tobytes("F")
    /// b'\x01\x03\x02\x04'
    #[pyo3(signature = (order="C"))]
    fn tobytes<'py>(slf: &Bound<'py, PyTensor>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        on_host(slf)?.call_method1(intern!(slf.py(), "tobytes"), (order,))
    }
}

/// Returns the elements as a NumPy array: on the same memory if the host can read it, else a copy.
pub(crate) fn on_host<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let tensor = &slf.get().0;
    if tensor.descriptor().device().is_host_readable() {
        return export::numpy::view_of(slf);
    }
    export::numpy::view(slf.py(), &copies::to(slf.py(), tensor, Device::CPU, None)?)
}

/// Returns the elements as a NumPy array to convert to a number. Many elements on a device are not a number: for NumPy's error,
/// the array has the shape and element type, and zeros.
fn number_array<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let descriptor = slf.get().descriptor();
    if descriptor.device().is_host_readable() || descriptor.size() <= 1 {
        return on_host(slf);
    }
    let py = slf.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let zero = numpy.call_method1(intern!(py, "zeros"), ((), slf.get().dtype(py)?))?;
    numpy.call_method1(intern!(py, "broadcast_to"), (zero, slf.get().shape(py)?))
}

/// Returns the number of a tensor without dimensions, as NumPy's scalar.
fn number<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if slf.get().descriptor().ndim() > 0 {
        return Ok(None);
    }
    on_host(slf)?.get_item(PyTuple::empty(slf.py())).map(Some)
}
