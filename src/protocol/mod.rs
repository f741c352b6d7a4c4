//! Wire formats on one side, [`crate::Descriptor`] on the other; no interpreter in sight.
//!
//! Readers in other layers fetch plain structs from objects; the judging is here.

pub mod array_interface;
pub mod buffer;
pub mod dlpack;
pub mod pep3118;
pub mod typestr;

use crate::layout::{Extents, MAX_NDIM};

/// What is wrong with something another library handed over, or asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// More dimensions than anybody takes.
    #[error("ndim: {got} dimensions; allowed are at most {MAX_NDIM}")]
    TooManyDims {
        /// Dimensions found.
        got: usize,
    },
    /// A negative number of dimensions.
    #[error("ndim: {got}; allowed is 0 to {MAX_NDIM}")]
    NegativeNdim {
        /// Dimensions found.
        got: i64,
    },
    /// A shape that is not there.
    #[error("shape: NULL with ndim {ndim}; allowed is NULL only for ndim 0")]
    NullShape {
        /// Number of dimensions.
        ndim: usize,
    },
    /// Strides that are not there, in a version that requires them.
    #[error("strides: NULL with ndim {ndim} in DLPack {major}.{minor}; allowed is NULL only below version 1.2")]
    NullStrides {
        /// Number of dimensions.
        ndim: usize,
        /// Declared version.
        major: u32,
        /// Declared version.
        minor: u32,
    },
    /// A dictionary that lacks a key it must have.
    #[error("{interface}[{key:?}]: missing; allowed is {allowed}")]
    MissingKey {
        /// The attribute that holds the dictionary.
        interface: &'static str,
        /// The key.
        key: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
    /// An entry of a dictionary that is not what the interface says.
    #[error("{interface}[{key:?}]: {got}; allowed is {allowed}")]
    Entry {
        /// The attribute that holds the dictionary.
        interface: &'static str,
        /// The key.
        key: &'static str,
        /// What was found.
        got: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Elements that lie outside the buffer they are said to be in.
    #[error(
        "{field}: the elements lie in bytes {low} to {high} of a buffer of {len} bytes; allowed is 0 to {len}: check \
         offset, shape and strides"
    )]
    OutsideBuffer {
        /// The argument or field.
        field: &'static str,
        /// First byte of the elements, from the buffer's start.
        low: i128,
        /// The byte after the elements.
        high: i128,
        /// Bytes of the buffer.
        len: usize,
    },
    /// A buffer whose length and shape contradict each other.
    #[error("len: a buffer of {got} bytes for shape {shape:?} of {itemsize}-byte elements; allowed is {wanted}")]
    BufferLength {
        /// Bytes said.
        got: i64,
        /// The shape.
        shape: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
        /// Bytes of all elements.
        wanted: i64,
    },
    /// Rows behind pointers.
    #[error("suboffsets: {got} at axis {axis}; allowed is none: rows behind pointers have no strides, pass a copy")]
    Suboffsets {
        /// The dimension.
        axis: usize,
        /// The suboffset.
        got: i64,
    },
    /// Another number of strides than dimensions.
    #[error("strides: {got} entries for {ndim} dimensions; allowed is one entry for each dimension")]
    StridesLength {
        /// Number of dimensions.
        ndim: usize,
        /// Entries found.
        got: usize,
    },
    /// A stride that does not lead from element to element.
    #[error("strides: {got} bytes at axis {axis}; allowed is a multiple of the element size {itemsize}")]
    PartialStride {
        /// The dimension.
        axis: usize,
        /// The stride in bytes.
        got: i64,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// A negative extent.
    #[error("shape: extent {got} at axis {axis}; allowed is 0 or more")]
    NegativeExtent {
        /// The dimension.
        axis: usize,
        /// The extent.
        got: i64,
    },
    /// Elements outside the address space.
    #[error("strides: shape {shape:?} with strides {strides:?} of {itemsize}-byte elements leaves the address space")]
    Span {
        /// The shape.
        shape: Vec<i64>,
        /// The strides in elements.
        strides: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// More elements than can be counted.
    #[error("shape: {shape:?} of {itemsize}-byte elements overflows; allowed are less than 2**63 bytes")]
    Size {
        /// The shape.
        shape: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// No address, yet elements.
    #[error("data: NULL for a tensor that has elements; allowed is NULL only for size 0")]
    NullData,
    /// An offset that leads out of the address space.
    #[error("byte_offset: {got} leads out of the address space; allowed is less than 2**63, within the memory at data")]
    ByteOffset {
        /// The offset found.
        got: u64,
    },
    /// A version whose structs cannot be read.
    #[error("version: DLPack {major}.{minor}; allowed is major version 1")]
    Version {
        /// Declared version.
        major: u32,
        /// Declared version.
        minor: u32,
    },
    /// A managed tensor that is not there.
    #[error("{field}: NULL pointer; allowed is the address of a DLPack struct")]
    NullPointer {
        /// The argument or field.
        field: &'static str,
    },
    /// A function of another library that failed without a word.
    #[error(
        "{function}: it failed for {producer} and set no exception; allowed is to fail with one that says why: report it to \
         that library, and pass the array in another form"
    )]
    Silent {
        /// The function, by the field of the protocol that has it.
        function: &'static str,
        /// Type of the object, or the library.
        producer: String,
    },
    /// Memory that is borrowed, and may not be borrowed once more.
    #[error(
        "overlap: another argument, or a call under way, {held} memory of this array, and it is to be {wanted} here; \
         allowed are arrays that do not overlap where any is written: pass a copy"
    )]
    Borrowed {
        /// What the memory is borrowed for already: `"reads"` or `"writes"`.
        held: &'static str,
        /// What it was to be: `"read"` or `"written"`.
        wanted: &'static str,
    },
    /// Memory that changed while the other arguments of a call were read.
    #[error(
        "moved: reading this argument ran code that changed another one, of {object}: it was {was}, now it is {found}; \
         allowed is code that leaves the other arguments as they are: pass a copy of that one, or of this"
    )]
    Disturbed {
        /// Type of what changed.
        object: String,
        /// Elements, shape, strides and address before.
        was: String,
        /// The same after, or what is wrong by now.
        found: String,
    },
    /// Memory that its object has moved, or reshaped, since it was described.
    #[error(
        "moved: the memory of a {object} was {was}, now it is {found}; allowed is memory that stays where it was described: \
         describe the object again"
    )]
    Moved {
        /// Type of what lent the memory.
        object: String,
        /// Elements, shape, strides and address when it was described.
        was: String,
        /// The same now, or what is wrong by now.
        found: String,
    },
    /// A tensor of PyTorch that autograd follows.
    #[error(
        "obj: a PyTorch tensor that requires grad, and autograd does not see what is done to its memory; pass obj.detach()"
    )]
    RequiresGrad,
    /// Memory that others can reach too.
    #[error(
        "owner: others share the memory; allowed is a tensor that alone has it, so drop its views and clones, or copy()"
    )]
    Shared,
    /// Memory that another library was given, and may write to.
    #[error(
        "owner: another library was given the memory and may write to it; allowed is memory that only Rust has, so copy \
         before it is given away, or in unsafe code"
    )]
    Exported,
    /// Read-only memory where the format cannot say so, or writing was asked for.
    #[error("{field}: the memory is read-only; {fix}")]
    ReadOnly {
        /// The argument or field.
        field: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// An element type that the format has no word for.
    #[error("dtype: {name} cannot be told through {protocol}; allowed is a type it knows, or another protocol")]
    NotExpressible {
        /// The element type.
        name: &'static str,
        /// The protocol.
        protocol: &'static str,
    },
    /// Elements that are not laid out as asked for.
    #[error("strides: the elements are not {wanted}-contiguous as the consumer asks; ask for strides, or copy")]
    NotContiguous {
        /// `"C"`, `"F"` or `"C or F"`.
        wanted: &'static str,
    },
    /// A tensor whose memory holds other values than it has.
    #[error("obj: conjugated or negated in name only, the memory holds other values; {fix}")]
    Lazy {
        /// What to do.
        fix: &'static str,
    },
    /// A copy was forbidden and is needed.
    #[error("copy: False, but {reason}")]
    NeedsCopy {
        /// Why.
        reason: String,
    },
    /// What an object hands over is a copy, and its memory was wanted.
    #[error("obj: {reason}; allowed is memory of its own: take the copy with from_dlpack")]
    OnlyCopy {
        /// Why.
        reason: String,
    },
    /// An argument that has to be absent or otherwise.
    #[error("{argument}: {got}; allowed is {allowed}")]
    Argument {
        /// The argument.
        argument: &'static str,
        /// What was found.
        got: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// Byte strides of compact elements, last index fastest; nonsense shapes give nonsense that the descriptor refuses.
fn c_order(shape: &[i64], itemsize: usize) -> Extents {
    let mut step = i64::try_from(itemsize).unwrap_or(i64::MAX);
    let mut strides = Extents::from_elem(step, shape.len());
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}
