//! Licences of every dependency against the allow list in `deny.toml`. Works offline; when cargo-deny is
//! installed, it runs too and adds sources, bans and (with its database at hand) advisories.

use crate::run::{Context, Outcome, cargo, root};
use crate::source::read;
use crate::supply;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The whole step.
pub(crate) fn check(ctx: &Context) -> Outcome {
    let both = findings().and_then(|licences| Ok((licences, supply::findings()?)));
    let mut outcome = match both {
        Ok((licences, packages)) => Outcome::of_rules(
            &[("licence", licences), ("package", packages)],
            "cargo xtask licences",
        ),
        Err(why) => Outcome {
            failed: 1,
            notes: vec![why],
            again: "cargo xtask licences".into(),
            ..Outcome::default()
        },
    };
    if !is_installed() {
        outcome
            .notes
            .push("advisories not checked: cargo-deny is not installed".into());
        return outcome;
    }
    let deny = ctx.check(cargo().args(["deny", "--all-features", "check", "licenses", "bans", "sources"]));
    outcome.passed += deny.passed;
    outcome.failed += deny.failed;
    outcome.notes.extend(deny.notes);
    if deny.failed > 0 {
        outcome.again = deny.again;
    }
    // Without a network there is no fresh database: that is said, and fails nothing.
    let advisories = ctx.check(cargo().args(["deny", "check", "advisories"]));
    outcome.passed += advisories.passed;
    outcome.notes.extend(advisories.notes);
    outcome
}

fn is_installed() -> bool {
    let mut probe = Command::new("cargo-deny");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn findings() -> Result<Vec<String>, String> {
    let allowed = allowed()?;
    let Value::Array(packages) = supply::metadata()?["packages"].take() else {
        return Err("cargo metadata lists no packages".into());
    };
    let mut findings = Vec::new();
    for package in &packages {
        let (name, version) = (
            package["name"].as_str().unwrap_or("?"),
            package["version"].as_str().unwrap_or("?"),
        );
        match package["license"].as_str() {
            Some(expression) if permits(expression, &allowed) => {}
            Some(expression) => findings.push(format!(
                "{name} {version}: {expression} is not allowed by deny.toml"
            )),
            None => findings.push(format!("{name} {version}: names no licence")),
        }
    }
    Ok(findings)
}

fn allowed() -> Result<Vec<String>, String> {
    let table: toml::Table = read(&root().join("deny.toml"))
        .parse()
        .map_err(|error| format!("deny.toml: {error}"))?;
    let list = table
        .get("licenses")
        .and_then(|l| l.get("allow"))
        .and_then(toml::Value::as_array);
    let list = list.ok_or("deny.toml: [licenses] allow = [...] is missing")?;
    Ok(list
        .iter()
        .filter_map(toml::Value::as_str)
        .map(str::to_owned)
        .collect())
}

/// Whether an SPDX expression can be met with allowed licences only. `AND` binds tighter than `OR`; the old
/// `/` means `OR`.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = all_of(tokens, allowed);
    while let ["OR", rest @ ..] = *tokens {
        *tokens = rest;
        met |= all_of(tokens, allowed);
    }
    met
}

fn all_of(tokens: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = one(tokens, allowed);
    while let ["AND", rest @ ..] = *tokens {
        *tokens = rest;
        met &= one(tokens, allowed);
    }
    met
}

fn one(tokens: &mut &[&str], allowed: &[String]) -> bool {
    match *tokens {
        ["(", rest @ ..] => {
            *tokens = rest;
            let met = any_of(tokens, allowed);
            if let [")", rest @ ..] = *tokens {
                *tokens = rest;
            }
            met
        }
        [id, "WITH", exception, rest @ ..] => {
            *tokens = rest;
            allowed.contains(&format!("{id} WITH {exception}"))
        }
        [id, rest @ ..] => {
            *tokens = rest;
            allowed.iter().any(|a| a == id)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_by_allowed_licences_only() {
        let allowed = [
            "MIT".to_owned(),
            "Apache-2.0".to_owned(),
            "Unicode-3.0".to_owned(),
        ];
        assert!(permits("MIT OR GPL-3.0", &allowed));
        assert!(permits("Unlicense/MIT", &allowed));
        assert!(permits("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
        assert!(!permits("MIT AND GPL-3.0", &allowed));
        assert!(!permits("Apache-2.0 WITH LLVM-exception", &allowed));
        assert!(!permits("", &allowed));
    }
}
