//! The result codes of the driver's functions.

use std::ffi::CStr;

/// A code other than success, numbered as in `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure(pub i32);

pub type Outcome<T = ()> = Result<T, Failure>;

macro_rules! codes {
    ($($value:literal $name:ident $text:literal)*) => {
        impl Failure {
            $(pub const $name: Failure = Failure($value);)*
        }

        /// Returns the name and the text of a code.
        pub fn describe(code: i32) -> Option<(&'static CStr, &'static CStr)> {
            let (name, text) = match code {
                0 => ("CUDA_SUCCESS\0", "no error\0"),
                $($value => (concat!("CUDA_ERROR_", stringify!($name), "\0"), concat!($text, "\0")),)*
                _ => return None,
            };
            Some((CStr::from_bytes_with_nul(name.as_bytes()).ok()?, CStr::from_bytes_with_nul(text.as_bytes()).ok()?))
        }
    };
}

codes! {
    1 INVALID_VALUE "invalid argument"
    2 OUT_OF_MEMORY "out of memory"
    3 NOT_INITIALIZED "initialization error"
    100 NO_DEVICE "no CUDA-capable device is detected"
    101 INVALID_DEVICE "invalid device ordinal"
    200 INVALID_IMAGE "device kernel image is invalid"
    201 INVALID_CONTEXT "invalid device context"
    205 MAP_FAILED "mapping of buffer object failed"
    400 INVALID_HANDLE "invalid resource handle"
    401 ILLEGAL_STATE "the operation cannot be performed in the present state"
    500 NOT_FOUND "named symbol not found"
    600 NOT_READY "device not ready"
    700 ILLEGAL_ADDRESS "an illegal memory access was encountered"
    704 PEER_ACCESS_ALREADY_ENABLED "peer access is already enabled"
    705 PEER_ACCESS_NOT_ENABLED "peer access has not been enabled"
    709 CONTEXT_IS_DESTROYED "context is destroyed"
    712 HOST_MEMORY_ALREADY_REGISTERED "part or all of the requested memory range is already mapped"
    713 HOST_MEMORY_NOT_REGISTERED "pointer does not correspond to a registered memory region"
    716 MISALIGNED_ADDRESS "misaligned address"
    800 NOT_PERMITTED "operation not permitted"
    801 NOT_SUPPORTED "operation not supported"
    900 STREAM_CAPTURE_UNSUPPORTED "operation not permitted when stream is capturing"
    901 STREAM_CAPTURE_INVALIDATED "operation failed due to a previous error during capture"
    902 STREAM_CAPTURE_MERGE "operation would result in a merge of separate capture sequences"
    903 STREAM_CAPTURE_UNMATCHED "capture was not ended in the same stream as it began"
    904 STREAM_CAPTURE_UNJOINED "capturing stream has unjoined work"
    905 STREAM_CAPTURE_ISOLATION "dependency created on uncaptured work in another stream"
    906 STREAM_CAPTURE_IMPLICIT "operation would make the legacy stream depend on a capturing blocking stream"
    907 CAPTURED_EVENT "operation not permitted on an event last recorded in a capturing stream"
    908 STREAM_CAPTURE_WRONG_THREAD "attempt to terminate a thread-local capture sequence from another thread"
    999 UNKNOWN "unknown error"
}
