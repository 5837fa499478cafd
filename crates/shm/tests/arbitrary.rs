//! Arbitrary bytes as a region, and arbitrary words in a good one: the fuzz target, under proptest.

#[expect(unreachable_pub, reason = "the crate it is a target of exports it")]
#[path = "../../fuzzing/src/targets/shm.rs"]
mod target;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 2_000 }))]

    #[test]
    fn reading_ends_whatever_words_a_region_has(
        words in prop::collection::vec((any::<u16>(), prop_oneof![any::<u64>(), 0_u64..70, Just(u64::MAX)]), 0..200),
        around in prop_oneof![Just(0_u16), Just(512), Just(2_024), Just(2_200)],
        spread in 1_u16..400,
    ) {
        let mut bytes = vec![1];
        for (place, value) in words {
            bytes.extend((around + place % spread).to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        target::shared_region(&bytes);
    }

    #[test]
    fn reading_ends_whatever_bytes_there_are(mut damage in prop::collection::vec((0_usize..20_000, any::<u8>()), 0..40), end in 0_usize..20_000) {
        let mut bytes = vec![0];
        bytes.extend(target::region_bytes());
        damage.retain(|(place, _)| *place < bytes.len() - 1);
        for (place, value) in damage {
            bytes[1 + place] = value;
        }
        target::shared_region(&bytes);
        bytes.truncate(end.max(1));
        target::shared_region(&bytes);
    }
}
