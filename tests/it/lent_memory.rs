//! The public functions that pass on or take in memory which others may have, and what keeps safe code from reaching memory that
//! was moved, freed or is being written. A new function of this kind is added here after it was thought about.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What protects the memory.
#[derive(Debug)]
#[allow(dead_code, reason = "the reasons are read by people")]
enum Protection {
    /// The lifetime of the result ends with that of the argument, so the borrow checker keeps the owner alive and unchanged.
    Borrowed(&'static str),
    /// The result holds a clone of the owner, and safe code reads the elements only while none is exported.
    Owned(&'static str),
    /// No other owner exists, which is checked, or follows from taking the value.
    Exclusive(&'static str),
    /// Only addresses are passed: reaching the memory through them is unsafe.
    Address(&'static str),
    /// The function is unsafe; its contract is in its documentation.
    Unsafe,
    /// The ledger of borrows rejects other references, and the loan keeps the object.
    Ledger(&'static str),
}

use Protection::{Address, Borrowed, Exclusive, Ledger, Owned, Unsafe};

/// By file and function.
const FUNCTIONS: &[(&str, &str, Protection)] = &[
    ("tensor/mod.rs", "from_parts", Unsafe),
    ("tensor/mod.rs", "into_parts", Owned("the descriptor is an address; joining it with an owner is unsafe")),
    ("tensor/mod.rs", "owner", Owned("a clone makes the memory shared")),
    ("tensor/owner/mod.rs", "managed", Owned("the deleter runs after the last clone")),
    ("tensor/owner/mod.rs", "foreign", Owned("never exclusive, so never viewed for writing")),
    ("tensor/owner/object.rs", "object", Unsafe),
    ("tensor/managed.rs", "to_versioned", Owned("marks the memory as exported, after which safe functions reject it")),
    ("tensor/managed.rs", "to_legacy", Owned("as to_versioned")),
    ("tensor/managed.rs", "from_managed", Unsafe),
    ("tensor/managed.rs", "as_dlpack", Address("the struct has raw pointers")),
    ("tensor/ndarray.rs", "from_array", Exclusive("takes the array")),
    ("tensor/ndarray.rs", "into_array", Exclusive("moves what has no other owner, copies what is not exported")),
    ("tensor/ndarray.rs", "array_view_mut", Exclusive("checked, and the view borrows the tensor mutably")),
    ("tensor/ndarray.rs", "array_view", Unsafe),
    ("tensor/cudarc.rs", "from_cuda_slice", Exclusive("takes the slice")),
    ("tensor/cudarc.rs", "into_cuda_slice", Exclusive("checked, after the work of all streams")),
    ("tensor/cudarc.rs", "cuda_view", Borrowed("the view borrows the tensor; kernels are launched in unsafe code")),
    ("signature/mod.rs", "bind", Address("descriptors are compared, and no element is read")),
    ("signature/mod.rs", "bind_or_copy", Borrowed("the call borrows the tensors, copies what is not exported")),
    ("signature/mod.rs", "bind_or_copy_shared", Unsafe),
    ("protocol/dlpack.rs", "read", Unsafe),
    ("python/from_py/mod.rs", "array", Ledger("the view borrows the argument")),
    ("python/from_py/mod.rs", "array_mut", Ledger("the view borrows the argument mutably")),
    ("python/from_py/views.rs", "view", Ledger("as array, after type and elements were checked")),
    ("python/from_py/views.rs", "view_mut", Ledger("as array_mut, after type and elements were checked")),
    ("python/from_py/views.rs", "as_slice", Ledger("as array")),
    ("python/from_py/views.rs", "as_slice_mut", Ledger("as array_mut")),
    (
        "signature/views.rs",
        "borrow",
        Borrowed("the call borrows the tensors to read; those to write have no other owner, which is checked"),
    ),
    ("signature/views.rs", "read", Borrowed("as Tensor::read")),
    ("signature/views.rs", "write", Exclusive("the mutable borrow of the tensor leaves the call with the view")),
    ("signature/views.rs", "array_view", Unsafe),
    ("signature/views.rs", "array_view_mut", Unsafe),
    ("tensor/read.rs", "read", Borrowed("memory is not exported while the guard lives, so that nobody writes to it")),
    ("tensor/read.rs", "to_vec", Owned("copies what is not exported")),
];

/// Types in a signature that give access to memory.
const TYPES: [&str; 14] = [
    "ArrayView",
    "Array<",
    "DLTensor",
    "Managed<",
    "Owner",
    "CudaView",
    "CudaSlice",
    "BoundCall<",
    "BorrowedCall<",
    "ReadGuard",
    "&[T]",
    "&mut [T]",
    "Vec<T>",
    "&'static mut [",
];

/// Where no public function is that a user can call, except those of `dlfield::cuda`, which pass on streams.
const NOT_PUBLIC: &str = "copy/ memory/ python/convert/ python/ffi/ python/import/ python/tensor_api/ python/py_owner.rs \
                          python/sync.rs python/module/";

/// The source files with public functions, relative to `src`.
fn public_files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !NOT_PUBLIC.split(' ').any(|start| name.starts_with(start)) {
                found.push(name);
            }
        }
    }
    found
}

/// The public functions of a file that pass on or take in memory: their names, and whether they are unsafe.
fn lending_functions(file: &str) -> Vec<(String, bool)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let source = fs::read_to_string(&path).unwrap();
    let heads = source.split("\n").map(str::trim_start).enumerate().filter(|(_, line)| line.starts_with("pub "));
    let lines: Vec<&str> = source.split('\n').collect();
    let mut found = Vec::new();
    for (first, line) in heads {
        let Some((before, name)) = line.split_once("fn ") else { continue };
        if line.starts_with("pub(") || !matches!(before, "pub " | "pub unsafe ") {
            continue;
        }
        let head: String = lines[first..].iter().take(12).copied().collect::<Vec<_>>().join(" ");
        let head = head.split('{').next().unwrap_or_default();
        let name: String = name.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        if TYPES.iter().any(|known| head.contains(known)) {
            found.push((name, before == "pub unsafe "));
        }
    }
    found
}

#[test]
fn every_public_function_on_lent_memory_has_a_known_protection() {
    let mut found = BTreeSet::new();
    for file in public_files() {
        for (name, is_unsafe) in lending_functions(&file) {
            let known = FUNCTIONS.iter().find(|(in_file, function, _)| *in_file == file && *function == name);
            let protection = known.map(|(_, _, protection)| protection);
            assert!(protection.is_some(), "{file}: {name}: what protects its memory? Add it to the list");
            assert_eq!(matches!(protection, Some(Unsafe)), is_unsafe, "{file}: {name}: {protection:?}");
            found.insert((file.clone(), name));
        }
    }
    for (file, name, _) in FUNCTIONS {
        assert!(found.contains(&((*file).to_owned(), (*name).to_owned())), "{file}: no public function {name}");
    }
}
