//! A program without an operating system that calls every sans-I/O crate. It has no C library, no start files
//! and no standard library: if a crate needed a socket, a clock, a thread or a file, this would not link.
//! `cargo xtask bare` links it, and on Linux runs it: it leaves with 0 when the calls gave the right answers.
#![no_std]
#![no_main]
// The loops of memcpy and its kin must not be compiled into calls of themselves.
#![no_builtins]

extern crate alloc;

mod platform;
mod tour;

// Where the program starts; the stack is whatever the loader left, aligned here.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
core::arch::global_asm!(".globl _start", "_start:", "xor ebp, ebp", "and rsp, -16", "call {main}", "ud2", main = sym main);

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
core::arch::global_asm!(".globl _start", "_start:", "mov x29, xzr", "bl {main}", "brk #1", main = sym main);

extern "C" fn main() -> ! {
    platform::exit(if tour::every_crate() { 0 } else { 1 })
}
