//! Fields of one call that share memory.

use smallvec::SmallVec;

use super::{Signature, SignatureError};
use crate::descriptor::Descriptor;

/// As many fields are compared in pairs in less time than they are sorted.
const FEW: usize = 16;

/// Rejects written fields that share memory with another field, unless the signature allows that. `field` returns the given ones
/// by position in the signature.
pub(crate) fn check_overlap<'a>(
    signature: &Signature,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
) -> Result<(), SignatureError> {
    if signature.allows_overlap() {
        return Ok(());
    }
    let fields = signature.fields();
    let written = |place: usize| fields[place].1.declared_access().writes();
    // The first pair in the signature's order, the written field before the other one.
    let mut found: Option<(usize, usize)> = None;
    for_each_pair_in_reach(fields.len(), &field, written, |one, other| {
        let pair = match (written(one), written(other)) {
            (true, true) => (one.min(other), one.max(other)),
            (true, false) => (one, other),
            (false, _) => (other, one),
        };
        if found.is_none_or(|known| pair < known) && shares_memory(&field, pair) {
            found = Some(pair);
        }
    });
    let Some((place, other)) = found else { return Ok(()) };
    Err(SignatureError::Overlap { field: fields[place].0.clone(), other: fields[other].0.clone() })
}

/// Returns the copied fields that must use the temporary of an earlier field, with the position of that, in the order of the
/// signature: both are the same elements, and the signature allows that. `field` returns the originals by position in the
/// signature.
///
/// # Errors
/// [`SignatureError::CopiedOverlap`] for a copied field that shares memory with another one in any other way, if one of the two
/// is written. The kernel would not see in one field what it writes to the other, and the last temporary would overwrite the
/// others when it is copied back.
pub(crate) fn shared_copies<'a>(
    signature: &Signature,
    field: impl Fn(usize) -> Option<&'a Descriptor>,
    is_copied: impl Fn(usize) -> bool,
) -> Result<Vec<(usize, usize)>, SignatureError> {
    let fields = signature.fields();
    let halo = |field: &'a Descriptor| field.halo().filter(|halo| halo.iter().any(|widths| *widths != (0, 0)));
    let mut meeting = Vec::new();
    if !signature.allows_overlap() {
        return Ok(meeting);
    }
    for_each_pair_in_reach(fields.len(), &field, &is_copied, |one, other| {
        let pair = (one.max(other), one.min(other));
        if shares_memory(&field, pair) {
            meeting.push(pair);
        }
    });
    meeting.sort_unstable();
    let mut shared = Vec::with_capacity(meeting.len());
    for (place, first) in meeting {
        let (Some(one), Some(other)) = (field(place), field(first)) else { continue };
        let ((name, spec), (other_name, other_spec)) = (&fields[place], &fields[first]);
        let same = (one.ptr(), one.shape(), one.strides(), one.dtype(), one.origin(), halo(one))
            == (other.ptr(), other.shape(), other.strides(), other.dtype(), other.origin(), halo(other));
        if is_copied(place) && is_copied(first) && same && spec.has_same_temporary(one, other_spec, other) {
            shared.push((place, first));
        } else if spec.declared_access().writes() || other_spec.declared_access().writes() {
            return Err(SignatureError::CopiedOverlap { field: name.clone(), other: other_name.clone() });
        }
    }
    Ok(shared)
}

/// Whether the fields at these two positions have a byte in common.
fn shares_memory<'a>(field: &impl Fn(usize) -> Option<&'a Descriptor>, (one, other): (usize, usize)) -> bool {
    field(one).zip(field(other)).is_some_and(|(one, other)| one.overlaps(other))
}

/// Calls `visit` with the positions of each two fields whose ranges of addresses meet, if `matters` is true of one of the two. Takes
/// the time of sorting the ranges, and that of the visits.
fn for_each_pair_in_reach<'a>(
    count: usize,
    field: &impl Fn(usize) -> Option<&'a Descriptor>,
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
