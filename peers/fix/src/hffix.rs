//! hffix, by the calls of `hffix.cpp`.

use crate::messages::Order;
use crate::{Run, Wire};

unsafe extern "C" {
    fn hffix_encode(orders: *const Order, count: u64, buffer: *mut u8, size: u64) -> u64;
    fn hffix_reports(bytes: *const u8, lens: *const u64, count: u64, sums: *mut u64);
    fn hffix_refreshes(bytes: *const u8, lens: *const u64, count: u64, sums: *mut u64);
}

/// Its BodyLength has six digits always, where ours has three: `bytes` is what ours come to.
pub fn encode(orders: &[Order], bytes: usize) -> Run<'_> {
    let mut buffer = vec![0; 512];
    Box::new(move || {
        let count = orders.len() as u64;
        // SAFETY: both point to memory of the lengths given, which lives through the call; `Order` is laid
        // out for C.
        let total = unsafe { hffix_encode(orders.as_ptr(), count, buffer.as_mut_ptr(), buffer.len() as u64) };
        assert_eq!(total, bytes as u64 + 3 * count);
        vec![bytes as u64]
    })
}

fn read(wire: &Wire, call: unsafe extern "C" fn(*const u8, *const u64, u64, *mut u64)) -> Run<'_> {
    Box::new(move || {
        let mut sums = vec![0; wire.lens.len()];
        // SAFETY: the lengths add up to the bytes, and there is a sum for each; all live through the call.
        unsafe {
            call(
                wire.bytes.as_ptr(),
                wire.lens.as_ptr(),
                sums.len() as u64,
                sums.as_mut_ptr(),
            )
        };
        sums
    })
}

pub fn reports(wire: &Wire) -> Run<'_> {
    read(wire, hffix_reports)
}

pub fn refreshes(wire: &Wire) -> Run<'_> {
    read(wire, hffix_refreshes)
}
