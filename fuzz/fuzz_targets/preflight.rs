//! What each framework accepts without a copy, compared with the same rules on single elements.
#![no_main]

use dlfield::{Descriptor, Device, Support, Target, Verdict, preflight};
use dlfield_fuzz::draw;
use dlfield_fuzz::naive::{offset, offsets};

/// What the rules ask of a field's elements.
struct Facts {
    is_empty: bool,
    /// Whether an index that is larger by 1 has a smaller address.
    is_backwards: bool,
    /// Whether the elements have every place of one range of memory, each its own.
    is_compact: bool,
}

impl Facts {
    fn of(field: &Descriptor) -> Facts {
        let places = offsets(field.shape(), field.strides(), 1);
        let goes_back = |axis: usize| {
            let mut next = vec![0; field.ndim()];
            next[axis] = 1;
            field.shape()[axis] > 1 && offset(&next, field.strides(), 1) < 0
        };
        Facts {
            is_empty: places.is_empty(),
            is_backwards: (0..field.ndim()).any(goes_back),
            is_compact: places.iter().copied().eq(0..places.len() as i128),
        }
    }

    fn verdict(&self, field: &Descriptor, target: Target, write: bool, support: Support) -> Verdict {
        let device = field.device().to_string();
        let on = device.split(':').next().unwrap_or_default();
        let by_host = ["cpu", "cuda_host", "cuda_managed", "rocm_host"].contains(&on);
        let by_gpu = ["cuda", "cuda_managed"].contains(&on);
        let reached = match target {
            Target::NumPy => by_host,
            Target::CuPy => by_host || by_gpu,
            _ => ["cpu", "cuda", "cuda_host", "cuda_managed"].contains(&on),
        };
        if !reached || matches!(support, Support::Lacks) || (target == Target::Jax && write) {
            return Verdict::Impossible;
        }
        let shared = match target {
            Target::NumPy => !(write && field.is_readonly()),
            Target::CuPy => by_gpu && (self.is_empty || !field.is_readonly()),
            _ if self.is_empty => true,
            Target::Torch => !field.is_readonly() && !self.is_backwards,
            // JAX.
            _ => {
                let aligned = !by_host || field.ptr().addr().is_multiple_of(64);
                self.is_compact && aligned && !(field.is_readonly() && (by_gpu || !field.is_c_contiguous()))
            }
        };
        if shared && matches!(support, Support::Shares) { Verdict::ZeroCopy } else { Verdict::Copy }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    draw::run(bytes, |bytes| {
        let devices = ["cpu", "cuda:0", "cuda:3", "cuda_host", "cuda_managed", "rocm:0", "rocm_host"];
        let device: Device = bytes.choose(&devices)?.parse().expect("a device");
        let dtype = draw::dtype(bytes)?;
        let mut field = draw::field(bytes, dtype, device)?;
        if bytes.arbitrary()? {
            // In some order without gaps, at a multiple of 64 bytes.
            let mut strides = vec![0; field.ndim()];
            let mut next = 1;
            for axis in draw::permutation(bytes, field.ndim())? {
                strides[axis] = next;
                next *= field.shape()[axis].max(1);
            }
            let start = std::ptr::without_provenance_mut(draw::MIDDLE);
            let readonly = bytes.arbitrary()?;
            field = Descriptor::new(start, device, dtype, readonly, field.shape(), &strides).expect("small");
        }
        let facts = Facts::of(&field);
        for target in Target::ALL {
            for support in [Support::Shares, Support::Copies, Support::Lacks] {
                for write in [false, true] {
                    let found = preflight(&field, target, write, support);
                    let wanted = facts.verdict(&field, target, write, support);
                    assert_eq!(found.verdict, wanted, "{target:?} {support:?} {write} {found}: {field:?}");
                    assert_eq!(
                        (found.reason.is_empty(), found.fix.is_empty()),
                        [wanted == Verdict::ZeroCopy; 2].into()
                    );
                }
            }
        }
        Ok(())
    });
});
