//! Seeds of the target of files of records and of lines.

/// DBN files of each version, of an iceberg that is executed, moved and cancelled, as they are and with
/// hostile lengths; LOBSTER lines of the same.
pub(crate) fn records() -> Vec<Vec<u8>> {
    use tickwire_wire::dbn::{Mbo, Px, Stamp, flags};
    use tickwire_wire::layout::{Char, Pod};
    let record = |action: u8, order: u64, size: u32, flags: u8| Mbo {
        length: (Mbo::SIZE / 4) as u8,
        rtype: 0xA0,
        instrument_id: 7.into(),
        ts_event: Stamp(10.into()),
        ts_recv: Stamp(11.into()),
        order_id: order.into(),
        price: Px(100_000_000_000.into()),
        size: size.into(),
        flags,
        action: Char(action),
        side: Char(b'B'),
        ..Mbo::BLANK
    };
    let orders = [
        record(b'R', 0, 0, flags::SNAPSHOT),
        record(b'A', 1, 5, flags::LAST),
        record(b'A', 2, 3, flags::LAST),
        record(b'T', 9, 8, 0),
        record(b'F', 1, 8, 0),
        record(b'M', 1, 4, flags::LAST),
        record(b'C', 2, 1, flags::LAST),
        record(b'F', 2, 2, 0),
        record(b'C', 2, 2, flags::LAST),
        record(b'M', 1, 2, flags::LAST),
    ];
    let mut files = super::none();
    for (version, symbol_len) in [(1_u8, 22_u16), (2, 71), (3, 71)] {
        let mut metadata = vec![0; 104];
        metadata[45..47].copy_from_slice(&symbol_len.to_le_bytes());
        metadata.extend([0; 16]);
        let mut file = [
            &b"DBN"[..],
            &[version],
            &(metadata.len() as u32).to_le_bytes(),
            &metadata,
        ]
        .concat();
        orders
            .iter()
            .for_each(|record| file.extend_from_slice(record.as_bytes()));
        hostile(&file, &mut files);
        files.push(file);
    }
    lines(&mut files);
    files.push(
        b"34200.1,1,1,50,1000000,1\n34200.2,1,2,80,1000200,-1\n34201.0,4,1,30,1000000,1\n34202.0,2,2,10,1000200,-1\n\
          34203.5,3,1,20,1000000,1\n34204.0,7,0,0,-1,-1\n"
            .to_vec(),
    );
    files
}

/// A file with every length and version that it claims replaced by ones that are not true.
fn hostile(file: &[u8], files: &mut Vec<Vec<u8>>) {
    let mut with = |at: usize, bytes: &[u8]| {
        let mut file = file.to_vec();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        files.push(file);
    };
    [0, 4, 9, 10, 255].iter().for_each(|version| with(3, &[*version]));
    // Of the metadata; of a symbol in it; how many symbols of a kind there are, each list's own count.
    let sizes = [0_u32, 1, 7, 1 << 16, (1 << 30) + 1, u32::MAX];
    sizes.iter().for_each(|size| with(4, &size.to_le_bytes()));
    [0_u16, 1, u16::MAX]
        .iter()
        .for_each(|size| with(8 + 45, &size.to_le_bytes()));
    for list in 0..5 {
        sizes
            .iter()
            .for_each(|count| with(8 + 100 + list * 4, &count.to_le_bytes()));
    }
    // Of the first record.
    let first = file.len() - 10 * 56;
    [0, 1, 3, 4, 15, 255]
        .iter()
        .for_each(|words| with(first, &[*words]));
}

/// Lines whose numbers fit nowhere, and one without an end.
fn lines(files: &mut Vec<Vec<u8>>) {
    let huge = "9".repeat(40);
    for line in [
        format!("{huge}.1,1,1,50,1000000,1\n"),
        format!("34200.{huge},1,1,50,1000000,1\n"),
        format!("34200.1,1,{huge},50,1000000,1\n"),
        format!("34200.1,1,1,{huge},1000000,1\n"),
        format!("34200.1,1,1,50,{huge},1\n34200.2,3,1,50,{huge},1\n"),
        format!("34200.1,1,1,-50,-{huge},-1\n"),
        "34200.1,1,1,18446744073709551615,9223372036854775807,1\n".to_owned(),
        format!("34200.1,1,1,50,1000000,1\n{}", "1".repeat(70_000)),
    ] {
        files.push(line.into_bytes());
    }
}
