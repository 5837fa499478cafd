//! Every target in the ordinary tests, a little; `cargo xtask fuzz` looks longer.

use tickwire_fuzzing::{Budget, TARGETS, crash, find, run};

#[test]
fn every_target_holds_for_a_few_inputs_and_the_canary_is_caught() {
    for target in TARGETS {
        let inputs = if target.must_fail { 20_000 } else { 1_000 };
        let report = run(target, 1, Budget::Inputs(inputs));
        assert_eq!(
            report.crash.is_some(),
            target.must_fail,
            "{}: {:?}; cargo xtask fuzz {0} --seed 1",
            target.name,
            report.crash
        );
    }
}

#[test]
fn the_same_seed_finds_the_same_failure_made_small() {
    let canary = find("canary").expect("the canary is registered");
    let find_once = || run(canary, 7, Budget::Inputs(20_000));
    let (first, second) = (find_once(), find_once());
    let found = first.crash.expect("the canary fails");
    assert_eq!(first.inputs, second.inputs);
    assert_eq!(found.input, second.crash.expect("the canary fails").input);
    assert_eq!(found.input.len(), 2, "made as small as it can be: {found:?}");
    assert!(crash(canary, &found.input).is_some());
}

#[test]
fn target_names_are_unique() {
    for (at, target) in TARGETS.iter().enumerate() {
        assert!(
            TARGETS[..at].iter().all(|other| other.name != target.name),
            "{}",
            target.name
        );
    }
}
