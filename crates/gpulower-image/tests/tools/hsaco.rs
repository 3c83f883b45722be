//! Tests of the code object reader against LLVM's tools, and on damaged files.

use gpulower_image::ReadProblem;
use gpulower_image::image::elf::Elf;
use gpulower_image::image::hsaco::{Hsaco, HsacoKernel};
use gpulower_image::image::hsaco_attributes::kernel_metadata;
use gpulower_image::image::resource::KernelResources;
use gpulower_image::target::CodeObjectVersion;
use gpulower_testing::amd::{KERNELS, UNDEFINED, hsaco, object, readelf, run};

/// Values of the kernels' `key`, in order, in the text of `llvm-readelf --notes`.
fn noted(text: &str, key: &str) -> Vec<u64> {
    text.lines()
        .map(|line| line.replacen("  - ", "    ", 1))
        .filter_map(|line| {
            let value = line.strip_prefix(&format!("    {key}:"))?.trim().to_owned();
            Some(value.parse().unwrap())
        })
        .collect()
}

fn kernel<'a>(hsaco: &'a Hsaco<'_>, name: &str) -> &'a HsacoKernel {
    hsaco
        .kernels
        .iter()
        .find(|kernel| kernel.resources.name == name)
        .unwrap()
}

#[test]
fn resources_are_those_of_llvm_readelf() {
    for chip in ["gfx90a", "gfx942", "gfx1100"] {
        for version in [4, 5, 6] {
            let linked = hsaco(KERNELS, chip, "", version);
            let relocatable = object(KERNELS, chip, "", version);
            let read = Hsaco::read(&linked).unwrap();
            let text = readelf(&linked, &["--notes"]);

            assert_eq!(read.version.number(), version);
            assert_eq!(read.target.to_string(), chip);
            assert_eq!(
                read.target_id.as_deref(),
                Some(format!("amdgcn-amd-amdhsa--{chip}").as_str())
            );
            let minor = if version == 4 { 1 } else { 2 };
            assert_eq!(read.metadata_version, Some((1, minor)));
            assert_eq!(read.undefined, Vec::<&str>::new());
            assert_eq!(read.descriptors, ["saxpy.kd", "scratch.kd", "spill.kd"]);

            type Get = fn(&KernelResources) -> Option<u64>;
            let fields: [(&str, Get); 11] = [
                (".sgpr_count", |k| k.sgprs.map(u64::from)),
                (".vgpr_count", |k| k.vgprs.map(u64::from)),
                (".agpr_count", |k| k.agprs.map(u64::from)),
                (".sgpr_spill_count", |k| k.spilled_sgprs.map(u64::from)),
                (".vgpr_spill_count", |k| k.spilled_vgprs.map(u64::from)),
                (".group_segment_fixed_size", |k| Some(k.shared_bytes)),
                (".private_segment_fixed_size", |k| Some(k.scratch_bytes)),
                (".kernarg_segment_size", |k| k.parameter_bytes.map(u64::from)),
                (".max_flat_workgroup_size", |k| k.max_threads_per_block.map(u64::from)),
                (".wavefront_size", |k| k.wavefront_size.map(u64::from)),
                (".kernarg_segment_align", |_| Some(8)),
            ];
            for (key, get) in fields {
                let found: Vec<u64> = read.resources().filter_map(get).collect();
                assert_eq!(found, noted(&text, key), "{chip} V{version} {key}");
            }
            // The object before the link says the same.
            let before = Hsaco::read(&relocatable).unwrap();
            assert!(read.linked && !before.linked);
            assert_eq!(before.kernels, read.kernels);
            assert_eq!(before.target, read.target);
        }
    }
}

#[test]
fn values_that_the_sources_determine() {
    let file = hsaco(KERNELS, "gfx942", "", 5);
    let read = Hsaco::read(&file).unwrap();
    assert_eq!(read.version, CodeObjectVersion::V5);

    let saxpy = kernel(&read, "saxpy");
    assert_eq!(saxpy.descriptor, "saxpy.kd");
    assert_eq!(saxpy.parameter_alignment, Some(8));
    assert_eq!(saxpy.resources.shared_bytes, 1024);
    assert_eq!(saxpy.resources.max_threads_per_block, Some(256));
    assert_eq!(saxpy.resources.required_block, None);
    assert_eq!(saxpy.resources.wavefront_size, Some(64));
    assert_eq!(saxpy.resources.dynamic_stack, Some(false));
    assert_eq!(saxpy.resources.spills(), Some(false));
    assert_eq!(saxpy.resources.registers, None);
    let explicit: Vec<_> = saxpy
        .resources
        .parameters
        .iter()
        .take(5)
        .map(|p| {
            let kind = p.kind.as_deref().unwrap();
            (p.ordinal, p.name.as_deref(), p.offset, p.size, kind)
        })
        .collect();
    assert_eq!(
        explicit,
        [
            (0, Some("x"), 0, 8, "global_buffer"),
            (1, Some("y"), 8, 8, "global_buffer"),
            (2, Some("a"), 16, 4, "by_value"),
            (3, Some("n"), 20, 4, "by_value"),
            (4, None, 24, 4, "hidden_block_count_x"),
        ]
    );

    let scratch = kernel(&read, "scratch");
    assert_eq!(scratch.resources.required_block, Some([64, 2, 1]));
    assert_eq!(scratch.block_hint, Some([32, 4, 1]));
    assert!(scratch.resources.scratch_bytes >= 64);
    assert_eq!(scratch.resources.shared_bytes, 0);

    let spill = kernel(&read, "spill");
    assert_eq!(spill.resources.spills(), Some(true));

    let text = readelf(&file, &["--dyn-syms", "-W"]);
    for kernel in &read.kernels {
        let (name, size) = (&kernel.resources.name, kernel.resources.code_bytes.unwrap());
        let line = text.lines().find(|line| line.ends_with(name)).unwrap();
        assert!(line.contains(&format!(" {size} FUNC")), "{size} {line}");
    }
}

#[test]
fn target_settings_wavefronts_and_generic_targets() {
    let file = hsaco(KERNELS, "gfx90a", "+xnack,-sramecc", 5);
    let read = Hsaco::read(&file).unwrap();
    assert_eq!(read.target.to_string(), "gfx90a:sramecc-:xnack+");
    let id = "amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+";
    assert_eq!(read.target_id.as_deref(), Some(id));

    for (features, lanes) in [("", 32), ("+wavefrontsize64", 64)] {
        let file = hsaco(KERNELS, "gfx1100", features, 5);
        let read = Hsaco::read(&file).unwrap();
        assert!(read.resources().all(|k| k.wavefront_size == Some(lanes)));
        assert!(read.resources().all(|k| k.agprs.is_none()));
    }

    let file = hsaco(KERNELS, "gfx9-4-generic", "", 6);
    let read = Hsaco::read(&file).unwrap();
    assert_eq!(read.target.generic_version, Some(1));
    assert_eq!(read.target.to_string(), "gfx9-4-generic");
}

#[test]
fn undefined_symbols_are_listed() {
    let relocatable = object(UNDEFINED, "gfx90a", "", 5);
    let read = Hsaco::read(&relocatable).unwrap();
    assert_eq!(read.undefined, ["missing_a", "missing_b"]);
    assert_eq!(read.descriptors, ["one.kd", "two.kd"]);
}

#[test]
fn what_is_not_a_code_object_is_refused() {
    let host = run(
        "llc",
        &["-mtriple=x86_64-linux-gnu", "-filetype=obj", "-o", "-", "-"],
        b"define void @f() { ret void }",
    );
    let error = Hsaco::read(&host).unwrap_err().to_string();
    assert!(
        error.starts_with("not an AMDGPU code object: ELF machine 62, OS ABI 0, type 1"),
        "{error}"
    );

    let file = hsaco(KERNELS, "gfx90a", "", 5);
    let mut old = file.clone();
    old[8] = 1;
    let error = Hsaco::read(&old).unwrap_err().to_string();
    assert!(
        error.contains("ELF ABI version 1") && error.contains("V4, V5 and V6"),
        "{error}"
    );

    let mut anonymous = file.clone();
    let note = Elf::parse(&file).unwrap().notes().unwrap()[0].offset;
    anonymous[usize::try_from(note).unwrap() - 8] = b'X';
    let error = Hsaco::read(&anonymous).unwrap_err();
    assert!(error.to_string().contains("no metadata note"), "{error}");

    assert_eq!(Hsaco::read(b"no").unwrap_err().problem, ReadProblem::OtherFormat);
}

/// A code object whose metadata note starts with `contents`, and the offset of the note's contents.
fn with_metadata(contents: &[u8]) -> (Vec<u8>, u64) {
    let mut file = hsaco(KERNELS, "gfx90a", "", 5);
    let offset = Elf::parse(&file).unwrap().notes().unwrap()[0].offset;
    let start = usize::try_from(offset).unwrap();
    file[start..start + contents.len()].copy_from_slice(contents);
    (file, offset)
}

fn metadata_error(contents: &[u8]) -> String {
    let (file, _) = with_metadata(contents);
    Hsaco::read(&file).unwrap_err().to_string()
}

#[test]
fn damaged_metadata_names_offset_or_key() {
    // Lists of one value inside each other.
    let error = metadata_error(&[0x91; 200]);
    assert!(error.contains("nested deeper than 32 levels"), "{error}");

    // A string that claims 4 GB.
    let contents = [0xdb, 0xff, 0xff, 0xff, 0xff];
    let (file, offset) = with_metadata(&contents);
    let error = Hsaco::read(&file).unwrap_err().to_string();
    let expected = format!("at offset {:#x} of the file, a value reaches behind", offset + 5);
    assert!(error.contains(&expected), "{error}");

    let error = metadata_error(&[0x01]);
    assert!(error.ends_with("`(root)`: expected a map, found an integer"), "{error}");

    // {"amdhsa.kernels": [{}]}
    let mut contents = vec![0x81, 0xae];
    contents.extend_from_slice(b"amdhsa.kernels");
    let list = contents.len();
    contents.extend_from_slice(&[0x91, 0x80]);
    let error = metadata_error(&contents);
    let kernels = contents;
    assert!(error.ends_with("`amdhsa.kernels[0].symbol`: missing"), "{error}");
    // {"amdhsa.version": [1, -1]}
    let mut contents = vec![0x81, 0xae];
    contents.extend_from_slice(b"amdhsa.version");
    contents.extend_from_slice(&[0x92, 0x01, 0xff]);
    let error = metadata_error(&contents);
    assert!(
        error.ends_with("`amdhsa.version[1]`: expected an unsigned number of 32 bits, found -1"),
        "{error}"
    );
    // {"amdhsa.kernels": true}
    let mut contents = kernels;
    contents[list] = 0xc3;
    let error = metadata_error(&contents);
    assert!(
        error.ends_with("`amdhsa.kernels`: expected a list, found a boolean"),
        "{error}"
    );
}

#[test]
fn no_truncation_and_no_flipped_byte_panics() {
    let sources = [hsaco(KERNELS, "gfx942", "", 5), object(KERNELS, "gfx942", "", 5)];
    for file in &sources {
        for length in 0..file.len() {
            // A table at the end of the file is cut: nothing shorter can be whole.
            Hsaco::read(&file[..length]).unwrap_err();
        }
        // A linear congruential generator (Knuth, MMIX) makes the test the same on every run.
        let mut state = 1u64;
        let mut random = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut refused = 0;
        for round in 0..10_000 {
            let mut broken = file.clone();
            // Half of the rounds aim at the headers and the note, where most decisions are taken.
            let bound = if round % 2 == 0 { file.len() } else { 0x400 };
            for _ in 0..1 + random(4) {
                let position = random(bound);
                broken[position] = random(256) as u8;
            }
            refused += usize::from(Hsaco::read(&broken).is_err());
            let _ = kernel_metadata(&broken);
        }
        assert!(refused > 500, "only {refused} of 10000 were refused");
    }
}
