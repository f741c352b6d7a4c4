//! The cost of copies: number of calls, and temporaries.

use dlfield::cuda::device_count;
use dlfield::{DType, Device, Index, Layout, Spec, Tensor};

use crate::double::{Double, on_double};
use crate::memory::{assign, elements, numbers, put};

/// The counters that are compared.
const COUNTED: [&str; 6] = ["copies_to_device", "copies_to_host", "copies_on_device", "kernels", "allocations", "sets"];

/// Returns a field of three dimensions whose rows start at multiples of so many bytes.
fn field(device: Device, layout: [i64; 3], alignment: i64) -> Tensor {
    let layout = Layout::new(&layout, 3).unwrap();
    let spec = Spec::new(&[20, 30, 18], DType::F64).layout(layout).alignment_size(alignment);
    Tensor::zeros(&spec.with_device(device)).unwrap()
}

/// Copies, and returns how much each counter has grown.
fn taken(to: &Tensor, from: &Tensor) -> [u64; 6] {
    let values = numbers(from, 1);
    put(from, &values);
    let double = Double::find().unwrap();
    let before = double.counts(COUNTED);
    assign(to, from).unwrap();
    let mut after = double.counts(COUNTED);
    after.iter_mut().zip(before).for_each(|(after, before)| *after -= before);
    assert_eq!(elements(to), values);
    after
}

#[test]
fn padded_fields_of_one_order_take_one_call() {
    let Some((_cuda, _)) = on_double(&[]) else { return };
    let gpu = Device::cuda(0);
    for layout in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        for (to, from) in [(256, 64), (8, 256), (64, 8), (8, 8)] {
            let copy = |to_device, from_device| taken(&field(to_device, layout, to), &field(from_device, layout, from));
            assert_eq!(copy(gpu, Device::CPU), [1, 0, 0, 0, 0, 0]);
            assert_eq!(copy(Device::CPU, gpu), [0, 1, 0, 0, 0, 0]);
            // Inside a device, a kernel is faster than the driver, unless there is nothing but one row.
            let is_run = to == 8 && from == 8;
            assert_eq!(copy(gpu, gpu), if is_run { [0, 0, 1, 0, 0, 0] } else { [0, 0, 0, 1, 0, 0] });
            assert_eq!(copy(gpu, Device::CUDA_HOST), [1, 0, 0, 0, 0, 0]);
            if device_count() > 1 {
                assert_eq!(copy(Device::cuda(1), gpu), [0, 0, 1, 0, 0, 0]);
            }
        }
    }
}

#[test]
fn other_orders_take_one_kernel() {
    let Some((_cuda, _)) = on_double(&[]) else { return };
    let gpu = Device::cuda(0);
    let copy = |to, from| taken(&field(to, [2, 1, 0], 256), &field(from, [0, 1, 2], 64));
    assert_eq!(copy(gpu, gpu), [0, 0, 0, 1, 0, 0]);
    assert_eq!(copy(gpu, Device::CUDA_HOST), [0, 0, 0, 1, 0, 0]);
    assert_eq!(copy(gpu, Device::CPU), [1, 0, 0, 1, 1, 0]);
    assert_eq!(copy(Device::CPU, gpu), [0, 1, 0, 1, 1, 0]);
    if device_count() > 1 {
        assert_eq!(copy(Device::cuda(1), gpu), [0, 0, 1, 1, 1, 0]);
    }
    // Negative strides are an order too.
    let backwards = field(Device::CPU, [0, 1, 2], 64);
    let backwards = backwards.view(&[Index::All, Index::All, Index::Range { start: 17, len: 18, step: -1 }]).unwrap();
    assert_eq!(taken(&field(gpu, [0, 1, 2], 64), &backwards), [1, 0, 0, 1, 1, 0]);
}

#[test]
fn scattered_elements_of_the_host_are_gathered_there() {
    let Some((_cuda, _)) = on_double(&[]) else { return };
    let every = |field: &Tensor| {
        let second = |len| Index::Range { start: 0, len, step: 2 };
        field.view(&[second(10), second(15), second(9)]).unwrap()
    };
    let gpu = Device::cuda(0);
    let spec = Spec::new(&[10, 15, 9], DType::F64);
    let (compact, there) = (Tensor::zeros(&spec).unwrap(), Tensor::zeros(&spec.with_device(gpu)).unwrap());
    let (host, device) = (every(&field(Device::CPU, [0, 1, 2], 8)), every(&field(gpu, [0, 1, 2], 8)));
    assert_eq!(taken(&there, &host), [1, 0, 0, 0, 0, 0]);
    assert_eq!(taken(&host, &there), [0, 1, 0, 0, 0, 0]);
    // Scattered on both sides: gathered on the host, and scattered on the device.
    assert_eq!(taken(&device, &host), [1, 0, 0, 1, 1, 0]);
    assert_eq!(taken(&host, &device), [0, 1, 0, 1, 1, 0]);
    assert_eq!(taken(&device, &compact), [1, 0, 0, 1, 1, 0]);
}

#[test]
fn few_short_rows_in_the_other_direction_take_one_call() {
    let Some((_cuda, _)) = on_double(&[]) else { return };
    let gpu = Device::cuda(0);
    let rows = |device| Tensor::zeros(&Spec::new(&[4, 3], DType::F64).with_device(device)).unwrap();
    let backwards = |field: Tensor| field.view(&[Index::Range { start: 3, len: 4, step: -1 }]).unwrap();
    assert_eq!(taken(&rows(gpu), &backwards(rows(Device::CPU))), [1, 0, 0, 1, 1, 0]);
    assert_eq!(taken(&backwards(rows(gpu)), &rows(Device::CPU)), [1, 0, 0, 1, 1, 0]);
    assert_eq!(taken(&rows(Device::CPU), &backwards(rows(gpu))), [0, 1, 0, 1, 1, 0]);
    assert_eq!(taken(&backwards(rows(Device::CPU)), &rows(gpu)), [0, 1, 0, 1, 1, 0]);
    if device_count() > 1 {
        // The host does not wait for the calls between two devices.
        assert_eq!(taken(&rows(Device::cuda(1)), &backwards(rows(gpu))), [0, 0, 4, 0, 0, 0]);
    }
}

#[test]
fn boxes_with_gaps_in_every_dimension_take_one_call() {
    let Some((_cuda, _)) = on_double(&[]) else { return };
    let part = |device| {
        let whole = Tensor::zeros(&Spec::new(&[3, 4, 5, 6], DType::F64).with_device(device)).unwrap();
        let inner = |len| Index::Range { start: 1, len, step: 1 };
        whole.view(&[inner(2), inner(2), inner(3), inner(4)]).unwrap()
    };
    let (host, device) = (part(Device::CPU), part(Device::cuda(0)));
    assert_eq!(taken(&device, &host), [1, 0, 0, 1, 1, 0]);
    assert_eq!(taken(&host, &device), [0, 1, 0, 1, 1, 0]);
}
