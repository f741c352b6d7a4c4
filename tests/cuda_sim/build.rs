//! Gives the library a driver's name and lifetime: it is loaded as `libcuda.so.1` and never unloaded. Compiles the kernels for
//! the host.

use std::env::var;
use std::process::Command;

const OPTIONS: &str =
    "-std=c++17 -O1 -w -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-strict-aliasing -c device.cpp -o";

fn main() {
    for file in ["build.rs", "device.cpp", "../../src/copy/cuda/kernels.cu"] {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let folder = var("OUT_DIR").expect("set by cargo");
    let (object, library) = (format!("{folder}/device.o"), format!("{folder}/libdevice.a"));
    let compiler = var("CXX").unwrap_or_else(|_| "c++".to_owned());
    run(Command::new(compiler).args(OPTIONS.split(' ')).arg(&object));
    run(Command::new("ar").args(["crs", &library, &object]));
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=device");
}

fn run(command: &mut Command) {
    let done = command.status();
    assert!(done.as_ref().is_ok_and(|status| status.success()), "{command:?}: {done:?}");
}
