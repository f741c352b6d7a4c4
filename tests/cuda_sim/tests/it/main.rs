//! The double behaves like a driver, and detects misuse that a driver does not.

mod captures;
mod contexts;
mod copies;
mod crashes;
mod graphs;
mod harness;
mod ipc;
mod kernels;
mod memory;
mod misuse;
mod pools;
mod races;
mod streams;
mod symbols;
