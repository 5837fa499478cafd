//! Files of messages behind their length: real ones, and ones made here.

use std::path::PathBuf;

use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureError, LinkType, PcapWriter};
use tickwire_runtime::itchfile::{ItchFile, Recording};
use tickwire_testdata::captures;

/// TotalView-ITCH 5.0: the lengths of all messages, as far as these files have them.
fn message_len(kind: u8) -> Option<usize> {
    Some(match kind {
        b'S' => 12,
        b'R' => 39,
        b'H' => 25,
        b'Y' => 20,
        b'L' => 26,
        b'A' => 36,
        b'F' => 40,
        b'E' => 31,
        b'C' => 36,
        b'X' => 23,
        b'D' => 19,
        b'U' => 35,
        b'P' => 44,
        b'Q' => 40,
        b'B' => 19,
        b'I' => 50,
        _ => return None,
    })
}

fn read_all(mut file: ItchFile) -> (Vec<Vec<u8>>, Option<CaptureError>) {
    let mut messages = Vec::new();
    loop {
        match file.next_message() {
            Ok(Some(message)) => messages.push(message.bytes.to_vec()),
            Ok(None) => return (messages, None),
            Err(error) => {
                assert!(file.next_message().expect("an error is told once").is_none());
                return (messages, Some(error));
            }
        }
    }
}

/// Writes a file that is removed when dropped.
struct Temp(PathBuf);
impl Temp {
    fn new(name: &str, bytes: &[u8]) -> Temp {
        let path = std::env::temp_dir().join(format!("tickwire-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("written");
        Temp(path)
    }
}
impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read_bytes(name: &str, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<CaptureError>) {
    let file = Temp::new(name, bytes);
    read_all(ItchFile::open(&file.0, message_len).expect("opens"))
}

#[tickwire_testdata::recorded_data("captures/itch-files")]
#[test]
fn the_head_of_a_real_file_has_a_thousand_messages_of_their_types_lengths() {
    let (messages, error) =
        read_all(ItchFile::open(captures("itch-files/real-head-1000.itch"), message_len).expect("opens"));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(messages.len(), 1000);
    assert!(messages.iter().all(|m| message_len(m[0]) == Some(m.len())));
}

#[tickwire_testdata::recorded_data("captures/itch-files")]
#[test]
fn a_compressed_file_whose_lengths_are_all_zero_is_read_by_type() {
    let path = captures("itch-files/ex20101224.TEST_ITCH_50.gz");
    let (messages, error) = read_all(ItchFile::open(&path, message_len).expect("opens"));
    assert!(error.is_none(), "{error:?}");
    assert!(messages.len() > 10_000 && messages.iter().all(|m| message_len(m[0]) == Some(m.len())));
    let bytes: usize = messages.iter().map(|m| m.len() + 2).sum();
    assert_eq!(bytes, tickwire_testdata::file_bytes(&path).len());
}

#[test]
fn a_length_of_zero_at_the_end_is_the_end_of_the_session() {
    let message = [&[0, 12, b'S'][..], &[1; 11]].concat();
    let (messages, error) = read_bytes("end", &[&message[..], &message, &[0, 0]].concat());
    assert!(error.is_none() && messages.len() == 2 && messages[0] == message[2..]);
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_messages_and_then_says_where_it_breaks_off() {
    let whole = [&[0, 12, b'S'][..], &[1; 11], &[0, 19, b'D'], &[2; 18]].concat();
    for cut in 1..whole.len() {
        let (messages, error) = read_bytes("cut", &whole[..cut]);
        assert_eq!(messages.len(), (cut / 14).min(1));
        match error {
            Some(CaptureError::Truncated {
                offset, need, have, ..
            }) => {
                assert!(need > have && offset + have == cut as u64 && offset == 14 * messages.len() as u64);
            }
            None => assert_eq!(cut, 14),
            Some(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_message_without_length_and_of_unknown_type_is_garbled_at_its_offset() {
    let (messages, error) = read_bytes("garbled", &[0, 2, b'?', 0, 0, 0, b'~', 1, 2, 3]);
    let text = error.expect("garbled").to_string();
    assert!(
        messages.len() == 1 && text.contains("garbled at byte 4") && text.contains("0x7e ('~')"),
        "{text}"
    );
}

#[test]
fn a_recording_is_told_by_its_first_bytes() {
    let delete = [&[0, 19, b'D'][..], &[2; 18]].concat();
    let without_lengths = [&[0, 0, b'D'][..], &[2; 18]].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &without_lengths).expect("into memory");
    let gzip = gzip.finish().expect("into memory");
    for (name, bytes) in [("plain", &delete), ("gzip", &gzip)] {
        let file = Temp::new(name, bytes);
        let Recording::Messages(messages) = Recording::open(&file.0, message_len).expect("opens") else {
            panic!("{name}: messages")
        };
        assert_eq!(read_all(messages).0, [&delete[2..]], "{name}");
    }
    let pcap = Temp::new("pcap", &[]);
    let mut writer = PcapWriter::create(&pcap.0, LinkType::ETHERNET).expect("created");
    let address = |text: &str| text.parse().expect("an address");
    writer
        .write_udp(
            Nanos(1),
            address("10.0.0.1:1"),
            address("239.0.0.1:2"),
            b"payload",
        )
        .expect("written");
    writer.finish().expect("written");
    let Recording::Packets(mut packets) = Recording::open(&pcap.0, message_len).expect("opens") else {
        panic!("packets")
    };
    assert!(packets.next_packet().expect("whole").is_some());
    for bytes in [&b""[..], b"x", b"hello, world"] {
        let file = Temp::new("other", bytes);
        let text = Recording::open(&file.0, message_len)
            .expect_err("refused")
            .to_string();
        assert!(
            text.contains("is not a pcap, pcapng, DBN, LOBSTER message or length-framed message file"),
            "{text}"
        );
    }
}

#[tickwire_testdata::recorded_data("captures/itch-files", "captures/books/itch-synthetic")]
#[test]
fn real_recordings_are_told_by_their_first_bytes() {
    let open = |rel: &str| Recording::open(captures(rel), message_len).expect("opens");
    assert!(matches!(
        open("itch-files/real-head-1000.itch"),
        Recording::Messages(_)
    ));
    assert!(matches!(
        open("itch-files/ex20101224.TEST_ITCH_50.gz"),
        Recording::Messages(_)
    ));
    let Recording::Packets(mut packets) = open("books/itch-synthetic/first3000_mold.pcap") else {
        panic!("packets")
    };
    assert!(packets.next_packet().expect("whole").is_some());
    let Recording::Messages(messages) = open("books/itch-synthetic/synth120k.itch") else {
        panic!("messages")
    };
    assert_eq!(read_all(messages).0.len(), 120_001);
}

fn numbered(bytes: Vec<u8>) -> ItchFile {
    let lengths: tickwire_runtime::itchfile::MessageLen =
        |kind: u8| kind.is_ascii_uppercase().then(|| usize::from(kind - b'A') + 1);
    match Recording::from_reader("memory", std::io::Cursor::new(bytes), lengths).unwrap() {
        Recording::Messages(file) => file,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_message_is_shown_once_and_before_it_comes() {
    let mut bytes = Vec::new();
    for number in 0..200_000_u32 {
        let len = 5 + number % 20;
        bytes.extend((len as u16).to_be_bytes());
        bytes.push(b'A' + len as u8 - 1);
        bytes.extend(number.to_be_bytes());
        bytes.extend(vec![0; len as usize - 5]);
    }
    let (mut file, mut shown, mut taken, mut late) = (numbered(bytes), 0, 0, 0);
    let number = |message: &[u8]| u32::from_be_bytes(*message[1..].first_chunk().unwrap());
    loop {
        while let Some(message) = file.ahead(16) {
            // What came before it could be shown is not shown any more.
            late += u32::max(taken, shown) - shown;
            shown = u32::max(taken, shown);
            assert_eq!(number(message), shown);
            shown += 1;
            assert!(shown - taken <= 16);
        }
        let Some(message) = file.next_message().unwrap() else {
            break;
        };
        assert_eq!(number(message.bytes), taken);
        taken += 1;
    }
    assert_eq!(taken, 200_000);
    assert!(late < 500, "{late}");
}

#[test]
fn what_is_not_in_memory_or_has_no_length_is_not_shown() {
    let mut file = numbered(b"\0\x01A\0\0B\0\0\x05Ecut".to_vec());
    assert_eq!(file.ahead(16), Some(&b"A"[..]));
    assert_eq!(file.ahead(16), None, "the type says how long it is");
    assert_eq!(file.next_message().unwrap().unwrap().bytes, b"A");
    assert_eq!(file.ahead(16), None);
    assert_eq!(file.next_message().unwrap().unwrap().bytes, b"B\0");
    assert_eq!(file.ahead(16), None, "it is cut off");
    assert!(file.next_message().is_err());
    assert_eq!(file.ahead(16), None);
}
