//! The library as programs load it; each test runs in its own process.

use crate::harness::{DEVICES, SWITCH, rerun};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;

type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
type Init = unsafe extern "C" fn(u32) -> c_int;
type Lookup = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

const INSIDE: &str = "FAKECUDA_TEST_SYMBOLS";
const PER_THREAD: u64 = 2;

struct Library(*mut c_void);

impl Library {
    /// Loads the library, which is next to the tests or above them.
    fn load() -> Library {
        let here = std::env::current_exe().unwrap();
        let places: Vec<PathBuf> = here.ancestors().skip(1).take(2).map(|at| at.join("libfakecuda.so")).collect();
        let path = places.iter().find(|path| path.exists()).unwrap();
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path is zero-terminated.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null());
        Library(library)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the library is loaded, and the name is zero-terminated.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    fn init(&self) -> c_int {
        // SAFETY: the symbol has this type.
        unsafe { std::mem::transmute::<*mut c_void, Init>(self.symbol("cuInit"))(0) }
    }

    fn device_count(&self) -> c_int {
        let mut count = 0;
        // SAFETY: the symbol has this type, and the argument is a variable.
        unsafe { std::mem::transmute::<*mut c_void, Count>(self.symbol("cuDeviceGetCount"))(&mut count) };
        count
    }

    fn look_up(&self, name: &str, version: c_int, flags: u64) -> *mut c_void {
        let (name, mut found) = (CString::new(name).unwrap(), std::ptr::null_mut());
        // SAFETY: the symbol has this type, and the arguments are variables of the test.
        unsafe {
            let look_up = std::mem::transmute::<*mut c_void, Lookup>(self.symbol("cuGetProcAddress_v2"));
            look_up(name.as_ptr(), &mut found, version, flags, std::ptr::null_mut());
        }
        found
    }
}

fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[test]
fn it_does_not_start_unless_told_to() {
    if inside() {
        assert_eq!(Library::load().init(), 100);
        return;
    }
    let output = rerun("symbols::it_does_not_start_unless_told_to", &[(INSIDE, "1")]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains(SWITCH), "{output:?}");
}

#[test]
fn there_is_one_device_unless_told_otherwise() {
    if inside() {
        let library = Library::load();
        assert_eq!(library.init(), 0);
        let expected = std::env::var(DEVICES).map_or(1, |count| count.parse().unwrap());
        assert_eq!(library.device_count(), expected);
        return;
    }
    for counts in [None, Some((DEVICES, "2")), Some((DEVICES, "1"))] {
        let variables: Vec<_> = [(INSIDE, "1"), (SWITCH, "1")].into_iter().chain(counts).collect();
        let output = rerun("symbols::there_is_one_device_unless_told_otherwise", &variables);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn functions_are_found_by_name_and_version() {
    if inside() {
        let library = Library::load();
        assert_eq!(library.init(), 0);
        let expected = [
            ("cuMemAlloc", 12000, 0, "cuMemAlloc_v2"),
            ("cuInit", 12000, 0, "cuInit"),
            ("cuMemcpyAsync", 12000, PER_THREAD, "cuMemcpyAsync_ptsz"),
            ("cuMemcpyHtoD", 12000, PER_THREAD, "cuMemcpyHtoD_v2_ptds"),
            ("cuCtxGetDevice", 2000, 0, "cuCtxGetDevice"),
            ("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2"),
            ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
            ("cuStreamGetCtx", 12000, 0, "cuStreamGetCtx"),
            ("cuStreamGetCtx", 13000, 0, "cuStreamGetCtx_v2"),
            ("cuStreamBeginCapture", 12000, 0, "cuStreamBeginCapture_v2"),
            ("cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"),
            ("cuStreamGetCaptureInfo", 12000, 0, "cuStreamGetCaptureInfo_v2"),
            ("cuStreamGetCaptureInfo", 13000, 0, "cuStreamGetCaptureInfo_v3"),
        ];
        for (name, version, flags, symbol) in expected {
            let found = library.look_up(name, version, flags);
            assert!(!found.is_null() && found == library.symbol(symbol), "{name} for {version}");
        }
        assert!(library.look_up("cuNoSuchFunction", 13000, 0).is_null());
        return;
    }
    let output = rerun("symbols::functions_are_found_by_name_and_version", &[(INSIDE, "1"), (SWITCH, "1")]);
    assert!(output.status.success(), "{output:?}");
}
