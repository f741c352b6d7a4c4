//! Modules, and launches of their kernels.

use crate::codes::{Failure, Outcome};
use crate::driver::{self, Handle};
use crate::entry::{In, Out};
use crate::kernel::{Dimensions, Module, Parameters};
use crate::{export, export_on};
use std::ffi::{c_char, c_int, c_uint, c_void};

const ELF: &[u8] = b"\x7fELF";
/// The first bytes of a fat binary.
const FAT: &[u8] = b"\x50\xed\x55\xba";

fn load(module: Out<Handle>, image: In<u8>) -> Outcome {
    let mut driver = driver::lock()?;
    driver.note_unsafe()?;
    let device = driver.current_device()?;
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

    fn cuModuleLoadDataEx(
        module: Out<Handle>,
        image: In<u8>,
        _count: c_uint,
        _options: *const c_int,
        _values: *const *mut c_void,
    ) {
        load(module, image)
    }

    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        mode.put(1)
    }
}

export! { driver:
    fn cuModuleUnload(module: Handle) {
        if driver.modules.remove(&module).is_none() {
            return Err(driver.bad_handle("module", module));
        }
        driver.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: In<c_char>) {
        let found = driver.function(module, &name.text()?)?;
        function.put(found)
    }

    fn cuFuncGetAttribute(value: Out<c_int>, number: c_int, function: Handle) {
        driver.kernel(function)?;
        value.put(match number {
            0 => 1024,
            4 => 32,
            5 | 6 => 90,
            8 => 49_152,
            _ => 0,
        })
    }

    fn cuFuncSetAttribute(function: Handle, _number: c_int, _value: c_int) {
        driver.kernel(function)?;
        Ok(())
    }

    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        driver.kernel(function)?;
        module.put(driver.functions[&function].module)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        _memory: *const c_void,
        _dynamic: usize,
        _limit: c_int,
    ) {
        driver.kernel(function)?;
        grid.put(132)?;
        block.put(1024)
    }
}

export_on! { stream:
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        _shared: c_uint,
        stream: Handle,
        parameters: In<In<u8>>,
        extra: In<*const c_void>,
    ) {
        launch(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], stream, parameters, extra)
    }
}
