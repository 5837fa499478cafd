//! Runs of one scenario as one: what takes a day is measured a part at a time.

use crate::record::{Case, Probe, RunRecord};
use crate::table::Table;

/// What is told apart from run to run without making them runs of two machines.
const PASSING: &str = "load";

/// What makes two runs hard to compare: another machine, another configuration. A sentence each.
pub fn differences(a: &RunRecord, b: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in a.host.iter().filter(|(name, _)| name != PASSING) {
        let other = b.host.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        if let Some(other) = other.filter(|other| *other != value) {
            lines.push(format!(
                "{name} differs: {value} in the first run, {other} in the other"
            ));
        }
    }
    if a.scenario_toml != b.scenario_toml {
        lines.push("the configurations differ: see scenario.toml of both".into());
    }
    lines
}

impl RunRecord {
    /// Several runs of one scenario as one, in the order in which they began: cases of the same name have the
    /// repetitions of all, tables of the same columns the rows of all, and everything that had to hold is
    /// there. Machine, version and configuration are those of the first; what differs in the others is said
    /// in the notes and, as comments, in the configuration.
    ///
    /// # Errors
    /// There are fewer than two; they are of two scenarios; a case was measured with other parameters.
    pub fn join(mut parts: Vec<RunRecord>) -> Result<RunRecord, String> {
        parts.sort_by_key(|part| part.started_ns);
        let count = parts.len();
        let mut parts = parts.into_iter();
        let mut whole = parts
            .next()
            .filter(|_| count > 1)
            .ok_or("joining takes two runs at least")?;
        let first = RunRecord {
            host: whole.host.clone(),
            scenario_toml: whole.scenario_toml.clone(),
            version: whole.version.clone(),
            commit: whole.commit.clone(),
            ..RunRecord::default()
        };
        let began = whole.started.clone();
        whole
            .notes
            .insert(0, format!("{count} runs as one; the first began at {began}."));
        for (part, number) in parts.zip(2..) {
            if (&part.scenario, &part.kind) != (&whole.scenario, &whole.kind) {
                return Err(format!(
                    "a run of '{}' ({}) and one of '{}' ({}) are not of one scenario",
                    whole.scenario, whole.kind, part.scenario, part.kind
                ));
            }
            whole.note_part(&first, &part, number);
            whole.take(part)?;
        }
        Ok(whole)
    }

    /// What a reader must know of a part.
    fn note_part(&mut self, first: &RunRecord, part: &RunRecord, number: u32) {
        let mut differ = differences(first, part);
        if (&part.version, &part.commit) != (&first.version, &first.commit) {
            let commit = part.commit.as_deref().unwrap_or("not known");
            differ.push(format!("measured by {}, commit {commit}", part.version));
        }
        let differ: String = differ.iter().map(|line| format!(" {line}.")).collect();
        let note = format!("Run {number} began at {}.{differ}", part.started);
        self.notes.push(note);
        let said: Vec<&str> = first.scenario_toml.lines().collect();
        let own = part.scenario_toml.lines().filter(|line| !said.contains(line));
        let own: String = own.map(|line| format!("#   {line}\n")).collect();
        if !own.is_empty() {
            self.scenario_toml += &format!("\n# Run {number}, otherwise:\n{own}");
        }
    }

    fn take(&mut self, part: RunRecord) -> Result<(), String> {
        let later = part.started_ns.saturating_sub(self.started_ns);
        for mut case in part.cases {
            for repetition in &mut case.repetitions {
                repetition.started_ns += later;
            }
            match self.cases.iter_mut().find(|known| known.name == case.name) {
                Some(known) => known.take(case)?,
                None => self.cases.push(case),
            }
        }
        for table in part.tables {
            match self.tables.iter_mut().find(|known| known.is_like(&table)) {
                Some(known) => known.take(table),
                None => self.tables.push(table),
            }
        }
        self.command = format!("{}; {}", self.command, part.command);
        self.checks.extend(part.checks);
        add_new(&mut self.host_warnings, part.host_warnings);
        add_new(&mut self.facts, part.facts);
        add_new(&mut self.notes, part.notes);
        add_new(&mut self.published, part.published);
        self.probe = worse(core::mem::take(&mut self.probe), part.probe);
        Ok(())
    }
}

impl Case {
    /// The repetitions of the same case in another run.
    fn take(&mut self, other: Case) -> Result<(), String> {
        for ((name, value), (_, theirs)) in self.parameters.iter().zip(&other.parameters) {
            if value != theirs {
                return Err(format!(
                    "'{}' was measured with {name} {value} and with {theirs}: two cases of one name",
                    self.name
                ));
            }
        }
        let is_same =
            self.parameters == other.parameters && self.measures == other.measures && self.tags == other.tags;
        if !is_same {
            return Err(format!(
                "'{}' has other parameters, measures or tags in one of the runs",
                self.name
            ));
        }
        self.repetitions.extend(other.repetitions);
        Ok(())
    }
}

impl Table {
    fn take(&mut self, other: Table) {
        for row in other.rows() {
            if !self.rows().contains(row) {
                self.push(row.clone());
            }
        }
    }
}

/// Adds what is not there yet.
fn add_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// The clock of the run with the larger error, and the largest drift of both.
fn worse(a: Probe, b: Probe) -> Probe {
    let drift_ppb = a.drift_ppb.max(b.drift_ppb);
    let warning = a.warning.clone().or_else(|| b.warning.clone());
    let worse = if b.error_ns(0) > a.error_ns(0) { b } else { a };
    Probe {
        drift_ppb,
        warning,
        ..worse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Check, Measure};

    /// A run with one case of one repetition: so many samples of a value.
    fn run(started_s: u64, case: &str, value: u64, count: u64) -> RunRecord {
        let mut case = Case::new(case, Measure::new("RTT/2", "Half.")).parameter("rate", "100");
        let mut recorder = case.recorder(64);
        (0..count).for_each(|i| recorder.record(i * 1_000, &[value], &[]));
        let mut repetition = recorder.finish([("sent", count)]);
        repetition.started_ns = 7;
        case.repetitions.push(repetition);
        let row = [case.name.clone(), value.to_string()];
        RunRecord {
            format: crate::folder::FORMAT,
            scenario: "x".into(),
            kind: "test".into(),
            started: format!("at {started_s}"),
            started_ns: started_s * 1_000_000_000,
            command: format!("tickwire {started_s}"),
            scenario_toml: format!("name = \"x\"\nvalue = {value}\n"),
            host: vec![
                ("cpu".into(), "one".into()),
                ("load".into(), started_s.to_string()),
            ],
            notes: vec!["said by all".into()],
            checks: vec![Check {
                name: format!("c{started_s}"),
                passed: started_s != 2,
                found: "f".into(),
            }],
            tables: vec![Table::new("values", &["", "value"]).row(row)],
            cases: vec![case],
            ..RunRecord::default()
        }
    }

    #[test]
    fn parts_become_one_run_in_the_order_they_began() {
        let parts = vec![run(3, "b", 30, 5), run(2, "a", 20, 4), run(1, "a", 10, 3)];
        let whole = RunRecord::join(parts).expect("of one scenario");
        let names: Vec<&str> = whole.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let a = &whole.cases[0];
        let began: Vec<u64> = a.repetitions.iter().map(|r| r.started_ns).collect();
        assert_eq!(began, [7, 1_000_000_007]);
        let h = a.histogram(0);
        assert_eq!((h.count(), h.summary().min, h.summary().max), (7, 10, 20));
        assert_eq!(whole.cases[1].repetitions[0].started_ns, 2_000_000_007);
        assert_eq!(whole.command, "tickwire 1; tickwire 2; tickwire 3");
        assert_eq!(whole.tables.len(), 1);
        assert_eq!(
            whole.tables[0].rows(),
            [["a", "10"], ["a", "20"], ["b", "30"]].map(|row| row.map(String::from).to_vec())
        );
        let failed: Vec<&str> = whole.failures().iter().map(|c| c.name.as_str()).collect();
        assert_eq!((whole.checks.len(), failed), (3, vec!["c2"]));
        assert_eq!(
            whole.notes,
            [
                "3 runs as one; the first began at at 1.",
                "said by all",
                "Run 2 began at at 2. the configurations differ: see scenario.toml of both.",
                "Run 3 began at at 3. the configurations differ: see scenario.toml of both.",
            ]
        );
        assert!(
            whole
                .scenario_toml
                .ends_with("# Run 3, otherwise:\n#   value = 30\n")
        );

        // As any other in its folder.
        let files: std::collections::BTreeMap<String, Vec<u8>> = whole.files().into_iter().collect();
        let again = RunRecord::from_files(|path| files.get(path).cloned().ok_or_else(|| path.into()));
        assert_eq!(again.expect("whole files").cases[0].histogram(0).count(), 7);
    }

    #[test]
    fn what_does_not_belong_together_is_refused_and_another_machine_is_said() {
        let refused = |parts| RunRecord::join(parts).expect_err("refused");
        assert!(refused(Vec::new()).contains("two runs"));
        assert!(refused(vec![run(1, "a", 1, 1)]).contains("two runs"));
        let mut other = run(2, "a", 1, 1);
        other.scenario = "y".into();
        assert!(refused(vec![run(1, "a", 1, 1), other]).contains("not of one scenario"));
        let mut other = run(2, "a", 1, 1);
        other.cases[0].parameters[0].1 = "200".into();
        let said = refused(vec![run(1, "a", 1, 1), other]);
        assert!(
            said.contains("'a' was measured with rate 100 and with 200"),
            "{said}"
        );
        let mut other = run(2, "a", 1, 1);
        other.cases[0].tags.push("size".into());
        assert!(refused(vec![run(1, "a", 1, 1), other]).contains("other parameters, measures or tags"));

        let mut other = run(2, "a", 1, 1);
        other.host[0].1 = "two".into();
        other.commit = Some("abc".into());
        let whole = RunRecord::join(vec![run(1, "a", 1, 1), other]).expect("joined");
        let note = &whole.notes[2];
        assert!(
            note.contains("cpu differs: one in the first run, two in the other."),
            "{note}"
        );
        assert!(note.contains("commit abc") && !note.contains("load"), "{note}");
    }
}
