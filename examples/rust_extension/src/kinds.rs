//! Functions for dlfield's tests, one for each kind of argument and of return value.

use pyo3::prelude::*;

/// Functions for dlfield's tests.
#[pymodule]
pub mod kinds {
    use dlfield::ndarray::{Array, ArrayView, Ix2, Ix3, IxDyn, ShapeBuilder};
    use dlfield::python::{AnyIn, AnyOrder, Axes, COrder, Cuda, FOrder, IJK, In, OrCopy, Out};
    use dlfield::{DType, Device, Element, LayoutError, Spec, Tensor};
    use pyo3::prelude::*;
    use pyo3::types::PyList;

    /// Returns the elements in C order.
    fn listed<'py, T: Element + IntoPyObject<'py>>(
        py: Python<'py>,
        view: ArrayView<'_, T, Ix2>,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, view.iter().copied().collect::<Vec<T>>())
    }

    #[pyfunction]
    fn c_order<'py>(py: Python<'py>, x: In<'py, f32, Ix2, COrder>) -> PyResult<Bound<'py, PyList>> {
        assert!(x.array().is_standard_layout());
        listed(py, x.array())
    }

    #[pyfunction]
    fn f_order<'py>(py: Python<'py>, x: In<'py, f32, Ix2, FOrder>) -> PyResult<Bound<'py, PyList>> {
        assert!(x.array().reversed_axes().is_standard_layout());
        listed(py, x.array())
    }

    #[pyfunction]
    fn or_copy<'py>(py: Python<'py>, x: OrCopy<'py, f64, Ix2, FOrder>) -> PyResult<(bool, Bound<'py, PyList>)> {
        Ok((x.is_copy(), listed(py, x.array())?))
    }

    #[pyfunction]
    fn on_cuda(x: In<'_, f64, IxDyn, AnyOrder, Cuda>) -> (usize, String) {
        (x.descriptor().ptr().addr(), x.descriptor().device().to_string())
    }

    fn owned<T: Element>(x: &AnyIn<'_>) -> PyResult<Tensor> {
        Ok(Tensor::from_array(x.view::<T, IxDyn>()?.to_owned())?)
    }

    /// Returns a copy, made with the Rust type of the elements.
    #[pyfunction]
    fn echo(x: AnyIn<'_>) -> PyResult<Tensor> {
        use half::{bf16, f16};
        use num_complex::Complex;
        match x.descriptor().dtype() {
            DType::BOOL => owned::<bool>(&x),
            DType::I8 => owned::<i8>(&x),
            DType::I16 => owned::<i16>(&x),
            DType::I32 => owned::<i32>(&x),
            DType::I64 => owned::<i64>(&x),
            DType::U8 => owned::<u8>(&x),
            DType::U16 => owned::<u16>(&x),
            DType::U32 => owned::<u32>(&x),
            DType::U64 => owned::<u64>(&x),
            DType::F16 => owned::<f16>(&x),
            DType::BF16 => owned::<bf16>(&x),
            DType::F32 => owned::<f32>(&x),
            DType::C64 => owned::<Complex<f32>>(&x),
            DType::C128 => owned::<Complex<f64>>(&x),
            _ => owned::<f64>(&x),
        }
    }

    /// Returns a copy in the order I, J, K, and the origin.
    #[pyfunction]
    fn by_label(x: In<'_, f64, IJK>) -> PyResult<(Tensor, Option<Vec<i64>>)> {
        Ok((Tensor::from_array(x.array().to_owned())?, x.descriptor().origin().map(<[i64]>::to_vec)))
    }

    /// Returns a field like the argument, in its order of dims, with twice the elements.
    #[pyfunction]
    fn doubled_by_label(x: In<'_, f64, IJK>) -> PyResult<Tensor> {
        let mut new = Tensor::zeros(&x.spec()?)?;
        new.array_view_mut::<f64, Ix3>()?.zip_mut_with(&x.array(), |new, old| *new = 2.0 * old);
        Ok(x.reordered(&new)?)
    }

    /// Writes 100 i + 10 j + k.
    #[pyfunction]
    fn count_by_label(mut out: Out<'_, f64, IJK>) {
        out.array_mut().indexed_iter_mut().for_each(|((i, j, k), x)| *x = (100 * i + 10 * j + k) as f64);
    }

    enum LatLon {}

    impl Axes for LatLon {
        type Dim = Ix2;
        const LABELS: Option<&'static [&'static str]> = Some(&["lat", "lon"]);
    }

    /// Returns whether it was copied, the elements, and how they are labelled.
    #[pyfunction]
    fn or_copy_by_label(x: OrCopy<'_, f64, LatLon, COrder>) -> PyResult<(bool, Vec<f64>, Option<String>)> {
        let dims = x.labelled()?.dims().map(ToString::to_string);
        assert!(x.array().iter().eq(x.view::<f64, Ix2>()?.iter()));
        Ok((x.is_copy(), x.as_slice().to_vec(), dims))
    }

    /// Extracts an array by label after one by position, which the labels' object may have moved by then.
    #[pyfunction]
    fn before_labels(first: In<'_, f64, IxDyn>, _labelled: In<'_, f64, IJK>) -> f64 {
        first.array().sum()
    }

    /// Keeps a tensor in any memory, which it returns to Python for each sum.
    #[pyclass(frozen)]
    struct Kept {
        tensor: Tensor,
    }

    #[pymethods]
    impl Kept {
        #[new]
        fn new(tensor: Tensor) -> Kept {
            Kept { tensor }
        }

        fn sum(&self, py: Python<'_>) -> PyResult<f64> {
            let returned = (&self.tensor).into_pyobject(py)?;
            Ok(returned.extract::<In<'_, f64, IxDyn>>()?.array().sum())
        }
    }

    #[pyfunction]
    fn read_tensor(x: Tensor) -> PyResult<f64> {
        Ok(x.read::<f64, IxDyn>()?.sum())
    }

    #[pyfunction]
    fn write_tensor(mut x: Tensor) -> PyResult<()> {
        x.array_view_mut::<f64, IxDyn>()?.fill(1.0);
        Ok(())
    }

    #[pyfunction]
    fn fill(mut out: Out<'_, f64, IxDyn>, value: f64) {
        out.array_mut().fill(value);
    }

    /// Returns how many flags are set, and a number that was converted after them.
    #[pyfunction]
    fn flags_before(x: In<'_, bool, IxDyn>, value: f64) -> (usize, f64) {
        (x.array().iter().filter(|flag| **flag).count(), value)
    }

    /// As `flags_before`, of any array: the view is the first look at its bytes.
    #[pyfunction]
    fn any_flags_before(x: AnyIn<'_>, value: f64) -> PyResult<(usize, f64)> {
        Ok((x.view::<bool, IxDyn>()?.iter().filter(|flag| **flag).count(), value))
    }

    #[pyfunction]
    fn flags(x: In<'_, bool, IxDyn>) -> usize {
        x.array().iter().filter(|flag| **flag).count()
    }

    #[pyfunction]
    fn flags_or_copy(x: OrCopy<'_, bool, IxDyn, COrder>) -> (bool, usize) {
        (x.is_copy(), x.array().iter().filter(|flag| **flag).count())
    }

    #[pyfunction]
    fn both_flags(x: In<'_, bool, IxDyn>, y: In<'_, bool, IxDyn>) -> usize {
        x.array().iter().chain(y.array().iter()).filter(|flag| **flag).count()
    }

    /// Calls `then` while `out` is borrowed for writing.
    #[pyfunction]
    fn writing_flags<'py>(mut out: Out<'py, bool, IxDyn>, then: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let called = then.call0();
        out.array_mut().fill(true);
        called
    }

    type Labels = (Option<Vec<String>>, Option<Vec<i64>>, Option<Vec<(i64, i64)>>);

    #[pyfunction]
    fn labels(x: AnyIn<'_>) -> PyResult<Labels> {
        let field = x.labelled()?;
        let dims = field.dims().map(|dims| dims.iter().map(|dim| dim.to_string()).collect());
        Ok((dims, field.origin().map(<[i64]>::to_vec), field.halo().map(<[(i64, i64)]>::to_vec)))
    }

    /// Calls `then` while `x` is borrowed for reading.
    #[pyfunction]
    fn reading<'py>(x: In<'py, f64, IxDyn>, then: &Bound<'py, PyAny>) -> PyResult<(f64, Bound<'py, PyAny>)> {
        let called = then.call0()?;
        Ok((x.array().sum(), called))
    }

    /// Calls `then` while a view of `x` exists.
    #[pyfunction]
    fn viewing<'py>(x: In<'py, f64, IxDyn>, then: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyAny>)> {
        let view = x.array();
        let called = then.call0()?;
        Ok((view.len(), called))
    }

    /// Returns the sum of all elements of both.
    #[pyfunction]
    fn reading_and_copying(x: In<'_, f64, IxDyn>, y: OrCopy<'_, f64, IxDyn>) -> f64 {
        x.array().sum() + y.array().sum()
    }

    /// Calls `then` while `out` is borrowed for writing.
    #[pyfunction]
    fn writing<'py>(mut out: Out<'py, f64, IxDyn>, then: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let called = then.call0();
        out.array_mut().fill(1.0);
        called
    }

    #[pyfunction]
    fn several(reading: Vec<In<'_, f64, IxDyn>>, mut writing: Vec<Out<'_, f64, IxDyn>>) -> f64 {
        for out in &mut writing {
            out.array_mut().fill(2.0);
        }
        reading.iter().map(|x| x.array().sum()).sum()
    }

    /// Returns a tensor on the memory of an array in F order whose first axis is inverted.
    #[pyfunction]
    fn turned() -> PyResult<Tensor> {
        let mut array = Array::from_shape_fn((3, 4).f(), |(i, j)| (10 * i + j) as f32);
        array.invert_axis(dlfield::ndarray::Axis(0));
        Ok(Tensor::from_array(array)?)
    }

    /// Zeros that Rust owns and shares with Python.
    #[pyclass(frozen)]
    struct Shared(Tensor);

    #[pymethods]
    impl Shared {
        #[new]
        fn new(device: &str) -> PyResult<Shared> {
            Ok(Shared(Tensor::zeros(&Spec::new(&[8], DType::F64).with_device(device.parse()?))?))
        }

        /// Returns a copy on the host, made without the GIL.
        fn copied(&self, py: Python<'_>) -> PyResult<Tensor> {
            Ok(py.detach(|| self.0.to_device(Device::CPU, Some(true)))?)
        }

        fn given(&self) -> Tensor {
            self.0.clone()
        }
    }

    #[pyfunction]
    fn labelled() -> PyResult<Tensor> {
        let spec = Spec::new(&[4, 5], DType::F32).dims(dlfield::Dims::parse(["K", "x"])?).halo(&[(1, 0), (0, 2)]);
        Ok(Tensor::zeros(&spec.origin(&[2, 1]).alignment_size(64))?)
    }

    /// Waits, with the GIL, for a thread that drops the tensors; returns how many elements they had.
    #[pyfunction]
    fn dropped_elsewhere(fields: Vec<Tensor>) -> Option<i64> {
        std::thread::spawn(move || fields.into_iter().map(|field| field.descriptor().size()).sum()).join().ok()
    }

    #[pyfunction]
    fn readonly() -> Tensor {
        Tensor::from(vec![1.0f64, 2.0]).into_readonly()
    }

    #[pyfunction]
    fn fail() -> PyResult<Tensor> {
        Err(LayoutError::new("shape", &"extents of 0 or more", &-1).into())
    }
}
