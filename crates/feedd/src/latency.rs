//! The histograms of shared memory as latency files, one a feed.

use std::collections::BTreeMap;

use tickwire_market::{MessageType, Nanos};
use tickwire_shm::{Histogram, Reader, Word};

use super::config::LatencyOf;
use tickwire_control::latency_file::{ALL, HOOK, KERNEL, Latencies, LatencyFile, SUPER, WIRE};
use tickwire_venues::protocol::Protocol;

/// One file a feed, its channels added up; feeds without a latency yet are in it too.
pub(crate) fn files<W: Word>(
    reader: &Reader<'_, W>,
    latency_of: LatencyOf,
    written: Nanos,
) -> Vec<LatencyFile> {
    let what = match latency_of {
        LatencyOf::Packets => {
            "packet in memory to its last book visible in shared memory, for each of its books"
        }
        LatencyOf::Messages => "packet in memory to book visible in shared memory",
    };
    let mut by_feed: BTreeMap<u8, LatencyFile> = BTreeMap::new();
    for source in reader.sources() {
        let file = by_feed.entry(source.feed).or_insert_with(|| LatencyFile {
            feed: source.feed_name.clone(),
            remarks: vec![
                format!("{what}, nanoseconds; since the start of the daemon"),
                format!("protocol: {}", source.protocol),
                format!("started: {} ns since 1970", reader.generation().0),
                format!("written: {} ns since 1970", written.0),
            ],
            types: BTreeMap::new(),
        });
        let form = Protocol::ALL
            .iter()
            .find(|protocol| protocol.name() == source.protocol)
            .map(|protocol| protocol.type_form());
        let mut add = |name: String, histogram: Option<u32>| {
            let Some(histogram) = histogram.and_then(|index| reader.histogram(index)) else {
                return;
            };
            if histogram.count > 0 {
                file.types
                    .entry(name)
                    .or_default()
                    .merge(&latencies_of(&histogram));
            }
        };
        for kind in reader.kinds(source.number) {
            let name = match form {
                Some(form) => MessageType(kind.kind).written(form).to_string(),
                None => kind.kind.to_string(),
            };
            add(name, kind.latency);
        }
        add(ALL.into(), source.latency);
        add(SUPER.into(), source.super_latency);
        add(KERNEL.into(), source.kernel_latency);
        add(WIRE.into(), source.wire_latency);
        add(HOOK.into(), source.hook_latency);
    }
    by_feed.into_values().collect()
}

/// A histogram's ranges and sums.
fn latencies_of(histogram: &Histogram) -> Latencies {
    Latencies {
        ranges: histogram
            .buckets()
            .map(|(low, high, count)| ((low, high), count))
            .collect(),
        sum: histogram.sum,
        min: histogram.min,
        max: histogram.max,
        count: histogram.count,
    }
}
