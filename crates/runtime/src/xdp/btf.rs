//! Where the kernel says the numbers of its functions: BPF Type Format, Linux `Documentation/bpf/btf.rst`.

use std::path::Path;

/// The types of the kernel itself.
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
/// `struct btf_type`: name, information, size or type.
const TYPE: usize = 12;
/// The kind that is a function.
const FUNC: u32 = 12;

/// The number by which a program calls the kernel's function of this name; `None` where the kernel has none,
/// or does not say.
pub fn kernel_function(name: &str) -> Option<i32> {
    function(&std::fs::read(Path::new(VMLINUX)).ok()?, name)
}

/// The same in the bytes of a BTF file.
fn function(bytes: &[u8], wanted: &str) -> Option<i32> {
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    let magic = u16::from_ne_bytes(*bytes.first_chunk::<2>()?);
    if magic != 0xEB9F {
        return None;
    }
    let header = word(4)? as usize;
    let at = |offset: usize| header.checked_add(word(offset)? as usize);
    let (types, strings) = (at(8)?, at(16)?);
    let end = types.checked_add(word(12)? as usize)?;
    let name = |offset: u32| {
        let from = bytes.get(strings.checked_add(offset as usize)?..)?;
        from.split(|byte| *byte == 0).next()
    };
    let (mut at, mut id) = (types, 1_i32);
    while at < end {
        let info = word(at + 4)?;
        let (kind, count) = (info >> 24 & 0x1F, (info & 0xFFFF) as usize);
        if kind == FUNC && name(word(at)?)? == wanted.as_bytes() {
            return Some(id);
        }
        // What follows a type, by its kind.
        let behind = match kind {
            // INT, VAR, DECL_TAG: a word.
            1 | 14 | 17 => 4,
            // ARRAY.
            3 => 12,
            // STRUCT, UNION: members; DATASEC: variables; ENUM64: values.
            4 | 5 | 15 | 19 => 12 * count,
            // ENUM: values; FUNC_PROTO: parameters.
            6 | 13 => 8 * count,
            // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG.
            2 | 7..=12 | 16 | 18 => 0,
            _ => return None,
        };
        at = at.checked_add(TYPE + behind)?;
        id = id.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer, a structure with two members, an enumeration with one value, and a function.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0pair\0f\0wanted\0";
        let mut types: Vec<u32> = Vec::new();
        types.extend([1, 1 << 24, 4, 32]);
        types.extend([5, 4 << 24 | 2, 8, 10, 1, 0, 10, 1, 32]);
        types.extend([0, 6 << 24 | 1, 4, 10, 7]);
        types.extend([12, 12 << 24, 0]);
        let mut bytes = 0xEB9F_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let length = types.len() as u32 * 4;
        for word in [24, 0, length, length, strings.len() as u32]
            .into_iter()
            .chain(types)
        {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_function_is_found_by_its_name_among_other_kinds() {
        assert_eq!(function(&sample(), "wanted"), Some(4));
        // A structure's name is no function's.
        assert_eq!(
            (function(&sample(), "pair"), function(&sample(), "other")),
            (None, None)
        );
    }

    #[test]
    fn bytes_that_are_cut_short_or_changed_are_no_panic() {
        let whole = sample();
        for length in 0..whole.len() {
            let _ = function(&whole[..length], "wanted");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7F, 0xFF] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = function(&changed, "wanted");
            }
        }
    }
}
