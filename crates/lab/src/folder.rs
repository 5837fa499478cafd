//! A run as the files of its results folder, and back. Nothing is opened here: names and contents go out,
//! contents come in.
//!
//! | file | what |
//! |---|---|
//! | `manifest.json` | everything but histograms and samples: host, command, checks, cases with a summary line for each measure |
//! | `scenario.toml` | the scenario with every default filled in |
//! | `histograms/NN-case.hlog` | HdrHistogram log, V2 deflate, nanoseconds: a line for each repetition and measure, the measure as its tag |
//! | `samples/NN-case.csv.gz` | `repetition,at_ns`, the measures in nanoseconds, the tags; an empty cell is a value that there was not |
//! | `report.txt`, `report.md`, `report.html` | the report |

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};

use crate::record::{Case, MISSING, RunRecord, Samples};
use crate::{Packed, report_of};

/// Version of the folder's format: a reader refuses any other.
pub const FORMAT: u32 = 1;

/// The file that makes a folder a results folder.
pub const MANIFEST: &str = "manifest.json";

impl RunRecord {
    /// Every file: its path in the folder and its contents.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let manifest = serde_json::to_string_pretty(self).expect("names are strings and numbers are finite");
        let report = report_of(self);
        let mut files = vec![
            (MANIFEST.to_owned(), manifest.into_bytes()),
            (
                "scenario.toml".to_owned(),
                self.scenario_toml.clone().into_bytes(),
            ),
            ("report.txt".to_owned(), report.to_text(crate::WHOLE).into_bytes()),
            ("report.md".to_owned(), report.to_markdown().into_bytes()),
            ("report.html".to_owned(), report.to_html().into_bytes()),
        ];
        for (i, case) in self.cases.iter().enumerate() {
            files.push((histogram_file(i, case), self.histogram_log(case)));
            files.push((sample_file(i, case), samples_csv(case)));
        }
        files
    }

    /// Reads a run back; `file` gives the contents of a path in the folder, or says why it cannot.
    ///
    /// # Errors
    /// Which file is missing, of another format or damaged, and how.
    pub fn from_files(mut file: impl FnMut(&str) -> Result<Vec<u8>, String>) -> Result<RunRecord, String> {
        let manifest = file(MANIFEST)?;
        let mut record: RunRecord =
            serde_json::from_slice(&manifest).map_err(|e| format!("{MANIFEST}: {e}"))?;
        if record.format != FORMAT {
            return Err(format!(
                "{MANIFEST}: format {} where this program reads {FORMAT}",
                record.format
            ));
        }
        record.scenario_toml = String::from_utf8_lossy(&file("scenario.toml")?).into_owned();
        for (i, case) in record.cases.iter_mut().enumerate() {
            let path = histogram_file(i, case);
            read_histogram_log(&file(&path)?, case).map_err(|e| format!("{path}: {e}"))?;
            let path = sample_file(i, case);
            read_samples(&file(&path)?, case).map_err(|e| format!("{path}: {e}"))?;
        }
        Ok(record)
    }

    fn histogram_log(&self, case: &Case) -> Vec<u8> {
        let mut out = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let start = UNIX_EPOCH + Duration::from_nanos(self.started_ns);
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment(&format!(
                "{} {}: {}, nanoseconds",
                self.kind, self.scenario, case.name
            ))
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut out, &mut serializer)
            .expect("memory takes all");
        for repetition in &case.repetitions {
            let (at, lasted) = (repetition.started_ns, repetition.lasted_ns);
            for (measure, packed) in case.measures.iter().zip(&repetition.histograms) {
                let tag = slug(&measure.name);
                log.write_histogram(
                    packed.unpack().counts(),
                    Duration::from_nanos(at),
                    Duration::from_nanos(lasted),
                    Tag::new(&tag),
                )
                .expect("memory takes all, and counts fit");
            }
        }
        drop(log);
        out
    }
}

fn read_histogram_log(log: &[u8], case: &mut Case) -> Result<(), String> {
    let intervals = IntervalLogIterator::new(log).filter_map(|entry| match entry {
        Ok(LogEntry::Interval(interval)) => Some(Ok(interval.encoded_histogram())),
        Ok(_) => None,
        Err(e) => Some(Err(format!("no histogram log: {e:?}"))),
    });
    let mut encoded = intervals.collect::<Result<Vec<&str>, String>>()?.into_iter();
    for repetition in &mut case.repetitions {
        if repetition.summaries.len() != case.measures.len() {
            return Err("the manifest has another number of measures for a repetition".to_owned());
        }
        for summary in &repetition.summaries {
            let text = encoded
                .next()
                .ok_or("fewer histograms than repetitions and measures")?;
            let v2 = STANDARD.decode(text).map_err(|e| e.to_string())?;
            repetition
                .histograms
                .push(Packed::from_v2(v2, summary.min, summary.max)?);
        }
    }
    match encoded.next() {
        None => Ok(()),
        Some(_) => Err("more histograms than repetitions and measures".to_owned()),
    }
}

fn samples_csv(case: &Case) -> Vec<u8> {
    let mut text = String::from("repetition,at_ns");
    let measures = case.measures.iter().map(|m| format!(",{}_ns", slug(&m.name)));
    let tags = case.tags.iter().map(|tag| format!(",{}", slug(tag)));
    measures.chain(tags).for_each(|column| text.push_str(&column));
    text.push('\n');
    for (i, repetition) in case.repetitions.iter().enumerate() {
        for row in repetition.samples.rows() {
            write!(text, "{i}").expect("writing to a string");
            for &value in row {
                match value {
                    MISSING => text.push(','),
                    value => write!(text, ",{value}").expect("writing to a string"),
                }
            }
            text.push('\n');
        }
    }
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(text.as_bytes()).expect("memory takes all");
    gz.finish().expect("memory takes all")
}

fn read_samples(gz: &[u8], case: &mut Case) -> Result<(), String> {
    let mut text = String::new();
    MultiGzDecoder::new(gz)
        .read_to_string(&mut text)
        .map_err(|e| e.to_string())?;
    let width = 1 + case.measures.len() + case.tags.len();
    let mut rows: Vec<Vec<u64>> = vec![Vec::new(); case.repetitions.len()];
    for (i, line) in text.lines().enumerate().skip(1) {
        let wrong = |why: &str| format!("line {}: {why}", i + 1);
        let (repetition, cells) = line.split_once(',').ok_or_else(|| wrong("no columns"))?;
        let repetition: usize = repetition.parse().map_err(|_| wrong("no repetition"))?;
        let row = rows
            .get_mut(repetition)
            .ok_or_else(|| wrong("a repetition that the manifest does not have"))?;
        let before = row.len();
        for cell in cells.split(',') {
            row.push(match cell {
                "" => MISSING,
                cell => cell.parse().map_err(|_| wrong("a cell that is no number"))?,
            });
        }
        if row.len() - before != width {
            return Err(wrong(&format!("{} columns, {width} wanted", row.len() - before)));
        }
    }
    for (repetition, rows) in case.repetitions.iter_mut().zip(rows) {
        let kept = (rows.len() / width).max(1) as u64;
        let taken = repetition.summaries.first().map_or(kept, |s| s.count.max(kept));
        let every = taken.div_ceil(kept).next_power_of_two();
        let mut samples = Samples::default();
        rows.chunks_exact(width)
            .for_each(|row| samples.restore(row, every));
        repetition.samples = samples;
    }
    Ok(())
}

fn histogram_file(index: usize, case: &Case) -> String {
    format!("histograms/{:02}-{}.hlog", index + 1, slug(&case.name))
}

fn sample_file(index: usize, case: &Case) -> String {
    format!("samples/{:02}-{}.csv.gz", index + 1, slug(&case.name))
}

/// Letters and digits as they are, everything between them one `-`.
fn slug(text: &str) -> String {
    let plain = text.replace('µ', "u");
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::{Check, Measure};

    fn record() -> RunRecord {
        let case = Case::new("multicast, epoll, 500 µs", Measure::new("RTT/2", "Half."))
            .measure(Measure::new("in the kernel", "Stamps."))
            .tag("size");
        let mut case = case;
        for base in [100, 900] {
            let mut recorder = case.recorder(64);
            for i in 0..50u64 {
                let stamp = if i % 7 == 0 { MISSING } else { i };
                recorder.record(i * 1_000, &[base + i * i * 31, stamp], &[64 + i]);
            }
            let mut repetition = recorder.finish([("sent", 50), ("lost", 0)]);
            repetition.shared_memory_ns = Some((55, 60));
            repetition.stolen_ppm = Some(4_200);
            repetition.started_ns = base * 1_000_000;
            case.repetitions.push(repetition);
        }
        RunRecord {
            format: FORMAT,
            scenario: "x".to_owned(),
            kind: "test".to_owned(),
            started_ns: 1_700_000_000_000_000_000,
            scenario_toml: "name = \"x\"\n".to_owned(),
            checks: vec![Check {
                name: "c".to_owned(),
                passed: true,
                found: "f".to_owned(),
            }],
            cases: vec![case],
            ..RunRecord::default()
        }
    }

    type Files = BTreeMap<String, Vec<u8>>;

    fn folder() -> Files {
        record().files().into_iter().collect()
    }

    fn read(files: &Files) -> Result<RunRecord, String> {
        RunRecord::from_files(|path| files.get(path).cloned().ok_or(format!("{path}: not there")))
    }

    #[test]
    fn a_run_comes_back_from_its_files_with_histograms_and_samples() {
        let (files, record) = (folder(), record());
        let back = read(&files).expect("reads");
        assert_eq!(back.cases[0].histogram(0), record.cases[0].histogram(0));
        assert_eq!(back.cases[0].series(), record.cases[0].series());
        assert_eq!(back.cases[0].measures, record.cases[0].measures);
        assert_eq!(back.scenario_toml, record.scenario_toml);
        assert_eq!(back.cases[0].repetitions[1].shared_memory_ns, Some((55, 60)));
        assert_eq!(back.cases[0].repetitions[1].stolen_ppm, Some(4_200));
        let names: Vec<&String> = files.keys().collect();
        assert!(
            names
                .iter()
                .any(|n| *n == "histograms/01-multicast-epoll-500-us.hlog"),
            "{names:?}"
        );
    }

    #[test]
    fn the_log_is_hdrhistograms_own_with_a_tag_for_each_measure() {
        let files = folder();
        let log = &files["histograms/01-multicast-epoll-500-us.hlog"];
        let text = String::from_utf8(log.clone()).expect("text");
        assert!(
            text.starts_with("#test x: multicast, epoll, 500 µs, nanoseconds\n#[StartTime: "),
            "{text}"
        );
        let tags: Vec<String> = IntervalLogIterator::new(log)
            .filter_map(|entry| match entry.expect("an entry") {
                LogEntry::Interval(h) => h.tag().map(|tag| tag.as_str().to_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(tags, ["rtt-2", "in-the-kernel", "rtt-2", "in-the-kernel"]);
    }

    #[test]
    fn a_damaged_folder_is_refused_with_the_file_and_the_reason() {
        let damaged = |change: &dyn Fn(&mut Files)| {
            let mut files = folder();
            change(&mut files);
            read(&files).expect_err("refused")
        };
        let hlog = "histograms/01-multicast-epoll-500-us.hlog";
        let csv = "samples/01-multicast-epoll-500-us.csv.gz";
        let error = damaged(&|files| drop(files.remove(hlog)));
        assert!(error.contains(hlog), "{error}");
        let error = damaged(&|files| files.get_mut(hlog).expect("there").truncate(300));
        assert!(error.starts_with(hlog), "{error}");
        let error = damaged(&|files| files.get_mut(csv).expect("there").truncate(40));
        assert!(error.starts_with(csv), "{error}");
        let error = damaged(&|files| {
            let text = String::from_utf8(files[MANIFEST].clone()).expect("text");
            files.insert(
                MANIFEST.to_owned(),
                text.replace("\"format\": 1", "\"format\": 9").into_bytes(),
            );
        });
        assert!(error.contains("format 9"), "{error}");
        let error = damaged(&|files| files.get_mut(MANIFEST).expect("there").truncate(30));
        assert!(error.starts_with(MANIFEST), "{error}");
    }
}
