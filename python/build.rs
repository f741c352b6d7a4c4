//! Sets the cfg `dlfield_portable` where Python is free-threaded, as the library's build.rs does.

fn main() {
    if pyo3_build_config::get().is_free_threaded() {
        println!("cargo:rustc-cfg=dlfield_portable");
    }
}
