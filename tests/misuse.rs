//! Misuses of the library by a Rust extension do not compile, and the compiler says what a user needs to know: the messages are
//! the files `tests/misuse/*.stderr`, as of Rust 1.95. After a change of them `TRYBUILD=overwrite` writes the files anew.

#[test]
fn misuses_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
