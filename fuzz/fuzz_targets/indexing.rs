//! Views, transposes and other shapes of a field, compared with index arithmetic one position at a time.
#![no_main]

use arbitrary::{Result, Unstructured};
use dlfield::{DType, Index, Tensor};
use dlfield_fuzz::draw::{self, edgy, list};
use dlfield_fuzz::elements::{all, number_all};
use dlfield_fuzz::model::Model;
use dlfield_fuzz::runner::check_memory;

/// An entry for a dimension: mostly inside, or any numbers.
fn entry(bytes: &mut Unstructured<'_>, extent: i64) -> Result<Index> {
    let wild = bytes.ratio(1, 8)?;
    let mut near = |low: i64, high: i64| if wild { edgy(bytes) } else { bytes.int_in_range(low..=high.max(low)) };
    let (at, start, len, step) = (near(-extent, extent)?, near(0, extent)?, near(0, extent)?, near(-3, 3)?);
    Ok(*bytes.choose(&[
        Index::All,
        Index::At(at),
        Index::Range { start, len, step: 1 },
        Index::Range { start, len, step },
    ])?)
}

/// Reshapes the field: the elements stay in C order.
fn reshape(bytes: &mut Unstructured<'_>, tensor: &Tensor) -> Result<()> {
    let field = tensor.descriptor();
    let ndim = bytes.int_in_range(0..=5)?;
    let mut shape = draw::numbers(bytes, ndim, 0)?;
    let others = shape.iter().skip(1).try_fold(1i64, |all, extent| all.checked_mul(*extent)).unwrap_or(0);
    if let (Some(first), Some(count)) = (shape.first_mut(), field.size().checked_div(others)) {
        // Mostly as many elements as there are.
        *first = count;
    }
    let count = shape.iter().try_fold(1i128, |all, extent| all.checked_mul(i128::from(*extent)));
    let fits = count == Some(field.size().into()) && shape.iter().all(|extent| *extent >= 0);
    match tensor.reshape(&shape, None) {
        Ok(view) => {
            assert!(fits);
            assert_eq!((view.descriptor().shape(), all(&view)), (&shape[..], all(tensor)));
        }
        Err(error) => assert!(!fits || !field.is_c_contiguous() || shape.contains(&0), "{shape:?}: {error}"),
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let mut tensor = check_memory(&draw::spec(bytes, DType::U32)?);
        number_all(&tensor);
        let mut model = Model::of(&tensor);
        for _ in 0..bytes.int_in_range(1..=4u8)? {
            match bytes.int_in_range(0..=7u8)? {
                0 => {
                    let axes = draw::permutation(bytes, model.shape.len())?;
                    (tensor, model) = (tensor.transpose(&axes).expect("a permutation"), model.transpose(&axes));
                }
                1 => (tensor, model) = (tensor.domain_view(), model.domain()),
                2 => reshape(bytes, &tensor)?,
                _ => {
                    let len = bytes.int_in_range(0..=model.shape.len() + 1)?;
                    let mut extents = model.shape.iter();
                    let index = list(len, || entry(bytes, extents.next().copied().unwrap_or(1)))?;
                    match (tensor.view(&index), model.view(&index)) {
                        (Ok(view), Some(of_model)) => (tensor, model) = (view, of_model),
                        (Err(error), None) => assert!(error.to_string().starts_with("index: ")),
                        (view, of_model) => panic!("{index:?} of {:?}: {view:?}, {of_model:?}", model.shape),
                    }
                }
            }
            model.check(&tensor);
        }
        model.check(&tensor.copy().expect("memory of the host"));
        Ok(())
    });
});
