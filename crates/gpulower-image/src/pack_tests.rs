//! What is refused, joined and stated while images are put together; the containers are compared with the vendors' tools in
//! `tests/tools/`.

use super::*;

fn member(kind: FileKind, target: &str, bytes: &[u8]) -> Member {
    Member {
        input: format!("{target}.in"),
        kind,
        target: target.to_owned(),
        bytes: bytes.to_vec(),
        identifier: None,
        options: String::new(),
        debug: false,
    }
}

fn pack(members: impl IntoIterator<Item = Member>) -> Result<Pack, WriteError> {
    let mut pack = Pack::default();
    members.into_iter().try_for_each(|member| pack.push(member))?;
    Ok(pack)
}

fn words<T>(result: Result<T, WriteError>) -> String {
    result
        .err()
        .map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

#[test]
fn the_same_once_and_nothing_that_differs() {
    let same = pack([
        member(FileKind::Ptx, "sm_80", b"a"),
        member(FileKind::Ptx, "sm_80", b"a"),
        member(FileKind::Cubin, "sm_80", b"b"),
        member(FileKind::Ptx, "sm_90", b"c"),
    ]);
    assert_eq!(same.expect("nothing differs").members().len(), 3);
    let differs = words(pack([
        member(FileKind::Ptx, "sm_80", b"a"),
        member(FileKind::Ptx, "sm_80", b"b"),
    ]));
    assert!(
        differs.contains("both have PTX for sm_80, and they differ"),
        "{differs}"
    );
    let none = words(pack([member(FileKind::Bitcode, "", b"a")]));
    assert!(none.contains("does not say which chip"), "{none}");
    assert!(words(Pack::default().write(PackFormat::Offload, Compression::None)).contains("at least one file"));
}

#[test]
fn policies_of_files_agree() {
    let policy = |text: &str| text.parse::<PtxPolicy>().expect(text);
    let mut pack = Pack::default();
    assert_eq!(pack.include_ptx(), None);
    pack.set_include_ptx(&policy("all"), "a").expect("the first");
    pack.set_include_ptx(&policy("all"), "b").expect("the same");
    assert_eq!(pack.include_ptx(), Some(&policy("all")));
    assert_eq!(pack.identifier, Some(policy("all").to_identifier()));
    let other = words(pack.set_include_ptx(&policy("none"), "c"));
    assert!(
        other.contains('a') && other.contains('c') && other.contains("none"),
        "{other}"
    );
}

#[test]
fn a_stated_target_is_the_images_or_more() {
    let state = |kind, own: &str, stated: &str| {
        let mut members = [member(kind, own, b"")];
        let result = state_target(&mut members, "in", stated);
        result
            .map(|()| members[0].target.clone())
            .map_err(|error| error.to_string())
    };
    let refused = |kind, own: &str, stated: &str| state(kind, own, stated).expect_err(stated);
    assert_eq!(state(FileKind::Cubin, "sm_90", "sm_90").as_deref(), Ok("sm_90"));
    // A cubin does not say that it is of a family.
    assert_eq!(state(FileKind::Cubin, "sm_100", "sm_100f").as_deref(), Ok("sm_100f"));
    assert_eq!(state(FileKind::Bitcode, "", "sm_80").as_deref(), Ok("sm_80"));
    assert_eq!(state(FileKind::Bitcode, "", "gfx942").as_deref(), Ok("gfx942"));
    assert_eq!(state(FileKind::Hsaco, "gfx942", "gfx942").as_deref(), Ok("gfx942"));
    for (kind, own, stated) in [
        (FileKind::Ptx, "sm_100", "sm_100f"),
        (FileKind::Cubin, "sm_90", "sm_80"),
        (FileKind::Hsaco, "gfx942", "sm_90"),
        (FileKind::Hsaco, "gfx942", "gfx90a"),
    ] {
        let text = refused(kind, own, stated);
        assert!(
            text.starts_with(&format!("{stated}=in: the image is for {own}")),
            "{text}"
        );
    }
    let text = refused(FileKind::Bitcode, "", "fast");
    assert!(text.contains("it is no target"), "{text}");
    let two = words(state_target(
        &mut [member(FileKind::Ptx, "", b""), member(FileKind::Ptx, "", b"")],
        "in",
        "sm_80",
    ));
    assert!(two.contains("it holds 2 images"), "{two}");
}

#[test]
fn containers_hold_what_is_theirs() {
    let [ptx, lto, hsaco, bitcode] = [
        member(FileKind::Ptx, "sm_80", b".version 7.0\n.target sm_80\n"),
        member(FileKind::LtoIr, "sm_80", b"l"),
        member(FileKind::Hsaco, "gfx942", b"h"),
        member(FileKind::Bitcode, "gfx942", b"b"),
    ];
    let write =
        |member: &Member, format, compression| pack([member.clone()]).and_then(|pack| pack.write(format, compression));
    for (member, format, expected) in [
        (&lto, PackFormat::Fatbin, "LTO-IR needs NVIDIA's nvFatbin"),
        (&hsaco, PackFormat::Fatbin, "put AMD's code into a bundle"),
        (&ptx, PackFormat::Bundle, "put NVIDIA's code into a fat binary"),
        (&bitcode, PackFormat::Bundle, "put NVIDIA's code into a fat binary"),
        (&lto, PackFormat::Offload, "it takes machine code, PTX and bitcode"),
    ] {
        let text = words(write(member, format, Compression::None));
        assert!(text.contains(expected), "{text}");
    }
    let text = words(write(&hsaco, PackFormat::Bundle, Compression::Lz4));
    assert!(text.contains("lz4"), "{text}");
    let text = words(write(&ptx, PackFormat::Offload, Compression::Lz4));
    assert!(text.contains("compressed with lz4"), "{text}");

    let mut both = pack([ptx, hsaco, bitcode]).expect("of three kinds");
    both.set_include_ptx(&"all".parse().expect("a policy"), "ptx")
        .expect("the first");
    let bytes = both
        .write(PackFormat::Offload, Compression::None)
        .expect("all are taken");
    let binaries = offload_binary::read(&bytes).expect("it is one");
    let entries: Vec<_> = binaries.iter().flat_map(|binary| &binary.entries).collect();
    let said: Vec<_> = entries
        .iter()
        .map(|entry| (entry.triple(), entry.arch(), entry.string(INCLUDE_PTX)))
        .collect();
    let amd = (Some("amdgcn-amd-amdhsa"), Some("gfx942"), None);
    // Of NVIDIA's alone it says which PTX there was to be.
    assert_eq!(
        said,
        [(Some("nvptx64-nvidia-cuda"), Some("sm_80"), Some("all")), amd, amd]
    );
}

#[test]
fn what_was_asked_for_is_read_of_what_was_written() {
    let policy: PtxPolicy = "all".parse().expect("a policy");
    let text = gpulower_testing::nvidia::store_kernel("7.8", "sm_80");
    let mut first = Pack::default();
    first.add("a.ptx", text.as_bytes(), None).expect("PTX");
    first.set_include_ptx(&policy, "a.ptx").expect("the first");
    for format in [PackFormat::Fatbin, PackFormat::Offload] {
        let written = first.write(format, Compression::None).expect("it can be written");
        let mut second = Pack::default();
        second.add("written", &written, None).expect("it can be read");
        assert_eq!(second.include_ptx(), Some(&policy));
    }
    let level = |compression| bundle_compression(compression).expect("zstd").map(|found| found.level);
    assert_eq!(level(fatbin::ZSTD_DEFAULT), Some(bundle::Compression::default().level));
    assert_eq!(level(Compression::Zstd { level: 7 }), Some(7));
    assert_eq!(level(Compression::None), None);
}
