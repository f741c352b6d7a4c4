//! Lookup of functions by name, for a version of CUDA.

use crate::codes::{Failure, Outcome};
use crate::driver;
use crate::entry::{In, Out};
use crate::export;
use std::ffi::{CString, c_char, c_int, c_void};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;
const FOUND: c_int = 0;
const NO_SUCH_NAME: c_int = 1;

/// Names that mean a function with other arguments from a version on: name, version, symbol. The last entry that applies wins.
const SINCE: &[(&str, c_int, &str)] = &[
    ("cuCtxGetDevice", 2000, "cuCtxGetDevice"),
    ("cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"),
    ("cuCtxSynchronize", 2000, "cuCtxSynchronize"),
    ("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"),
    ("cuGetProcAddress", 11030, "cuGetProcAddress"),
    ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ("cuStreamGetCtx", 9020, "cuStreamGetCtx"),
    ("cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"),
    ("cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"),
    ("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"),
];

/// Returns the loader's handle of this library.
fn library() -> *mut c_void {
    // SAFETY: the address is inside this library, which stays loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(super::init::cuInit as *const c_void, &mut info);
        libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY)
    }
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    match CString::new(name) {
        // SAFETY: the library is loaded, and the name is zero-terminated.
        Ok(name) => unsafe { libc::dlsym(library, name.as_ptr()) },
        Err(_) => std::ptr::null_mut(),
    }
}

fn find(name: &str, version: c_int, flags: u64) -> *mut c_void {
    let library = library();
    let listed = SINCE.iter().rfind(|(known, since, _)| *known == name && *since <= version);
    let names = match listed {
        Some((_, _, symbol)) => vec![(*symbol).to_owned()],
        None => vec![format!("{name}_v2"), name.to_owned()],
    };
    let suffixes: &[&str] = if flags & PER_THREAD != 0 { &["_ptsz", "_ptds", ""] } else { &[""] };
    let mut found = names.iter().flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}")));
    found.find_map(|name| Some(symbol(library, &name)).filter(|at| !at.is_null())).unwrap_or(std::ptr::null_mut())
}

fn look_up(name: In<c_char>, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_int>) -> Outcome {
    let known = driver::lock()?.version;
    let found = find(&name.text()?, version.min(known), flags);
    function.put(found)?;
    status.put_if_wanted(if found.is_null() { NO_SUCH_NAME } else { FOUND });
    if found.is_null() { Err(Failure::NOT_FOUND) } else { Ok(()) }
}

export! {
    fn cuGetProcAddress(name: In<c_char>, function: Out<*mut c_void>, version: c_int, flags: u64) {
        look_up(name, function, version, flags, Out::new(std::ptr::null_mut()))
    }

    fn cuGetProcAddress_v2(
        name: In<c_char>, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_int>,
    ) {
        look_up(name, function, version, flags, status)
    }
}
