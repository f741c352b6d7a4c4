//! Modules, and launches of their kernels.

use crate::codes::{Failure, Outcome};
use crate::driver::{self, Handle};
use crate::entry::{In, Out};
use crate::kernel::{Dimensions, Module, Parameters};
use crate::{export, export_on};
use std::ffi::{c_char, c_uint, c_void};

const ELF: &[u8] = b"\x7fELF";
/// The first bytes of a fat binary.
const FAT: &[u8] = b"\x50\xed\x55\xba";

fn load(module: Out<Handle>, image: In<u8>) -> Outcome {
    let mut driver = driver::lock()?;
    let device = driver.usable_device()?;
    driver.note_unsafe()?;
    let start = [image.get()?, image.at(1)?, image.at(2)?, image.at(3)?];
    let text = if start == ELF || start == FAT { None } else { Some(image.cast::<c_char>().text()?) };
    if text.as_ref().is_some_and(|text| !text.contains(".version") || !text.contains(".target")) {
        return Err(Failure::INVALID_IMAGE);
    }
    let context = driver.devices[device].context;
    let handle = driver.handle();
    driver.modules.insert(handle, Module { context, text });
    module.put(handle)
}

fn launch(
    function: Handle,
    grid: Dimensions,
    block: Dimensions,
    stream: Handle,
    parameters: In<In<u8>>,
    extra: In<*const c_void>,
) -> Outcome {
    let mut driver = driver::lock()?;
    let (kernel, _) = driver.kernel(function)?;
    if !extra.is_null() {
        return Err(Failure::NOT_SUPPORTED);
    }
    let mut values = vec![];
    for (index, &bytes) in kernel.parameters.iter().enumerate() {
        let at = parameters.at(index)?;
        values.push((0..bytes).map(|byte| at.at(byte)).collect::<Outcome<Vec<u8>>>()?);
    }
    driver.launch(function, grid, block, stream, &Parameters(values))
}

export! {
    fn cuModuleLoadData(module: Out<Handle>, image: In<u8>) {
        load(module, image)
    }
}

export! { driver:
    fn cuModuleUnload(module: Handle) {
        let found = driver.modules.remove(&module);
        driver.check_handle(found.is_some(), "module", module)?;
        driver.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: In<c_char>) {
        let found = driver.function(module, &name.text()?)?;
        function.put(found)
    }
}

export_on! { stream:
    fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, _shared: c_uint, stream: Handle, parameters: In<In<u8>>, extra: In<*const c_void>,
    ) {
        launch(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], stream, parameters, extra)
    }
}
