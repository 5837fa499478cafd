//! What is recorded when the disk is slow, full, or well: what was received is in the files, the rest is
//! counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwire_market::Nanos;
use tickwire_record::{Disk, FileSummary, Group, Now, Plan, Recorded, record};
use tickwire_runtime::capture::{CaptureReader, udp};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::udp::MulticastSender;

/// A file in memory, and what was said of it when it was done.
type File = (Vec<u8>, Option<FileSummary>);

/// Files in memory, and a switch by which nothing more is taken.
#[derive(Clone, Default)]
struct Memory {
    files: Arc<Mutex<Vec<File>>>,
    is_full: Arc<AtomicBool>,
}

impl Disk for Memory {
    type File = usize;

    fn create(&mut self, _: Nanos) -> io::Result<usize> {
        let mut files = self.files.lock().expect("whole");
        files.push((Vec::new(), None));
        Ok(files.len() - 1)
    }

    fn write(&mut self, file: &mut usize, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut files = self.files.lock().expect("whole");
        let to = &mut files[*file].0;
        to.truncate(at as usize);
        assert_eq!(to.len() as u64, at, "there is no hole");
        if self.is_full.load(Ordering::Acquire) {
            // As a disk does that has room for half of it.
            to.extend(&bytes[..bytes.len() / 2]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        to.extend(bytes);
        Ok(())
    }

    fn finished(&mut self, file: usize, summary: FileSummary) {
        self.files.lock().expect("whole")[file].1 = Some(summary);
    }
}

/// Groups of this process and test.
fn groups(test: u16, count: u8) -> Vec<Group> {
    let [_, _, c, d] = std::process::id().to_be_bytes();
    let lo = Interface::loopback().expect("loopback");
    let address = |n| SocketAddrV4::new(Ipv4Addr::new(239, 81 + n, c, d), 26_500 + test);
    (0..count).map(|n| Group::new(address(n), lo.clone())).collect()
}

fn senders(groups: &[Group]) -> Vec<MulticastSender> {
    let open = |group: &Group| MulticastSender::open(group.address, &group.interface, 1).expect("a sender");
    groups.iter().map(open).collect()
}

/// Every packet of a file: time, interface, number in its payload.
fn packets(bytes: &[u8]) -> Vec<(u64, u32, u32)> {
    let mut reader =
        CaptureReader::from_reader("memory", io::Cursor::new(bytes.to_vec())).expect("a capture");
    let mut all = Vec::new();
    while let Some(packet) = reader.next_packet().expect("whole") {
        let payload = udp(packet.link, packet.bytes).expect("a datagram").payload;
        let number = u32::from_le_bytes(payload[..4].try_into().expect("four bytes"));
        all.push((packet.time.expect("a time").0, packet.interface, number));
    }
    all
}

fn send(sender: &MulticastSender, number: u32, len: usize) {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(len, 7);
    sender.send(&payload).expect("sent");
}

/// Records while `drive` has steps left, each told how it goes.
fn run(plan: Plan, disk: &Memory, mut drive: impl FnMut(Now) -> bool) -> Recorded {
    let stop = StopFlag::new();
    let begun = Instant::now();
    let end = stop.clone();
    let mut watch = |now: Now| {
        assert!(begun.elapsed() < Duration::from_secs(120), "{now:?}");
        if !drive(now) {
            end.stop();
        }
    };
    record(plan, disk.clone(), &stop, &mut watch).expect("recorded").0
}

#[test]
fn two_groups_are_in_files_each_in_order_of_time_none_longer_than_it_may_be() {
    let groups = groups(1, 2);
    let senders = senders(&groups);
    let plan = Plan {
        rotate_bytes: 2 << 20,
        ..Plan::new(groups)
    };
    let disk = Memory::default();
    let mut sent = 0;
    // A few at a time: the receive buffer that every system grants has room for them.
    let recorded = run(plan, &disk, |now| {
        if sent == 6_000 {
            return now.packets < 6_000;
        }
        if now.packets == u64::from(sent) {
            for _ in 0..60 {
                send(&senders[sent as usize % 2], sent, 1_000);
                sent += 1;
            }
        }
        true
    });
    assert_eq!((recorded.packets(), recorded.lost()), (6_000, 0));
    let files = disk.files.lock().expect("whole");
    assert_eq!((files.len() as u64, files.len()), (recorded.files, 4));
    let mut all = Vec::new();
    for (bytes, summary) in files.iter() {
        let summary = summary.as_ref().expect("finished");
        let here = packets(bytes);
        assert!(bytes.len() < (2 << 20) + 1_000, "{}", bytes.len());
        assert_eq!(
            (summary.bytes, summary.packets()),
            (bytes.len() as u64, here.len() as u64)
        );
        let times = || here.iter().map(|(time, ..)| *time);
        let ends = times().min().zip(times().max());
        assert_eq!(ends, Some((summary.first.0, summary.last.0)));
        all.extend(here);
    }
    // Those of a group stand in order; at a border between two chunks two groups may be the wrong way round.
    for group in 0..2 {
        let of = all.iter().filter(|(_, from, _)| *from == group);
        assert!(of.is_sorted_by_key(|(time, ..)| *time));
    }
    all.sort_by_key(|(time, ..)| *time);
    let numbers: Vec<u32> = all.iter().map(|(.., number)| *number).collect();
    assert_eq!(numbers, (0..6_000).collect::<Vec<_>>());
    assert!(all.iter().all(|(_, of, number)| *of == number % 2));
}

#[test]
fn a_file_ends_at_every_multiple_of_the_span() {
    let groups = groups(2, 1);
    let senders = senders(&groups);
    let span = 50 * Nanos::MILLI;
    let plan = Plan {
        rotate_ns: span,
        ..Plan::new(groups)
    };
    let disk = Memory::default();
    let mut sent = 0;
    let recorded = run(plan, &disk, |now| {
        if sent < 40 {
            send(&senders[0], sent, 100);
            sent += 1;
        }
        now.packets < 40
    });
    let files = disk.files.lock().expect("whole");
    assert!(files.len() > 3 && recorded.packets() == 40, "{recorded:?}");
    let mut last = 0;
    for (bytes, _) in files.iter() {
        let here = packets(bytes);
        let spans: Vec<u64> = here.iter().map(|(time, ..)| time / span).collect();
        assert!(
            spans[0] > last && spans.iter().all(|of| *of == spans[0]),
            "{spans:?}"
        );
        last = spans[0];
    }
}

#[test]
fn a_full_disk_loses_what_no_buffer_holds_counts_it_and_goes_on() {
    let groups = groups(3, 2);
    let senders = senders(&groups);
    let plan = Plan {
        queue_bytes: 2 << 20,
        receive_buffer_bytes: 1 << 16,
        ..Plan::new(groups)
    };
    let disk = Memory::default();
    let (mut sent, mut after) = ([0_u64; 2], 0);
    let recorded = run(plan, &disk, |now| {
        let each = |sent: &mut [u64; 2], count: u32| {
            for number in 0..count {
                for (sender, sent) in senders.iter().zip(sent.iter_mut()) {
                    send(sender, number, 1_400);
                    *sent += 1;
                }
            }
        };
        match after {
            // The disk is well, then full for 9 MB, which 2 MiB and two buffers of 128 KiB do not hold.
            0 => {
                each(&mut sent, 5);
                after = 1;
            }
            1 if now.packets == 10 && now.written > 0 => {
                disk.is_full.store(true, Ordering::Release);
                after = 2;
            }
            2..=17 => {
                each(&mut sent, 200);
                after += 1;
            }
            18 if now.is_stuck => {
                disk.is_full.store(false, Ordering::Release);
                after = 19;
            }
            // Room again: what comes now is taken, and tells what was lost before it.
            19 if !now.is_stuck => after = 20,
            20..40 => after += 1,
            40 => {
                each(&mut sent, 5);
                after = 41;
            }
            41..60 => after += 1,
            60.. => return false,
            _ => {}
        }
        true
    });
    assert!(recorded.lost() > 1_000 && recorded.full > 0, "{recorded:?}");
    assert_eq!(recorded.unwritten, 0);
    for (total, sent) in recorded.groups.iter().zip(sent) {
        assert_eq!(total.packets + total.lost, sent, "{recorded:?}");
        assert!(total.lost > 0);
    }
    let files = disk.files.lock().expect("whole");
    let all: Vec<_> = files.iter().flat_map(|(bytes, _)| packets(bytes)).collect();
    assert_eq!(all.len() as u64, recorded.packets());
    for of in 0..2 {
        let mine: Vec<u32> = all.iter().filter(|(_, i, _)| *i == of).map(|p| p.2).collect();
        assert_eq!(
            (&mine[..5], &mine[mine.len() - 5..]),
            (&[0, 1, 2, 3, 4][..], &[0, 1, 2, 3, 4][..])
        );
    }
    // Files say the same of losses.
    let lost: u64 = files
        .iter()
        .filter_map(|(_, s)| s.as_ref())
        .flat_map(|s| &s.groups)
        .map(|g| g.lost)
        .sum();
    assert_eq!(lost, recorded.lost());
}

#[test]
fn what_a_full_disk_does_not_take_until_the_end_is_counted() {
    let groups = groups(4, 1);
    let senders = senders(&groups);
    let disk = Memory::default();
    let mut sent = 0;
    let recorded = run(Plan::new(groups), &disk, |now| {
        match sent {
            0 => {
                send(&senders[0], 0, 100);
                sent = 1;
            }
            1 if now.written > 200 => {
                disk.is_full.store(true, Ordering::Release);
                (0..30).for_each(|n| send(&senders[0], n, 100));
                sent = 2;
            }
            2 => return now.packets < 31 || !now.is_stuck,
            _ => {}
        }
        true
    });
    assert_eq!(
        (recorded.packets(), recorded.unwritten, recorded.lost()),
        (1, 30, 30)
    );
    assert_eq!(recorded.groups[0].packets, 31);
}
