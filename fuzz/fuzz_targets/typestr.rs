//! Type strings of the array interface: any text.
#![no_main]

use dlfield::testing::protocol::typestr;
use dlfield_fuzz::sound_interfaces::naive_typestr;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let decoded = typestr::decode(text);
    assert_eq!(decoded.as_ref().ok(), naive_typestr(text).as_ref(), "{text:?}");
    match &decoded {
        // The type's own text is read as the same type.
        Ok(dtype) => {
            let own = typestr::encode(*dtype).expect("the type has a text");
            assert_eq!(typestr::decode(own), Ok(*dtype));
            assert!(text.ends_with(&own[1..]), "{text:?} is read as {own}");
        }
        Err(error) => assert!(error.to_string().starts_with("typestr: ")),
    }
    let rest = text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text);
    let digits = rest.strip_prefix('V').filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let bytes = digits.filter(|digits| !digits.is_empty()).and_then(|digits| {
        digits.bytes().try_fold(0usize, |sum, digit| sum.checked_mul(10)?.checked_add(usize::from(digit - b'0')))
    });
    assert_eq!(typestr::void_size(text), bytes, "{text:?}");
});
