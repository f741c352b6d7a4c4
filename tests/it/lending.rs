//! Exported memory, and safe code that reads it meanwhile.

#![allow(unsafe_code, reason = "what was lent is written by address")]

use std::ffi::{c_int, c_void};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dlfield::arithmetic::LabelledShape;
use dlfield::cuda::Stream;
use dlfield::ndarray::{Array1, Array2, Ix1, Ix2};
use dlfield::{
    Access, DType, Descriptor, Device, Dims, Error, ExchangeErrorKind, FieldSpec, Index, Layout, Metadata, Owner,
    Result, Signature, Spec, Support, Target, Tensor,
};

use crate::managed::back;

pub fn is_exported_error<T>(result: Result<T>) -> bool {
    result.err().is_some_and(|error| is_exported_message(&error))
}

fn is_exported_message(error: &Error) -> bool {
    match error {
        Error::Exchange(error) => error.kind() == ExchangeErrorKind::Exported,
        _ => false,
    }
}

/// What a safe function does with exported memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Does {
    /// Rejects it, as it would read elements that the other library may write.
    Refuse,
    /// Rejects memory with any other owner.
    WantItAlone,
    /// Uses no elements.
    Nothing,
}

type Call<R = ()> = fn(&Tensor) -> Result<R>;

/// Every safe function of the crate that takes a tensor.
const SAFE_FUNCTIONS: [(&str, Does, Call); 34] = [
    ("copy", Does::Refuse, |field| field.copy().map(drop)),
    ("copy_of", Does::Refuse, |field| Tensor::copy_of(&Spec::new(&[3, 4], DType::F32), field).map(drop)),
    ("to_device, copied", Does::Refuse, |field| field.to_device(Device::CPU, Some(true)).map(drop)),
    ("to_device, elsewhere", Does::Refuse, |field| field.to_device(Device::cuda(0), None).map(drop)),
    ("to_device, where it is", Does::Nothing, |field| field.to_device(Device::CPU, None).map(drop)),
    ("into_array", Does::Refuse, |field| field.clone().into_array::<f64, Ix2>().map(drop)),
    ("array_view_mut", Does::WantItAlone, |field| field.clone().array_view_mut::<f64, Ix2>().map(drop)),
    ("bind_or_copy, of another type", Does::Refuse, |field| {
        bind_or_copy(field, FieldSpec::new(DType::C128, Dims::standard(2)))
    }),
    ("bind_or_copy, in another order", Does::Refuse, |field| {
        bind_or_copy(field, FieldSpec::new(DType::F64, Dims::standard(2)).layout(Layout::f_order(2)))
    }),
    ("bind_or_copy, of the written fields", Does::Refuse, |field| {
        bind_or_copy(field, FieldSpec::new(DType::F32, Dims::standard(2)).access(Access::Write))
    }),
    ("bind_or_copy, of what fits", Does::Nothing, |field| {
        bind_or_copy(field, FieldSpec::new(DType::F64, Dims::standard(2)))
    }),
    ("bind", Does::Nothing, |field| {
        let spec = FieldSpec::new(DType::F64, Dims::standard(2)).layout(Layout::f_order(2)).access(Access::ReadWrite);
        let bound = Signature::new([("field", spec)])?.bind(&[("field", field.descriptor())])?;
        assert_eq!((bound.slow().len(), bound.domain().1.len()), (1, 2));
        does(format!("{bound:?}"))
    }),
    ("to_versioned", Does::Nothing, |field| field.to_versioned(false).map(drop)),
    ("to_legacy", Does::Nothing, |field| field.to_legacy().map(drop)),
    ("as_dlpack", Does::Nothing, |field| field.as_dlpack().map(drop)),
    ("make_stream_wait", Does::Nothing, |field| field.make_stream_wait(Stream::LEGACY)),
    ("view", Does::Nothing, |field| field.view(&[Index::At(1)]).map(drop)),
    ("transpose", Does::Nothing, |field| field.transpose(&[1, 0]).map(drop)),
    ("domain_view", Does::Nothing, |field| does(field.domain_view())),
    ("broadcast_to", Does::Nothing, |field| field.broadcast_to(&Dims::standard(3), &[3, 4, 5]).map(drop)),
    ("relabel", Does::Nothing, |field| field.clone().relabel(Metadata::default().with_dims(Dims::parse(["K", "x"])?))),
    ("set_halo", Does::Nothing, |field| field.set_halo(&[(1, 1), (0, 0)])),
    ("clone", Does::Nothing, |field| does(field.clone())),
    ("into_readonly", Does::Nothing, |field| does(field.clone().into_readonly())),
    ("into_parts", Does::Nothing, |field| does(field.clone().into_parts())),
    ("owner", Does::Nothing, |field| does(field.owner().clone())),
    ("spec", Does::Nothing, |field| Tensor::zeros(&field.spec()).map(drop)),
    ("layout", Does::Nothing, |field| does((field.layout(), field.padding(), field.alignment_size()))),
    ("labels", Does::Nothing, |field| does((field.dims(), field.origin(), field.halo(), field.aligned_index()))),
    ("axis", Does::Nothing, |field| field.axis("J").map(drop)),
    ("Descriptor::overlaps", Does::Nothing, |field| does(field.descriptor().overlaps(field.descriptor()))),
    ("LabelledShape::of", Does::Nothing, |field| does(LabelledShape::of(field).spec(DType::F64, &[field])?)),
    ("preflight", Does::Nothing, |field| {
        does(dlfield::preflight(field.descriptor(), Target::NumPy, true, Support::Shares))
    }),
    ("Debug", Does::Nothing, |field| does(format!("{field:?}"))),
];

fn bind_or_copy(field: &Tensor, spec: FieldSpec) -> Result<()> {
    Signature::new([("field", spec)])?.bind_or_copy(&[("field", field)]).map(drop)
}

fn does<T>(made: T) -> Result<()> {
    drop(made);
    Ok(())
}

/// Memory that ends the process on any access.
struct Untouchable(Vec<u8>);

/// At least the page size of any machine.
const PAGE: usize = 64 << 10;

impl Untouchable {
    fn new() -> Untouchable {
        let memory = Untouchable(vec![0; 2 * PAGE]);
        memory.protect(0);
        memory
    }

    fn start(&self) -> *mut u8 {
        let start = self.0.as_ptr().cast_mut();
        start.wrapping_add(start.align_offset(PAGE))
    }

    fn protect(&self, allowed: c_int) {
        unsafe extern "C" {
            fn mprotect(start: *mut c_void, len: usize, allowed: c_int) -> c_int;
        }
        // SAFETY: pages inside the vector, which nobody accesses meanwhile.
        assert_eq!(unsafe { mprotect(self.start().cast(), PAGE, allowed) }, 0);
    }
}

impl Drop for Untouchable {
    fn drop(&mut self) {
        const READ_AND_WRITE: c_int = 3;
        self.protect(READ_AND_WRITE);
    }
}

#[test]
fn safe_functions_reject_exported_memory_or_do_not_access_it() {
    let memory = Untouchable::new();
    let descriptor = Descriptor::new(memory.start(), Device::CPU, DType::F64, false, &[3, 4], &[4, 1]).unwrap();
    // SAFETY: no code reads this.
    let field = unsafe { Tensor::from_parts(descriptor, Owner::foreign(memory)) };
    let exported = field.to_versioned(false).unwrap();
    for (name, wanted, call) in SAFE_FUNCTIONS {
        let result = call(&field);
        let found = match &result {
            Ok(()) => Does::Nothing,
            Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Shared => Does::WantItAlone,
            Err(error) if is_exported_message(error) => Does::Refuse,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(found, wanted, "{name}");
    }
    drop(exported);
}

#[test]
fn memory_that_is_no_longer_shared_becomes_exclusive() {
    let mut field = Tensor::from_array(Array2::<f64>::zeros((3, 4))).unwrap();
    drop(field.to_versioned(false).unwrap());
    assert!(is_exported_error(field.copy()), "nothing says yet that it is back");
    field.array_view_mut::<f64, Ix2>().unwrap()[[1, 2]] = 5.0;
    assert_eq!(field.copy().unwrap().into_array::<f64, Ix2>().unwrap()[[1, 2]], 5.0);
    drop(field.to_legacy().unwrap());
    assert_eq!(field.into_array::<f64, Ix2>().unwrap()[[1, 2]], 5.0);
}

#[test]
fn memory_that_came_back_is_exclusive_once_all_others_are_dropped() {
    let mut spec = Spec::new(&[3, 4], DType::F64);
    for _ in 0..2 {
        let field = Tensor::zeros(&spec).unwrap();
        let exported = field.to_versioned(false).unwrap();
        let mut once = back(field.to_versioned(false).unwrap());
        assert!(
            matches!(once.array_view_mut::<f64, Ix2>(), Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Shared)
        );
        drop(field);
        assert!(
            matches!(once.array_view_mut::<f64, Ix2>(), Err(Error::Exchange(error)) if error.kind() == ExchangeErrorKind::Shared)
        );
        drop(exported);
        once.array_view_mut::<f64, Ix2>().unwrap()[[1, 2]] = 5.0;
        assert_eq!(format!("{:?}", once.owner()), "Owner(block)");
        // Several times, and to an array of its own.
        let between = back(once.to_versioned(false).unwrap());
        let mut twice = back(between.to_versioned(false).unwrap());
        drop((once, between));
        twice.array_view_mut::<f64, Ix2>().unwrap()[[0, 0]] = 1.0;
        assert_eq!(twice.copy().unwrap().into_array::<f64, Ix2>().unwrap().sum(), 6.0);
        assert_eq!(twice.into_array::<f64, Ix2>().unwrap().sum(), 6.0);
        spec = spec.alignment_size(64);
    }
}

#[test]
fn a_vector_that_came_back_is_returned_uncopied() {
    let exports: [fn(&Tensor) -> Tensor; 2] =
        [|field| back(field.to_versioned(false).unwrap()), |field| back(field.to_legacy().unwrap())];
    for export in exports {
        let numbers = vec![1.0f64, 2.0];
        let start = numbers.as_ptr();
        let came_back = export(&Tensor::from(numbers));
        let array: Array1<f64> = came_back.into_array().unwrap();
        assert_eq!((array.as_ptr(), array.to_vec()), (start, vec![1.0, 2.0]));
    }
}

#[test]
fn the_error_says_whether_memory_is_shared_or_not_owned() {
    let mut field = Tensor::from(vec![1.0f64]);
    for share in [Tensor::clone as fn(&Tensor) -> Tensor, |field| field.view(&[Index::All]).unwrap()] {
        let other = share(&field);
        let shared = field.array_view_mut::<f64, Ix1>().unwrap_err().to_string();
        assert!(shared.contains("drop its views and clones, or write to a copy of it"), "{shared}");
        assert!(field.copy().unwrap().array_view_mut::<f64, Ix1>().is_ok());
        let exported = field.to_versioned(false).unwrap();
        let shared = field.array_view_mut::<f64, Ix1>().unwrap_err().to_string();
        assert!(shared.contains("drop its views, clones and exports") && !shared.contains("copy"), "{shared}");
        assert!(field.copy().is_err());
        drop((other, exported));
        assert!(field.array_view_mut::<f64, Ix1>().is_ok());
    }
    let exported = field.to_versioned(false).unwrap();
    let unreadable = field.read::<f64, Ix1>().unwrap_err().to_string();
    assert!(unreadable.contains("drop what was exported and call array_view_mut first"), "{unreadable}");
    drop(exported);
    assert!(field.array_view_mut::<f64, Ix1>().is_ok());
    assert!(field.read::<f64, Ix1>().is_ok());
    let (descriptor, owner) = field.into_parts();
    // SAFETY: the owner keeps the memory.
    let mut foreign = unsafe { Tensor::from_parts(descriptor, Owner::foreign(owner)) };
    let refused = foreign.array_view_mut::<f64, Ix1>().unwrap_err().to_string();
    assert!(refused.contains("not this crate's") && refused.contains("write to a copy of it"), "{refused}");
    assert!(foreign.copy().unwrap().array_view_mut::<f64, Ix1>().is_ok());
}

#[test]
fn exported_memory_is_bound_and_copied_by_unsafe_functions() {
    let field = Tensor::from(vec![1.0f64, 2.0]);
    let exported = field.to_versioned(false).unwrap();
    let signature = Signature::new([("field", FieldSpec::new(DType::C128, Dims::standard(1)))]).unwrap();
    assert!(is_exported_error(signature.bind_or_copy(&[("field", &field)])));
    // SAFETY: nothing is done with the exported struct.
    let bound = unsafe { signature.bind_or_copy_shared(&[("field", &field)]) }.unwrap();
    assert_eq!(bound.copied().collect::<Vec<_>>(), ["field"]);
    // SAFETY: two complex numbers.
    let copy = unsafe { std::slice::from_raw_parts(bound.get("field").unwrap().ptr().cast::<f64>(), 4) };
    assert_eq!(copy, [1.0, 0.0, 2.0, 0.0]);
    // SAFETY: no other code writes to the field.
    let copy = unsafe { Tensor::copy_of_shared(&field.spec(), &field) }.unwrap();
    assert_eq!(copy.to_vec::<f64>().unwrap(), [1.0, 2.0]);
    drop(exported);
}

/// The ways in which safe functions copy elements.
const COPIES: [Call<Vec<u16>>; 3] = [
    |field| {
        let copy = Tensor::copy_of(&field.spec().with_dtype(DType::U16), field)?;
        Ok(copy.into_array::<u16, Ix1>()?.to_vec())
    },
    |field| Ok(field.clone().into_array::<u8, Ix1>()?.iter().map(|byte| u16::from(*byte)).collect()),
    |field| {
        let signature = Signature::new([("field", FieldSpec::new(DType::U16, Dims::standard(1)))])?;
        let bound = signature.bind_or_copy(&[("field", field)])?;
        let copy = bound.get("field").unwrap();
        // SAFETY: so many numbers in a copy that nobody else knows.
        Ok(unsafe { std::slice::from_raw_parts(copy.ptr().cast(), usize::try_from(copy.size()).unwrap()) }.to_vec())
    },
];

#[test]
fn every_export_waits_for_the_readers() {
    for turn in 0..300 {
        let field = Tensor::from(vec![7u8; 1 << 18]);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Elements are read before any is written, or not at all.
                let Ok(copied) = COPIES[turn % 3](&field) else { return };
                assert!(copied.len() == 1 << 18 && copied.iter().all(|number| *number == 7));
            });
            for part in 0..2 {
                let field = &field;
                scope.spawn(move || {
                    let exported = field.to_legacy().unwrap();
                    let start = field.descriptor().ptr().wrapping_add(part << 17);
                    // SAFETY: half of the exported memory, which safe code may not read any more.
                    unsafe { std::slice::from_raw_parts_mut(start, 1 << 17) }.fill(9);
                    drop(exported);
                });
            }
        });
        assert!(is_exported_error(field.copy()));
    }
}

#[test]
fn a_copy_among_other_work_of_rayon_ends() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let field = Tensor::zeros(&Spec::new(&[1 << 20], DType::F64)).unwrap();
        let (lender, reader) = (field.clone(), field);
        pool.install(|| {
            rayon::scope(|scope| {
                // The copying thread must not run this job meanwhile: the job waits for the copy.
                scope.spawn(move |_| drop(lender.to_versioned(false).unwrap()));
                scope.spawn(move |_| drop(reader.copy()));
            });
        });
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("a copy and a loan wait for each other");
}

/// The array has almost no memory, and more elements than there is memory for.
#[test]
fn a_failed_array_allocation_is_an_error() {
    let byte = vec![0i8];
    let start = byte.as_ptr().cast_mut().cast();
    let descriptor = Descriptor::new(start, Device::CPU, DType::I8, true, &[1 << 46], &[0]).unwrap();
    // SAFETY: all elements are the one of the vector, which the owner keeps.
    let broadcast = unsafe { Tensor::from_parts(descriptor, Owner::foreign(byte)) };
    assert!(matches!(broadcast.into_array::<i8, Ix1>(), Err(Error::Memory(_))));
}

#[test]
fn what_came_from_elsewhere_stays_marked() {
    let field = Tensor::from(vec![1.0f64, 2.0]);
    let imported = back(field.to_versioned(false).unwrap());
    assert!(imported.copy().is_ok(), "on the word of whoever imported it");
    drop(imported.to_versioned(false).unwrap());
    let array: Result<Array1<f64>, Error> = imported.into_array();
    assert!(is_exported_error(array));
}

#[test]
fn memory_that_comes_back_often_has_one_owner() {
    let mut field = Tensor::from(vec![1.0f64, 2.0]);
    for _ in 0..1_000_000 {
        field = back(field.to_versioned(false).unwrap());
    }
    field.array_view_mut::<f64, Ix1>().unwrap()[0] = 3.0;
    assert_eq!(field.into_array::<f64, Ix1>().unwrap().to_vec(), [3.0, 2.0]);
}
