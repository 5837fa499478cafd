//! The published set-ups of the host, applied one after the other and taken back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tickwire_console::failure::Failure;

use super::{cannot_start, tickwire};
use crate::lab::run::Run;

/// What was applied to the host, to be taken back whatever happens.
pub(super) struct Journal {
    pub(super) files: Vec<PathBuf>,
    /// Something is to be applied at all.
    pub(super) is_wanted: bool,
    /// Of the machine.
    pub(super) root: PathBuf,
}

impl Journal {
    /// Applies a step; whether anything was changed, so that measuring again makes sense. What was not is
    /// noted.
    pub(super) fn apply(
        &mut self,
        run: &mut Run<'_>,
        setup: &str,
        settings: &[&str],
        folder: &Path,
    ) -> Result<bool, Failure> {
        let states = host_check(&self.root)?;
        let mut can = Vec::new();
        for id in settings {
            let Some((verdict, value, is_tunable)) = states.get(*id) else {
                run.note(format!("Set-up '{setup}': {id} is not known here."));
                continue;
            };
            match (verdict.as_str(), is_tunable) {
                ("good", _) => run.note(format!("Set-up '{setup}': {id} is so already ({value}).")),
                ("unseen", _) => run.note(format!("Set-up '{setup}': {id} is not available here: {value}.")),
                (_, false) => run.note(format!(
                    "Set-up '{setup}': {id} cannot be changed while the machine runs ({value})."
                )),
                (_, true) if !self.is_wanted => run.note(format!(
                    "Set-up '{setup}': {id} ({value}) was left alone: settings.tune is off."
                )),
                _ => can.push(*id),
            }
        }
        if can.is_empty() {
            return Ok(false);
        }
        let journal = folder.join(format!("host-journal-{}", self.files.len()));
        let mut command = tickwire()?;
        command.args(["host", "tune", "--journal"]).arg(&journal);
        command.arg("--root").arg(&self.root);
        can.iter().for_each(|id| {
            command.args(["--only", id]);
        });
        let output = command
            .output()
            .map_err(|e| cannot_start("tickwire host tune", &e))?;
        self.files.push(journal);
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        run.note(format!(
            "Set-up '{setup}': `tickwire host tune` for {}: {}{}.",
            can.join(", "),
            output.status,
            if said.is_empty() {
                String::new()
            } else {
                format!(": {said}")
            }
        ));
        Ok(output.status.success())
    }

    pub(super) fn undo(&mut self, run: &mut Run<'_>) -> Result<(), Failure> {
        while let Some(journal) = self.files.pop() {
            let mut command = tickwire()?;
            command.args(["host", "undo", "--journal"]).arg(&journal);
            command.arg("--root").arg(&self.root);
            let output = command
                .output()
                .map_err(|e| cannot_start("tickwire host undo", &e))?;
            run.check(
                format!("host settings taken back ({})", journal.display()),
                output.status.success(),
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            );
        }
        Ok(())
    }
}

impl Drop for Journal {
    /// A run that ends early leaves the machine as it was, too.
    fn drop(&mut self) {
        for journal in self.files.drain(..).rev() {
            if let Ok(mut command) = tickwire() {
                command.args(["host", "undo", "--journal"]).arg(journal);
                let _ = command.arg("--root").arg(&self.root).status();
            }
        }
    }
}

/// `tickwire host check`: verdict, value and whether it is changed by `tune`, by id.
fn host_check(root: &Path) -> Result<BTreeMap<String, (String, String, bool)>, Failure> {
    let output = tickwire()?
        .args(["host", "check", "--json", "--jitter", "0", "--root"])
        .arg(root)
        .output()
        .map_err(|e| cannot_start("tickwire host check", &e))?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure::system(format!("`tickwire host check` does not answer in JSON: {e}")))?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let checks = json["checks"].as_array().cloned().unwrap_or_default();
    Ok(checks
        .iter()
        .map(|check| {
            let is_tunable = check["fix"]["by"] == "tune";
            (
                text(&check["id"]),
                (text(&check["verdict"]), text(&check["value"]), is_tunable),
            )
        })
        .collect())
}
