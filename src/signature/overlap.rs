//! Fields of one call that share memory.

use smallvec::SmallVec;

use super::arguments::{Argument, Arguments};
use super::{Signature, field_of};
use crate::descriptor::Descriptor;
use crate::error::{SignatureError, SignatureErrorKind};

/// As many fields are compared in pairs in less time than they are sorted.
const FEW: usize = 16;

impl<A: Argument> Arguments<A> {
    /// Rejects written fields that share memory with another field, unless the signature allows that. Then copied fields with the same
    /// elements get one temporary together; a copied field that shares memory with another one in any other way is rejected if one of
    /// the two is written: the kernel would not see in one field what it writes to the other, and the last temporary would overwrite the
    /// others when it is copied back.
    pub(super) fn check_overlap(&mut self, signature: &Signature) -> Result<(), SignatureError> {
        let fields = signature.fields();
        let writes = |place: usize| fields[place].1.declared_access().writes();
        let may_share = signature.allows_overlap();
        let matters = |place: usize| if may_share { self.is_copied(place) } else { writes(place) };
        // The later field of each pair, and the earlier one.
        let mut pairs: SmallVec<[(usize, usize); 8]> = SmallVec::new();
        for_each_pair_in_reach(
            fields.len(),
            |place| self.original(place),
            matters,
            |one, other| {
                if self.original(one).zip(self.original(other)).is_some_and(|(one, other)| one.overlaps(other)) {
                    pairs.push((one.max(other), one.min(other)));
                }
            },
        );
        let name = |place: usize| &fields[place].0;
        if !may_share {
            // The written field first, and of two written ones the earlier.
            let ordered = pairs.iter().map(|&(late, early)| if writes(early) { (early, late) } else { (late, early) });
            let first = ordered.min();
            return first.map_or(Ok(()), |(field, other)| {
                let sentence = format_args!("it is written, and shares memory with field {:?}", name(other));
                Err(SignatureError::from_sentence(&field_of(name(field)), &sentence)
                    .with_fix(&"pass a copy of one, or set allow_overlap")
                    .with_kind(SignatureErrorKind::Overlap))
            });
        }
        pairs.sort_unstable();
        for (late, early) in pairs {
            if self.has_same_copy(signature, late, early) {
                self.share_copy(late, early);
            } else if writes(late) || writes(early) {
                let sentence = format_args!(
                    "it shares memory with field {:?}, and a temporary copy would replace only one of them, or each by its own",
                    name(early)
                );
                let fix = "pass the same array for both, with the same FieldSpec but for access, or arrays that fit";
                return Err(SignatureError::from_sentence(&field_of(name(late)), &sentence)
                    .with_fix(&fix)
                    .with_kind(SignatureErrorKind::Overlap));
            }
        }
        Ok(())
    }

    /// Whether two fields are copied, and the copy of one is also one for the other.
    fn has_same_copy(&self, signature: &Signature, late: usize, early: usize) -> bool {
        let (Some(one), Some(other)) = (self.original(late), self.original(early)) else { return false };
        let is_same = (one.ptr(), one.shape(), one.strides(), one.dtype(), one.origin(), halo(one))
            == (other.ptr(), other.shape(), other.strides(), other.dtype(), other.origin(), halo(other));
        let [spec, other_spec] = [late, early].map(|place| &signature.fields()[place].1);
        is_same && self.is_copied(late) && self.is_copied(early) && spec.has_same_temporary(one, other_spec, other)
    }
}

/// The halo, unless all its widths are 0.
fn halo(field: &Descriptor) -> Option<&[(i64, i64)]> {
    field.halo().filter(|halo| halo.iter().any(|widths| *widths != (0, 0)))
}

/// Calls `visit` with the positions of each two fields whose ranges of addresses meet, if `matters` is true of one of the two. Takes
/// the time of sorting the ranges, and that of the visits.
fn for_each_pair_in_reach<'a>(
    count: usize,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
    matters: impl Fn(usize) -> bool,
    mut visit: impl FnMut(usize, usize),
) {
    if count < 2 || !(0..count).any(&matters) {
        return;
    }
    // The lowest address of each field and one past the highest. The range of an absent field is empty.
    let mut ranges: SmallVec<[(usize, usize); FEW]> = SmallVec::new();
    ranges.extend((0..count).map(|place| field(place).map_or((0, 0), Descriptor::reach)));
    if count <= FEW {
        for (place, (low, high)) in ranges.iter().enumerate() {
            for (other, (other_low, other_high)) in ranges[..place].iter().enumerate() {
                if low < other_high && other_low < high && (matters(place) || matters(other)) {
                    visit(other, place);
                }
            }
        }
        return;
    }
    let mut ranges: Vec<_> = ranges.iter().enumerate().map(|(place, (low, high))| (*low, *high, place)).collect();
    ranges.retain(|(low, high, _)| low < high);
    ranges.sort_unstable();
    // Those that may reach the next ones, by whether they matter; each with the end of its range.
    let mut begun: [Vec<(usize, usize)>; 2] = [Vec::new(), Vec::new()];
    for (low, high, place) in ranges {
        let is_one = matters(place);
        // Two fields that do not matter are not compared.
        for others in &mut begun[usize::from(!is_one)..] {
            others.retain(|(end, _)| *end > low);
            others.iter().for_each(|(_, other)| visit(*other, place));
        }
        begun[usize::from(is_one)].push((high, place));
    }
}
