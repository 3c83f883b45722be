//! Versions that `llvm-offload-binary` 22 cannot write, what cannot be written, and damage.

use std::io::Write as _;

use super::*;
use crate::ReadProblem;

const NVIDIA: &str = "nvptx64-nvidia-cuda";
const AMD: &str = "amdgcn-amd-amdhsa";

fn cuda<'a>(kind: ImageKind, arch: &'a str, bytes: &'a [u8]) -> Image<'a> {
    Image::new(kind, OffloadKind::Cuda, KindNumbering::BitMask, NVIDIA, arch, bytes).unwrap()
}

fn hip<'a>(kind: ImageKind, numbering: KindNumbering, arch: &'a str, bytes: &'a [u8]) -> Image<'a> {
    Image::new(kind, OffloadKind::Hip, numbering, AMD, arch, bytes).unwrap()
}

#[test]
fn numbers_of_languages() {
    let texts = [
        (0, "none"),
        (1, "openmp"),
        (2, "cuda"),
        (3, "3 (clang up to 20: hip; from 21: openmp+cuda)"),
        (4, "4 (clang up to 20: unknown; from 21: hip)"),
        (8, "8 (clang up to 20: unknown; from 21: sycl)"),
        (12, "12 (clang up to 20: unknown; from 21: hip+sycl)"),
        (16, "16 (clang up to 20: unknown; from 21: unknown)"),
        (18, "18 (clang up to 20: unknown; from 21: unknown)"),
    ];
    for (number, text) in texts {
        assert_eq!(OffloadKindNumber(number).to_string(), text);
    }
    assert_eq!(
        OffloadKindNumber(3).read_as(KindNumbering::Sequential),
        [OffloadKind::Hip]
    );
    assert_eq!(
        OffloadKindNumber(3).read_as(KindNumbering::BitMask),
        [OffloadKind::OpenMp, OffloadKind::Cuda]
    );
    assert_eq!(OffloadKindNumber(15).read_as(KindNumbering::BitMask).len(), 4);
    for number in 0..9 {
        assert_eq!(ImageKind::from_number(number).number(), number);
    }
    assert_eq!(ImageKind::Other(9).to_string(), "unknown kind 9");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let refused = |image: Image<'_>| write(&[image]).unwrap_err().to_string();
    let good = || cuda(ImageKind::Cubin, "sm_90", b"image");
    assert_eq!(
        write(&[]).unwrap_err().to_string(),
        "an offload binary needs an image: there is none to write"
    );
    let error = Image::new(
        ImageKind::SpirV,
        OffloadKind::Sycl,
        KindNumbering::Sequential,
        "spirv64",
        "",
        b"",
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "clang up to 20 has no number for sycl: write for clang 21 or later"
    );
    assert_eq!(
        refused(Image {
            strings: vec![("triple", NVIDIA)],
            ..good()
        }),
        "an offload image needs the key `arch`: clang's linker wrapper groups images by it"
    );
    let mut image = good();
    image.strings.push(("arch", "sm_80"));
    assert_eq!(refused(image), "the key `arch` of an offload image is there twice");
    let mut image = good();
    image.strings.push(("note", "a\0b"));
    assert_eq!(
        refused(image),
        "\"a\\0b\" among the strings of an offload image has a NUL byte, which would end it"
    );
}

/// A binary of version 2 or 3, laid out by hand as by the `OffloadBinary::write` of LLVM 23 and of its main branch.
fn by_hand(version: u32, images: &[Image<'_>]) -> Vec<u8> {
    let header_size = if version == 2 { 32 } else { 40 };
    let strings: usize = images.iter().map(|image| image.strings.len()).sum();
    let table_at = header_size + 40 * images.len() + 24 * strings;
    let mut table = vec![0u8];
    let mut offsets = Vec::new();
    for text in images
        .iter()
        .flat_map(|image| &image.strings)
        .flat_map(|(key, value)| [key, value])
    {
        offsets.push((table_at + table.len()) as u64);
        table.extend(text.as_bytes());
        table.push(0);
    }
    let mut image_at = (table_at + table.len()).next_multiple_of(8);
    let all: usize = images.iter().map(|image| image.bytes.len()).sum();
    let size = (image_at + all).next_multiple_of(8);

    let mut out = vec![0x10, 0xff, 0x10, 0xad];
    out.extend(version.to_le_bytes());
    for number in [size, header_size, images.len(), 0].iter().take(header_size / 8 - 1) {
        out.extend((*number as u64).to_le_bytes());
    }
    let mut string_at = header_size + 40 * images.len();
    for image in images {
        out.extend(image.kind.number().to_le_bytes());
        out.extend(image.offload_kind.0.to_le_bytes());
        out.extend(image.flags.to_le_bytes());
        for number in [string_at, image.strings.len(), image_at, image.bytes.len()] {
            out.extend((number as u64).to_le_bytes());
        }
        string_at += 24 * image.strings.len();
        image_at += image.bytes.len();
    }
    let mut offsets = offsets.into_iter();
    for (_, value) in images.iter().flat_map(|image| &image.strings) {
        for number in [offsets.next().unwrap(), offsets.next().unwrap(), value.len() as u64] {
            out.extend(number.to_le_bytes());
        }
    }
    out.extend(table);
    out.resize(out.len().next_multiple_of(8), 0);
    for image in images {
        out.extend(image.bytes);
    }
    out.resize(size, 0);
    out
}

/// The binary of version 3 with everything behind its header compressed, padded for another one to follow.
fn compressed(plain: &[u8], compression: BodyCompression) -> Vec<u8> {
    let (header, body) = plain.split_at(40);
    let body = match compression {
        BodyCompression::Zstd => zstd::bulk::compress(body, 5).unwrap(),
        BodyCompression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        BodyCompression::None => panic!("nothing to do"),
    };
    let mut out = [header, &body].concat();
    let size = out.len() as u64;
    out[8..16].copy_from_slice(&size.to_le_bytes());
    out[32..40].copy_from_slice(&(plain.len() as u64).to_le_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

const IMAGE: &[u8] = b"device code, device code, device code, device code, device code, device code";

fn two_images() -> [Image<'static>; 2] {
    [
        Image {
            strings: vec![("triple", NVIDIA), ("arch", "sm_90"), ("note", "with a \0 inside")],
            ..cuda(ImageKind::Cubin, "sm_90", IMAGE)
        },
        Image {
            flags: 1,
            ..hip(ImageKind::Object, KindNumbering::BitMask, "gfx942", &IMAGE[1..])
        },
    ]
}

fn check_two(file: &[u8], version: u32, compression: BodyCompression) {
    let binaries = read(file).unwrap();
    let [binary] = &binaries[..] else {
        panic!("{binaries:?}");
    };
    assert_eq!((binary.version, binary.compression), (version, compression));
    let [first, second] = &binary.entries[..] else {
        panic!("{binary:?}");
    };
    assert_eq!((&*first.image, &*second.image), (IMAGE, &IMAGE[1..]));
    assert_eq!((first.flags, second.flags), (0, 1));
    assert_eq!((first.arch(), second.arch()), (Some("sm_90"), Some("gfx942")));
    assert_eq!(first.string("note"), Some("with a \0 inside"));
    assert_eq!(second.image_offset, first.image_offset + IMAGE.len() as u64);
}

#[test]
fn versions_2_and_3() {
    check_two(&by_hand(2, &two_images()), 2, BodyCompression::None);
    let plain = by_hand(3, &two_images());
    check_two(&plain, 3, BodyCompression::None);
    for compression in [BodyCompression::Zstd, BodyCompression::Zlib] {
        let small = compressed(&plain, compression);
        check_two(&small, 3, compression);
        // All versions in one file.
        let v1 = write(&two_images()[1..]).unwrap();
        let file = [&small[..], &v1, &by_hand(2, &two_images()), &small].concat();
        let binaries = read(&file).unwrap();
        let versions: Vec<_> = binaries.iter().map(|binary| binary.version).collect();
        assert_eq!(versions, [3, 1, 2, 3]);
        let starts: Vec<_> = binaries.iter().map(|binary| binary.offset).collect();
        assert_eq!(starts[1], small.len() as u64);
        assert_eq!(binaries[0].inflated_size, plain.len() as u64);
        assert!(binaries[0].size <= small.len() as u64);
        assert_eq!(binaries[0].entries, binaries[3].entries);
    }
}

#[test]
fn every_wrong_byte_is_survived() {
    let plain = by_hand(3, &two_images());
    let files = [
        write(&two_images()[1..]).unwrap(),
        by_hand(2, &two_images()),
        plain.clone(),
        compressed(&plain, BodyCompression::Zstd),
        compressed(&plain, BodyCompression::Zlib),
    ];
    for file in files {
        let mut changed = file.clone();
        for position in 0..file.len() {
            for value in [0, 0xff, file[position] ^ 0x11, file[position].wrapping_add(1)] {
                changed[position] = value;
                let _ = read(&changed);
            }
            changed[position] = file[position];
        }
    }
}

/// The error of a file in which some bytes are replaced.
fn spoiled(file: &[u8], at: usize, bytes: &[u8]) -> String {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    read(&file).unwrap_err().to_string()
}

#[test]
fn damage_is_named() {
    let v1 = write(&two_images()[1..]).unwrap();
    let v2 = by_hand(2, &two_images());
    let number = |number: u64| number.to_le_bytes();
    assert_eq!(
        read(b"\x7fELF").unwrap_err().to_string(),
        "not an offload binary: at offset 0x0 there is [7f 45 4c 46] instead of [10 ff 10 ad]"
    );
    assert_eq!(
        read(b"").unwrap_err().to_string(),
        "not an offload binary: at offset 0x0 there is [] instead of [10 ff 10 ad]"
    );
    let second = v1.len();
    let both = [&v1[..], &v2].concat();
    assert_eq!(
        spoiled(&both, second, b"A"),
        format!("not an offload binary: at offset {second:#x} there is [41 ff 10 ad] instead of [10 ff 10 ad]")
    );
    assert_eq!(
        spoiled(&both, second + 4, b"\x04"),
        format!("the offload binary at offset {second:#x} has version 4; versions 1 to 3 are read")
    );
    assert_eq!(
        spoiled(&v1, 4, b"\0"),
        "the offload binary at offset 0x0 has version 0; versions 1 to 3 are read"
    );
    assert_eq!(
        spoiled(&v1, 8, &number(31)),
        "damaged offload binary: the size of the binary at offset 0x8: 31 bytes are less than its header, which has 32"
    );
    assert_eq!(
        spoiled(&v1, 8, &number(u64::MAX)),
        format!(
            "truncated offload binary: the binary needs {} bytes at offset 0x0, but the file ends at {:#x}",
            u64::MAX,
            v1.len()
        )
    );
    assert_eq!(
        spoiled(&v1, 16, &number(31)),
        "damaged offload binary: the offset of the entries at offset 0x10: 31, where the header has 32 bytes"
    );
    assert_eq!(
        spoiled(&v1, 24, &number(48)),
        "damaged offload binary: the size of the entry at offset 0x18: 48 bytes; it has 40"
    );
    for count in [1 << 20, u64::MAX] {
        let text = spoiled(&v2, 24, &number(count));
        assert!(
            text.starts_with("truncated offload binary: the entries needs ") && text.contains("at offset 0x20"),
            "{text}"
        );
    }
    for count in [1 << 20, u64::MAX] {
        let text = spoiled(&v1, 32 + 16, &number(count));
        assert!(
            text.starts_with("truncated offload binary: the string entries needs "),
            "{text}"
        );
    }
    // The image of version 1: outside of the binary, on its header, on its entry.
    let text = spoiled(&v1, 32 + 24, &number(u64::MAX));
    assert!(text.starts_with("truncated offload binary: an image needs "), "{text}");
    let text = spoiled(&v1, 32 + 24, &number(8));
    assert_eq!(
        text,
        "damaged offload binary: an image at offset 0x8: it overlaps what reaches to 0x48"
    );
    // The second image of version 2 begins inside the first.
    let first_at = u64::from_le_bytes(v2[32 + 24..32 + 32].try_into().unwrap());
    let text = spoiled(&v2, 72 + 24, &number(first_at + 1));
    assert_eq!(
        text,
        format!(
            "damaged offload binary: an image at offset {:#x}: it overlaps what reaches to {:#x}",
            first_at + 1,
            first_at + IMAGE.len() as u64
        )
    );
    // The key of the first string.
    let key_at = 72;
    let text = spoiled(&v1, key_at, &number(1 << 40));
    assert_eq!(
        text,
        format!(
            "truncated offload binary: a key needs 1 bytes at offset 0x10000000000, but the binary ends at {:#x}",
            v1.len()
        )
    );
    let whole = write(&[cuda(ImageKind::Cubin, "sm_90", &[b'x'; 64])]).unwrap();
    let image_at = whole.len() as u64 - 64;
    let text = spoiled(&whole, key_at, &number(image_at));
    assert_eq!(
        text,
        format!(
            "damaged offload binary: a key at offset {image_at:#x}: no NUL byte ends it before the end of the binary"
        )
    );
    let table_at = usize::try_from(u64::from_le_bytes(v1[key_at..key_at + 8].try_into().unwrap())).unwrap();
    assert_eq!(
        spoiled(&v1, table_at, b"\xff"),
        format!("damaged offload binary: a key at offset {table_at:#x}: not UTF-8")
    );
    let other_key = v1[key_at + 16..key_at + 24].to_vec();
    assert_eq!(
        spoiled(&v1, key_at, &other_key),
        "damaged offload binary: the string entries at offset 0x48: the key \"triple\" is there twice"
    );
    let long = "x".repeat(70_000);
    let text = read(&write(&[cuda(ImageKind::Cubin, &long, b"")]).unwrap()).unwrap_err();
    assert!(text.to_string().ends_with(": longer than 65536 bytes"), "{text}");
    // What follows a binary is another one, or zeros up to it.
    let mut compressed = compressed(&by_hand(3, &two_images()), BodyCompression::Zlib);
    let end = usize::try_from(read(&compressed).unwrap()[0].size).unwrap();
    if end % 8 == 0 {
        compressed.push(7);
        let text = read(&compressed).unwrap_err().to_string();
        assert!(text.starts_with("not an offload binary"), "{text}");
    } else {
        compressed[end] = 7;
        assert_eq!(
            read(&compressed).unwrap_err().to_string(),
            format!("damaged offload binary: the padding behind a binary at offset {end:#x}: it is not zero")
        );
    }
}

#[test]
fn shared_strings_are_bounded() {
    // Many entries that all refer to the same string entries.
    let count = 1000u64;
    let mut file = vec![0x10, 0xff, 0x10, 0xad, 2, 0, 0, 0];
    let strings_at = 32 + 40 * count;
    let table_at = strings_at + 24 * count;
    for number in [table_at + 8, 32, count] {
        file.extend(number.to_le_bytes());
    }
    for _ in 0..count {
        file.extend([0; 8]);
        for number in [strings_at, count, table_at, 0] {
            file.extend(number.to_le_bytes());
        }
    }
    for _ in 0..count {
        for number in [table_at, table_at, 0] {
            file.extend(number.to_le_bytes());
        }
    }
    file.extend([0; 8]);
    let text = read(&file).unwrap_err().to_string();
    assert!(text.contains("is there twice"), "{text}");
    // With one key each, the entries are caught when they claim more than there is.
    for entry in 0..usize::try_from(count).unwrap() {
        let at = 32 + 40 * entry;
        file[at + 16..at + 24].copy_from_slice(&1u64.to_le_bytes());
    }
    assert_eq!(read(&file).unwrap()[0].entries.len(), 1000);

    // Values that share long text.
    let value = "v".repeat(60_000);
    let keys: Vec<String> = (0..40).map(|index| format!("key{index}")).collect();
    let strings = keys
        .iter()
        .map(|key| (key.as_str(), value.as_str()))
        .chain([("arch", ""), ("triple", "")]);
    let image = Image {
        strings: strings.collect(),
        ..cuda(ImageKind::Cubin, "", b"")
    };
    let bytes = write(&[image]).unwrap();
    assert!(bytes.len() < 70_000, "the values are stored once");
    let text = read(&bytes).unwrap_err().to_string();
    assert!(text.ends_with("bytes, by sharing them"), "{text}");
}

#[test]
fn compressed_bodies_are_bounded() {
    let plain = by_hand(3, &two_images());
    for compression in [BodyCompression::Zstd, BodyCompression::Zlib] {
        let good = compressed(&plain, compression);
        let size = usize::try_from(read(&good).unwrap()[0].size).unwrap();
        let stored = size - 40;
        for stated in [u64::MAX, 1 << 40, 39] {
            assert_eq!(
                spoiled(&good, 32, &stated.to_le_bytes()),
                format!(
                    "damaged offload binary: the inflated size at offset 0x20: {stored} bytes of {compression:?} cannot \
                     inflate to a binary of {stated}"
                )
            );
        }
        for stated in [plain.len() as u64 - 1, plain.len() as u64 + 1] {
            assert_eq!(
                spoiled(&good, 32, &stated.to_le_bytes()),
                format!(
                    "damaged offload binary: the compressed content at offset 0x28: it does not inflate to a binary of \
                     the {stated} bytes that are stated"
                )
            );
        }
        let text = spoiled(&good, 40 + 5, &[0xff; 8]);
        assert!(
            text.starts_with(&format!(
                "damaged offload binary: the compressed content at offset 0x28: {compression:?}: "
            )) || text.contains("it does not inflate"),
            "{text}"
        );
        assert_eq!(
            spoiled(&good, 16, &48u64.to_le_bytes()),
            "damaged offload binary: the offset of the entries at offset 0x10: 48, where the header has 40 bytes"
        );
        // What is wrong inside says so.
        let mut bad = plain.clone();
        bad[40 + 24..40 + 32].copy_from_slice(&u64::MAX.to_le_bytes());
        let text = read(&compressed(&bad, compression)).unwrap_err().to_string();
        assert!(
            text.starts_with(
                "in the inflated content of the offload binary at offset 0x0: truncated offload binary: an image needs "
            ),
            "{text}"
        );
    }
    // Sixteen million zeros in some hundred bytes are possible, and read; more than a gigabyte is not.
    let zeros = vec![0; 16 << 20];
    let small = compressed(
        &by_hand(3, &[cuda(ImageKind::Cubin, "sm_90", &zeros)]),
        BodyCompression::Zstd,
    );
    assert!(small.len() < 2000);
    assert_eq!(read(&small).unwrap()[0].entries[0].image.len(), zeros.len());
    let mut large = compressed(&plain, BodyCompression::Zstd);
    large.resize(64 * 1024, 0);
    large[8..16].copy_from_slice(&(64u64 * 1024).to_le_bytes());
    assert_eq!(
        spoiled(&large, 32, &((1u64 << 30) + 41).to_le_bytes()),
        "damaged offload binary: the inflated size at offset 0x20: more than 1073741824 bytes in this file"
    );
}
#[test]
fn every_truncation_is_refused() {
    let plain = by_hand(3, &two_images());
    let files = [
        write(&two_images()[1..]).unwrap(),
        by_hand(2, &two_images()),
        plain.clone(),
        compressed(&plain, BodyCompression::Zstd),
        compressed(&plain, BodyCompression::Zlib),
    ];
    for file in &files {
        let end = usize::try_from(read(file).unwrap()[0].size).unwrap();
        for length in 0..end {
            let error = read(&file[..length]).unwrap_err();
            let expected = match error.problem {
                ReadProblem::OtherFormat => length < 4,
                ReadProblem::Truncated => {
                    let text = error.to_string();
                    text.ends_with(&format!("but the file ends at {length:#x}")) && text.contains("at offset 0x")
                }
                _ => false,
            };
            assert!(expected, "{length}: {error}");
        }
    }
}
