//! Owners are released once, after the last user, on any thread.

#![allow(unsafe_code, reason = "memory is joined with owners here")]

use std::cell::RefCell;
use std::sync::Barrier;
use std::thread;

use dlfield::testing::Extents;
use dlfield::{DType, Descriptor, Device, Index, Owner, Spec, Tensor};

use crate::elements::{all, number_all, numbers};
use crate::managed_tensors::{Counted, Drops, owned};

/// Memory of a Rust vector, with a counter of releases.
fn foreign(drops: &Drops) -> Tensor {
    let mut data: Vec<u32> = (0..24).collect();
    let start = data.as_mut_ptr().cast();
    let (shape, strides) = (Extents::from_slice(&[4, 6]), Extents::from_slice(&[6, 1]));
    let field = Descriptor::new(start, Device::CPU, DType::U32, false, &shape, &strides).unwrap();
    let owner = Owner::foreign((data, Counted(drops.clone())));
    // SAFETY: the vector is moved into the owner, and its elements stay where they are.
    unsafe { Tensor::from_parts(field, owner) }
}

fn sum(tensor: &Tensor) -> u32 {
    all(tensor).iter().map(|bytes| u32::from_ne_bytes(bytes[..].try_into().unwrap())).sum()
}

#[test]
fn every_kind_of_user_keeps_the_owner_and_is_dropped_on_any_thread() {
    let drops = Drops::default();
    let tensor = foreign(&drops);
    let copy = tensor.copy().unwrap();
    type Keep = Box<dyn std::any::Any + Send>;
    let users: Vec<Keep> = vec![
        Box::new(tensor.clone()),
        Box::new(tensor.owner().clone()),
        Box::new(tensor.view(&[Index::At(0)]).unwrap()),
        Box::new(tensor.transpose(&[1, 0]).unwrap()),
        Box::new(tensor.domain_view()),
        Box::new(tensor.clone().into_readonly()),
        Box::new(tensor.to_versioned(false).unwrap()),
        Box::new(tensor.to_legacy().unwrap()),
    ];
    drop(tensor);
    for user in users {
        assert_eq!(drops.count(), 0);
        thread::spawn(move || drop(user)).join().unwrap();
    }
    assert_eq!(drops.count(), 1);
    assert_eq!(sum(&copy), 276);
}

/// A C consumer: no Rust type knows of the export, and the deleter is called through the struct.
#[test]
fn the_deleter_of_an_export_releases_struct_and_owner() {
    let drops = Drops::default();
    let tensor = foreign(&drops);
    let (versioned, legacy) = (tensor.to_versioned(true).unwrap().into_raw(), tensor.to_legacy().unwrap().into_raw());
    drop(tensor);
    // SAFETY: both structs are live, each deleter is called once and nothing is used afterwards.
    unsafe {
        (*versioned).deleter.unwrap()(versioned);
        assert_eq!(drops.count(), 0);
        (*legacy).deleter.unwrap()(legacy);
    }
    assert_eq!(drops.count(), 1);
}

/// All threads view, export, import and drop at once; the main thread drops its tensor meanwhile.
#[test]
fn many_threads_share_one_owner() {
    const THREADS: usize = 8;
    let drops = Drops::default();
    let imported = owned::<dlpark::ffi::DLManagedTensorVersioned>(&drops, |_| ());
    // SAFETY: a managed_tensors struct with elements that live until its deleter.
    let imported = unsafe { Tensor::from_managed(imported) }.unwrap();
    let block = Tensor::empty(&Spec::new(&[4, 6], DType::U32).alignment_size(64)).unwrap();
    number_all(&block);
    let started = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (tensor, imported, block) = (foreign(&drops), imported.clone(), block.clone());
            let started = &started;
            scope.spawn(move || {
                started.wait();
                for turn in 0..50 {
                    let row = tensor.view(&[Index::At(turn % 4)]).unwrap();
                    // SAFETY: the struct is this library's own.
                    let again = unsafe { Tensor::from_managed(row.to_versioned(false).unwrap()) }.unwrap();
                    drop(row);
                    assert_eq!(all(&again).len(), 6);
                    let export = imported.transpose(&[1, 0]).unwrap().to_versioned(false).unwrap();
                    assert_eq!(all(&block), numbers(&block));
                    drop(export);
                }
            });
        }
        started.wait();
        drop((imported, block));
    });
    assert_eq!(drops.count(), THREADS + 1);
}

/// Clones of one owner, each dropped by another thread at the same moment.
#[test]
fn racing_drops_release_once() {
    for _ in 0..40 {
        let drops = Drops::default();
        let tensor = foreign(&drops);
        let gate = Barrier::new(6);
        thread::scope(|scope| {
            for turn in 0..6 {
                let (tensor, gate) = (tensor.clone(), &gate);
                let export = if turn % 2 == 0 { Some(tensor.to_versioned(false).unwrap()) } else { None };
                scope.spawn(move || {
                    gate.wait();
                    drop(tensor);
                    drop(export);
                });
            }
            drop(tensor);
        });
        assert_eq!(drops.count(), 1);
    }
}

/// Each field owns the previous one, as arrays do that go to another library and back; the last one, which keeps them all, is
/// dropped on a thread with a small stack.
#[test]
fn long_chains_are_dropped_without_recursion() {
    const LINKS: usize = 100_000;
    let drops = Drops::default();
    let mut tensor = foreign(&drops);
    for _ in 0..LINKS {
        let before = tensor.clone();
        // SAFETY: the memory is that of the first tensor, which every owner keeps in turn.
        tensor = unsafe {
            Tensor::from_parts(before.descriptor().clone(), Owner::foreign((before, Counted(drops.clone()))))
        };
    }
    assert_eq!((sum(&tensor), drops.count()), (276, 0));
    thread::Builder::new().stack_size(256 << 10).spawn(move || drop(tensor)).unwrap().join().unwrap();
    assert_eq!(drops.count(), LINKS + 1);
}

/// Thread-local variables are dropped one after the other, and the owner in one of them may outlive another variable.
#[test]
fn long_chains_in_thread_locals_are_dropped_without_recursion() {
    thread_local! {
        static KEPT: RefCell<Option<Owner>> = const { RefCell::new(None) };
    }
    let chain = |links: usize| (0..links).fold(Owner::foreign(()), |before, _| Owner::foreign((before, ())));
    let thread = thread::Builder::new().stack_size(256 << 10);
    let made = thread.spawn(move || {
        KEPT.set(Some(chain(100_000)));
        drop(chain(100));
    });
    made.unwrap().join().unwrap();
}

/// A value whose drop panics.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// A panic during a drop stops neither the other owners' drops nor later ones.
#[test]
fn a_panic_in_one_drop_does_not_stop_the_others() {
    let drops = Drops::default();
    for _ in 0..5 {
        let owner = Owner::foreign((Counted(drops.clone()), Panics, Owner::foreign(Counted(drops.clone()))));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(owner))).is_err());
    }
    assert_eq!(drops.count(), 10);
    drop(foreign(&drops));
    assert_eq!(drops.count(), 11);
}

/// Returns a chain of owners, long enough to defer some drops; the given links panic.
fn chain(drops: &Drops, links: usize, panicking: &[usize]) -> Owner {
    (0..links).fold(Owner::foreign(()), |before, link| {
        let panics = panicking.contains(&link).then(|| Panics);
        Owner::foreign((Counted(drops.clone()), panics, before))
    })
}

#[test]
fn panics_in_a_long_chain_keep_no_link_and_none_after_it() {
    let drops = Drops::default();
    // In the link that is dropped first, in deferred drops, and in both.
    let panicking = [&[199][..], &[20], &[20, 60], &[199, 20]];
    for turn in 1..=40 {
        let chain = chain(&drops, 200, panicking[turn % 4]);
        let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(chain)));
        assert!(gone.is_err());
        assert_eq!(drops.count(), 200 * turn);
    }
    drop(chain(&drops, 200, &[]));
    assert_eq!(drops.count(), 200 * 41);
}

/// C calls a deleter, so nothing may unwind out of it.
#[test]
fn a_panic_does_not_leave_a_deleter() {
    let drops = Drops::default();
    for turn in 1..=5 {
        let memory = foreign(&drops);
        let owner = Owner::foreign((memory.clone(), chain(&drops, 2, &[1])));
        // SAFETY: the memory is that of the field, which the owner keeps.
        let field = unsafe { Tensor::from_parts(memory.descriptor().clone(), owner) };
        drop(memory);
        let (versioned, legacy) = (field.to_versioned(false).unwrap().into_raw(), field.to_legacy().unwrap());
        drop((field, legacy));
        // SAFETY: the struct is live, its deleter is called once, and nothing is used afterwards.
        unsafe { (*versioned).deleter.unwrap()(versioned) };
        assert_eq!(drops.count(), 3 * turn);
    }
}
