//! tickwire
fn main() {}
