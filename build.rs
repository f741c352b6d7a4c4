//! Sets the cfgs of the Python version that PyO3 builds against.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
