//! Sets the cfgs of the Python version that PyO3 builds against, and `dlfield_portable` where it is free-threaded: the private
//! API of CPython that `src/python/ffi/private` uses relies on the GIL. In other builds `RUSTFLAGS="--cfg dlfield_portable"`
//! sets it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "python")]
    {
        pyo3_build_config::use_pyo3_cfgs();
        if pyo3_build_config::get().is_free_threaded() {
            println!("cargo:rustc-cfg=dlfield_portable");
        }
    }
}
