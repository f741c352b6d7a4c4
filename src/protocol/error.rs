//! The error of exchange with other libraries.

use crate::layout::MAX_NDIM;

/// An error in what another library exported, or requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// More dimensions than any library takes.
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
    /// A shape pointer that is NULL.
    #[error("shape: NULL with ndim {ndim}; allowed is NULL only for ndim 0")]
    NullShape {
        /// Number of dimensions.
        ndim: usize,
    },
    /// Strides that are NULL in a version that requires them.
    #[error("strides: NULL with ndim {ndim} in DLPack {major}.{minor}; allowed is NULL only below version 1.2")]
    NullStrides {
        /// Number of dimensions.
        ndim: usize,
        /// Declared version.
        major: u32,
        /// Declared version.
        minor: u32,
    },
    /// A dictionary without a required key.
    #[error("{interface}[{key:?}]: missing; allowed is {allowed}")]
    MissingKey {
        /// The attribute with the dictionary.
        interface: &'static str,
        /// The key.
        key: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
    /// An entry of a dictionary that violates the interface.
    #[error("{interface}[{key:?}]: {got}; allowed is {allowed}")]
    Entry {
        /// The attribute with the dictionary.
        interface: &'static str,
        /// The key.
        key: &'static str,
        /// What was found.
        got: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Elements outside the buffer that holds them.
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
    /// A buffer whose length contradicts its shape.
    #[error("len: a buffer of {got} bytes for shape {shape:?} of {itemsize}-byte elements; allowed is {wanted}")]
    BufferLength {
        /// Bytes according to the buffer.
        got: i64,
        /// The shape.
        shape: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
        /// Bytes of all elements.
        wanted: i64,
    },
    /// Rows that are reached through pointers.
    #[error("suboffsets: {got} at axis {axis}; allowed are buffers without suboffsets: pass a copy")]
    Suboffsets {
        /// The dimension.
        axis: usize,
        /// The suboffset.
        got: i64,
    },
    /// A number of strides that differs from the number of dimensions.
    #[error("strides: {got} entries for {ndim} dimensions; allowed is one entry for each dimension")]
    StridesLength {
        /// Number of dimensions.
        ndim: usize,
        /// Entries found.
        got: usize,
    },
    /// A byte stride that is not a multiple of the element size.
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
    #[error(
        "strides: shape {shape:?} with strides {strides:?} of {itemsize}-byte elements overflows the address space"
    )]
    Span {
        /// The shape.
        shape: Vec<i64>,
        /// The strides in elements.
        strides: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// A size that overflows.
    #[error("shape: {shape:?} of {itemsize}-byte elements overflows; allowed are less than 2**63 bytes")]
    Size {
        /// The shape.
        shape: Vec<i64>,
        /// Bytes of one element.
        itemsize: usize,
    },
    /// A NULL address for a tensor with elements.
    #[error("data: NULL for a tensor that has elements; allowed is NULL only for size 0")]
    NullData,
    /// An address where no memory is: that of an element of an array without memory.
    #[error(
        "data: address {got:#x} for a tensor that has elements; allowed are addresses from 0x10000 on: what lies below is no memory"
    )]
    LowAddress {
        /// The lowest address of an element.
        got: usize,
    },
    /// An offset that leaves the address space.
    #[error("byte_offset: {got} overflows the address space; allowed is less than 2**63, inside the memory at data")]
    ByteOffset {
        /// The offset found.
        got: u64,
    },
    /// A version with an unknown struct layout.
    #[error("version: DLPack {major}.{minor}; allowed is major version 1")]
    Version {
        /// Declared version.
        major: u32,
        /// Declared version.
        minor: u32,
    },
    /// A managed tensor that is NULL.
    #[error("{field}: NULL pointer; allowed is the address of a DLPack struct")]
    NullPointer {
        /// The argument or field.
        field: &'static str,
    },
    /// A function of another library that failed without an exception.
    #[error(
        "{function}: it failed for {producer} and set no exception; report that to its library, and pass the array by another \
         protocol"
    )]
    Silent {
        /// The function, by its field in the protocol.
        function: &'static str,
        /// Type of the object, or the library.
        producer: String,
    },
    /// Memory that is borrowed and may not be borrowed again.
    #[error(
        "overlap: this array would be {wanted}, but another argument or a running call {held} memory of it; allowed are \
         written arrays that overlap no other: pass a copy"
    )]
    Borrowed {
        /// What the existing borrow does: `"reads"`, `"writes"`, or who has borrowed it.
        held: &'static str,
        /// What the new borrow was for: `"read"` or `"written"`.
        wanted: &'static str,
    },
    /// Memory that changed while arguments of a call were imported or their labels read.
    #[error(
        "moved: converting an argument, or reading its labels, ran code that changed an argument, {object}: it was {was}, now \
         it is {found}; pass a copy"
    )]
    Disturbed {
        /// Type of the object that changed.
        object: String,
        /// Elements, shape, strides and address before the change.
        was: String,
        /// The same after the change, or what is wrong now.
        found: String,
    },
    /// Memory that its object has moved or reshaped since the import.
    #[error("moved: the memory of the described {object} was {was}, now it is {found}; describe the object again")]
    Moved {
        /// Type of the object that owns the memory.
        object: String,
        /// Elements, shape, strides and address at the import.
        was: String,
        /// The same now, or what is wrong now.
        found: String,
    },
    /// Memory that PyTorch has exchanged inside its storage, which is freed.
    #[error(
        "field: PyTorch has given the storage other memory since the field was imported, as share_memory_() does; allowed is a \
         field that was imported after that: dl.from_dlpack(tensor.share_memory_())"
    )]
    Exchanged,
    /// A PyTorch tensor with a tangent, of forward-mode autograd.
    #[error(
        "obj: a PyTorch tensor with a tangent (forward-mode autograd), and autograd does not track access by other libraries; \
         pass obj.detach()"
    )]
    HasTangent,
    /// A PyTorch tensor that requires grad.
    #[error(
        "obj: a PyTorch tensor that requires grad, and autograd does not track access by other libraries; to keep the gradient \
         compute with PyTorch, on dl.as_torch(field), else pass what .detach() returns"
    )]
    RequiresGrad,
    /// Memory that has other owners.
    #[error(
        "owner: the memory is shared; allowed is a tensor that is its only owner: drop its views, clones and exports, or copy()"
    )]
    Shared,
    /// Memory that another library or a caller's owner keeps: whether others access it is not known.
    #[error(
        "owner: the memory is not this crate's, and whether other code has it is not known; allowed is an allocation of this \
         crate, or memory of an array or a Vec, also one that came back from DLPack: copy() makes one"
    )]
    NotOwned,
    /// Memory that came back in a DLPack struct, and that streams use of which its first owner does not know: it came back
    /// during a graph capture, through a library that names its own stream, or when the driver failed to order the streams.
    #[error(
        "owner: the memory came back from DLPack, and streams use it that its first owner does not know, as it came back during \
         a graph capture, through a library that names its own stream, or after an error of the driver; allowed is memory that \
         came back otherwise: end the capture before, pass the tensor itself, or copy()"
    )]
    UsedByStreams,
    /// Memory that a guard of `Tensor::read` reads, and that was to be exported.
    #[error(
        "owner: a guard of Tensor::read reads the memory, and the consumer of an export may write to it; allowed is an export \
         once the guard is dropped"
    )]
    Guarded,
    /// Memory that has as many guards of `Tensor::read` as can be counted, most of them forgotten.
    #[error(
        "owner: {most} guards of Tensor::read read the memory; allowed are {most}: drop guards instead of forgetting them"
    )]
    TooManyGuards {
        /// Number of guards that can be counted.
        most: usize,
    },
    /// Memory that was exported to another library, or comes from Python, where others may write to it.
    #[error(
        "owner: the memory was exported, or comes from Python, and others may write to it; allowed is memory that was never \
         exported, or that array_view_mut or into_array has found to be back: copy it before the export, borrow it as an \
         argument (In), or use the unsafe functions"
    )]
    Exported,
    /// Read-only memory that the format cannot express, or that was to be written.
    #[error("{field}: the memory is read-only; {fix}")]
    ReadOnly {
        /// The argument or field.
        field: &'static str,
        /// How to fix it.
        fix: &'static str,
    },
    /// An element type that the format cannot express.
    #[error(
        "dtype: {name} cannot be expressed in {protocol}; allowed is a dtype that it supports, or another protocol"
    )]
    NotExpressible {
        /// The element type.
        name: &'static str,
        /// The protocol.
        protocol: &'static str,
    },
    /// Elements that do not fill the memory between the first and the last, or share it, in memory that others allocated.
    #[error(
        "block: elements of {elements} bytes, shape {shape:?} and strides {strides:?} in {span} bytes of memory; allowed are \
         elements that fill the memory once, or dlfield's own allocations: pass a copy()"
    )]
    Gaps {
        /// The shape.
        shape: Vec<i64>,
        /// The strides in elements.
        strides: Vec<i64>,
        /// Bytes of all elements.
        elements: i64,
        /// Bytes from the first to the last element.
        span: i128,
    },
    /// Elements that are not contiguous as requested.
    #[error(
        "strides: the elements are not {wanted}-contiguous, as the consumer requests; request strides, or pass a copy"
    )]
    NotContiguous {
        /// `"C"`, `"F"` or `"C or F"`.
        wanted: &'static str,
    },
    /// A tensor that is conjugated or negated lazily, so that its memory holds other values.
    #[error("obj: a lazily conjugated or negated tensor, whose memory holds other values; {fix}")]
    Lazy {
        /// How to fix it.
        fix: &'static str,
    },
    /// A copy that was forbidden but is needed.
    #[error("copy: False, but {reason}")]
    NeedsCopy {
        /// The reason.
        reason: String,
    },
    /// An object that exports only a copy of its memory.
    #[error("obj: {reason}; allowed is an object that shares its own memory: take the copy with from_dlpack")]
    OnlyCopy {
        /// The reason.
        reason: String,
    },
    /// An argument with a value that is not allowed.
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
