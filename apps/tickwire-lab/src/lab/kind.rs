//! Kinds of scenarios: what each brings, and the one place that knows all of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickwire_lab::Scenario;
use tickwire_lab::scenario::{Heading, Shape, Wrong, line_of};

use super::run::Run;
use tickwire_console::failure::Failure;

/// A kind of scenario.
pub(crate) trait Kind {
    /// The word in `kind = "..."`.
    const NAME: &'static str;
    /// The roles that `[cores]` may name.
    const ROLES: &'static [&'static str];
    /// The load shapes that make sense for it.
    const SHAPES: &'static [Shape];
    /// `[settings]`.
    type Settings: Serialize + DeserializeOwned + Default;

    /// Refuses values that make no sense beside each other, before anything is opened.
    fn check(scenario: &Scenario<Self::Settings>) -> Result<(), Wrong>;

    /// Measures: declares cases, hands repetitions and checks to `run`.
    fn run(scenario: &Scenario<Self::Settings>, run: &mut Run<'_>) -> Result<(), Failure>;
}

/// A scenario that is run once.
type Measured = dyn FnOnce(&mut Run<'_>) -> Result<(), Failure>;

/// A scenario whose kind is known and whose file was checked, ready to run.
pub(super) struct Ready {
    /// With every default filled in.
    pub(super) toml: String,
    /// Runs it.
    pub(super) run: Box<Measured>,
    /// What the runner itself needs of it.
    pub(super) section: tickwire_lab::scenario::RunSection,
}

/// The scenarios that come with the program.
pub(super) const BUILT_IN: &[&str] = &[
    include_str!("../../../../examples/lab/quadra.toml"),
    include_str!("../../../../examples/lab/selftest.toml"),
    include_str!("../../../../examples/lab/cep.toml"),
    include_str!("../../../../examples/lab/gati.toml"),
    include_str!("../../../../examples/lab/fix.toml"),
    include_str!("../../../../examples/lab/bts.toml"),
];

/// Reads a scenario of any kind. `file` names it in errors.
pub(super) fn read(
    file: &str,
    text: &str,
    full: bool,
    overrides: &[(String, String)],
) -> Result<Ready, Failure> {
    let heading = Heading::parse(text).map_err(|e| Failure::config(format!("{file}: {e}")))?;
    match heading.kind.as_str() {
        super::quadra::Quadra::NAME => prepare::<super::quadra::Quadra>(file, text, full, overrides),
        super::selftest::SelfTest::NAME => prepare::<super::selftest::SelfTest>(file, text, full, overrides),
        super::cep::Cep::NAME => prepare::<super::cep::Cep>(file, text, full, overrides),
        super::gati::Gati::NAME => prepare::<super::gati::Gati>(file, text, full, overrides),
        super::fix::Fix::NAME => prepare::<super::fix::Fix>(file, text, full, overrides),
        super::bts::Bts::NAME => prepare::<super::bts::Bts>(file, text, full, overrides),
        other => Err(Failure::config(format!(
            "{file}: line {}: there is no kind '{other}'; the kinds are quadra, selftest, cep, gati, fix, bts",
            line_of(text, "kind")
        ))),
    }
}

fn prepare<K: Kind + 'static>(
    file: &str,
    text: &str,
    full: bool,
    overrides: &[(String, String)],
) -> Result<Ready, Failure> {
    let scenario = scenario::<K>(file, text, full, overrides)?;
    Ok(Ready {
        toml: scenario.to_toml(),
        section: scenario.run.clone(),
        run: Box::new(move |run| K::run(&scenario, run)),
    })
}

/// Reads a scenario of a kind and checks it whole.
pub(super) fn scenario<K: Kind>(
    file: &str,
    text: &str,
    full: bool,
    overrides: &[(String, String)],
) -> Result<Scenario<K::Settings>, Failure> {
    let scenario: Scenario<K::Settings> =
        Scenario::parse(text, full, overrides).map_err(|e| Failure::config(format!("{file}: {e}")))?;
    check_common::<K>(&scenario)
        .and_then(|()| super::net::check(&scenario.run))
        .and_then(|()| K::check(&scenario))
        .map_err(|wrong| {
            let line = line_of(text, wrong.key);
            Failure::config(format!("{file}: line {line}: {}: {}", wrong.key, wrong.reason))
        })?;
    Ok(scenario)
}

fn check_common<K: Kind>(scenario: &Scenario<K::Settings>) -> Result<(), Wrong> {
    if let Some(role) = scenario
        .cores
        .keys()
        .find(|role| !K::ROLES.contains(&role.as_str()))
    {
        let reason = format!("there is no role '{role}'; the roles are {}", K::ROLES.join(", "));
        return Err(Wrong::new("cores", reason));
    }
    let available = tickwire_runtime::affinity::Cores::count().usable();
    if let Some((role, core)) = scenario.cores.iter().find(|(_, core)| !available.contains(core)) {
        let reason =
            format!("core {core} of '{role}' is not available to this process, which may use {available:?}");
        return Err(Wrong::new("cores", reason));
    }
    if !K::SHAPES.contains(&scenario.load.shape) {
        let reason = format!("a scenario of kind '{}' is not measured so", K::NAME);
        return Err(Wrong::new("load.shape", reason));
    }
    Ok(())
}
