//! The content of capsules: managed tensors of any version, whose memory is used, exported again, and released once.
#![no_main]
#![allow(unsafe_code, reason = "raw structs are made and read")]

use std::ptr::null_mut;

use arbitrary::{Result, Unstructured};
use dlfield::dlpark::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLTensor};
use dlfield::dlpark::{DlpackFlags, Managed};
use dlfield::{DType, Device, Tensor};
use dlfield_fuzz::draw::{self, edgy};
use dlfield_fuzz::elements::all;
use dlfield_fuzz::managed_tensors::{Drops, make, versioned};
use dlfield_fuzz::naive::{indices, offset};
use dlfield_fuzz::sound_dlpack::{Fields, check_proof};

/// The elements before and after element 0 of what `managed_tensors` makes.
const ROOM: (i128, i128) = (8 * 8, 16 * 8);

/// The content to write into a struct of two dimensions.
fn content(bytes: &mut Unstructured<'_>) -> Result<Fields> {
    let ndim =
        if bytes.ratio(7, 8)? { bytes.int_in_range(0..=2)? } else { *bytes.choose(&[-1, i32::MIN, 65, i32::MAX])? };
    let small = bytes.ratio(7, 8)?;
    let mut pair = |low: i64| -> Result<Vec<i64>> {
        draw::list(2, || if small { bytes.int_in_range(low..=3) } else { edgy(bytes) })
    };
    let (shape, strides) = (pair(0)?, pair(-3)?);
    let dtype = draw::dtype(bytes)?;
    Ok(Fields {
        ndim,
        shape: bytes.ratio(15, 16)?.then_some(shape),
        strides: bytes.ratio(7, 8)?.then_some(strides),
        // Element 0, or NULL.
        data: u64::from(bytes.ratio(15, 16)?),
        byte_offset: if bytes.ratio(7, 8)? { bytes.int_in_range(0..=4)? * 8 } else { edgy(bytes)?.cast_unsigned() },
        dtype: if bytes.ratio(15, 16)? { (dtype.code().0, dtype.bits(), 1) } else { bytes.arbitrary()? },
        device: if bytes.ratio(15, 16)? { (1, 0) } else { bytes.arbitrary()? },
        version: if bytes.arbitrary()? { Some((bytes.int_in_range(0..=2)?, bytes.int_in_range(0..=4)?)) } else { None },
        flags: bytes.int_in_range(0..=7)?,
    })
}

fn write(fields: &mut Fields, tensor: &mut DLTensor) {
    let numbers = |list: &Option<Vec<i64>>, start: *mut i64| {
        let Some(list) = list else { return null_mut() };
        // SAFETY: `make` points shape and strides at two numbers, and the list has two.
        unsafe { start.copy_from_nonoverlapping(list.as_ptr(), 2) };
        start
    };
    (tensor.shape, tensor.strides) = (numbers(&fields.shape, tensor.shape), numbers(&fields.strides, tensor.strides));
    if fields.data == 0 {
        tensor.data = null_mut();
    }
    fields.data = tensor.data.addr() as u64;
    (tensor.ndim, tensor.byte_offset) = (fields.ndim, fields.byte_offset);
    tensor.dtype = DLDataType { code: DLDataTypeCode(fields.dtype.0), bits: fields.dtype.1, lanes: fields.dtype.2 };
    tensor.device = DLDevice { device_type: DLDeviceType(fields.device.0), device_id: fields.device.1 };
}

fn import(fields: &mut Fields, drops: &Drops) -> Option<dlfield::Result<Tensor>> {
    let flags = DlpackFlags::from_bits_retain(fields.flags);
    // SAFETY: live structs that nobody else has, whose deleters free them; those that say more than they have are not read.
    unsafe {
        match fields.version {
            Some(version) => {
                let managed = Managed::from_raw(versioned(drops, version, flags, |tensor| write(fields, tensor)));
                managed.ok().map(|managed| Tensor::from_managed(managed))
            }
            None => {
                let raw = make::<DLManagedTensor>(drops, |tensor| write(fields, tensor));
                Some(Tensor::from_managed(Managed::from_raw(raw).expect("a struct without a version")))
            }
        }
    }
}

/// Uses a tensor whose elements are all in the struct's memory: views, copies and exports, dropped in any order.
fn use_memory(bytes: &mut Unstructured<'_>, tensor: Tensor, drops: &Drops) -> Result<()> {
    let elements = all(&tensor);
    let (mut held, mut exported) = (vec![tensor], false);
    for _ in 0..bytes.int_in_range(0..=6u8)? {
        let tensor = held[bytes.choose_index(held.len())?].clone();
        let way = bytes.int_in_range(0..=4u8)?;
        // What another library was given may be written by it, and is not read by safe functions any more.
        exported |= way == 1 || way == 2;
        match way {
            0 => held
                .push(tensor.transpose(&(0..tensor.descriptor().ndim()).rev().collect::<Vec<_>>()).expect("reversed")),
            // SAFETY: the structs are what the exports say they are.
            1 => held
                .push(unsafe { Tensor::from_managed(tensor.to_versioned(false).expect("of the host")) }.expect("own")),
            2 => match tensor.to_legacy() {
                // SAFETY: the structs are what the exports say they are.
                Ok(managed) => held.push(unsafe { Tensor::from_managed(managed) }.expect("own")),
                Err(_) => assert!(tensor.descriptor().is_readonly() || tensor.descriptor().dtype().is_sub_byte()),
            },
            3 => match tensor.copy() {
                Ok(copy) => assert_eq!(all(&copy), all(&tensor)),
                Err(error) => assert!(exported, "{error}"),
            },
            _ => {
                drop(tensor);
                held.swap_remove(bytes.choose_index(held.len())?);
                if held.is_empty() {
                    break;
                }
            }
        }
        assert_eq!(drops.count(), 0);
        assert!(held.iter().all(|tensor| all(tensor).len() == elements.len()));
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let (mut fields, drops) = (content(bytes)?, Drops::default());
        let is_foreign = fields.version.is_some_and(|(major, _)| major != 1);
        let imported = import(&mut fields, &drops);
        assert_eq!(imported.is_none(), is_foreign);
        if fields.version.is_none() {
            // A legacy struct has no flags.
            fields.flags = 0;
        }
        if let Some(Ok(tensor)) = imported {
            assert!(fields.is_sound() && drops.count() == 0);
            let field = tensor.descriptor();
            check_proof(field);
            assert_eq!(field.is_readonly(), fields.version.is_none() || fields.flags & 1 != 0);
            let ahead = i128::from(fields.byte_offset);
            let reached = field.byte_span().is_none_or(|(low, high)| ahead + low >= -ROOM.0 && ahead + high <= ROOM.1);
            // A stride of 0 repeats elements as often as it likes.
            let is_small = field.shape().iter().all(|extent| *extent < 64);
            if reached && is_small && field.device() == Device::CPU {
                if field.dtype() == DType::I64 && ahead % 8 == 0 {
                    let number = |index: &Vec<i64>| (ahead + offset(index, field.strides(), 8)) / 8;
                    let wanted: Vec<_> = indices(field.shape()).iter().map(number).collect();
                    let found =
                        all(&tensor).into_iter().map(|element| i64::from_ne_bytes(element.try_into().expect("8")));
                    assert!(found.map(i128::from).eq(wanted));
                }
                use_memory(bytes, tensor, &drops)?;
            }
        } else if let Some(Err(error)) = imported {
            let refused = !fields.is_sound() || fields.device.0 != 1;
            assert!(refused && !error.to_string().is_empty(), "{error}: {fields:?}");
        }
        assert_eq!(drops.count(), 1, "released other than once");
        Ok(())
    });
});
