//! Which image is chosen, of images that NVIDIA's and LLVM's tools made; and what is said where none is.

use super::*;
use gpulower_image::FileKind;
use gpulower_image::container::bundle::{self, BundleImage, BundleOptions};
use gpulower_image::container::fatbin::{self, Content};
use gpulower_image::container::offload_binary::{self, ImageKind as StoredKind, KindNumbering, OffloadKind};
use gpulower_testing::{amd, nvidia};

/// Compiles PTX with `ptxas`.
fn cubin(ptx: &str, chip: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("k.ptx"), directory.path().join("k.cubin"));
    std::fs::write(&input, ptx).unwrap();
    let chip = format!("-arch={chip}");
    let mut arguments: Vec<&std::ffi::OsStr> = vec![chip.as_ref(), input.as_ref(), "-o".as_ref(), output.as_ref()];
    arguments.extend(options.iter().map(|option| std::ffi::OsStr::new(*option)));
    nvidia::run("ptxas", &arguments);
    std::fs::read(output).unwrap()
}

/// A fat binary of two cubins and PTX, compressed.
fn fat_binary() -> Vec<u8> {
    let (old, new) = (
        nvidia::store_kernel("7.0", "sm_80"),
        nvidia::store_kernel("7.8", "sm_90"),
    );
    let (first, second) = (cubin(&old, "sm_80", &[]), cubin(&new, "sm_90", &[]));
    let image = |content, arch| fatbin::Image {
        compression: fatbin::ZSTD_DEFAULT,
        ..fatbin::Image::new(content, arch).unwrap()
    };
    fatbin::write(&[
        image(Content::Cubin(&first), "sm_80"),
        image(Content::Cubin(&second), "sm_90"),
        fatbin::Image {
            options: "-O1 --maxrregcount 40",
            ..image(Content::Ptx(&old), "sm_80")
        },
    ])
    .unwrap()
}

fn on(device: &str, bytes: &[u8]) -> Result<ChosenImage, ModuleError> {
    let driver = Some("9.0".parse().unwrap());
    choose("k.bin", bytes, device.parse().unwrap(), driver, PtxFallback::Allowed)
}

fn refusal(device: &str, bytes: &[u8]) -> String {
    on(device, bytes).unwrap_err().to_string()
}

#[test]
fn a_fat_binary_gives_the_devices_own_machine_code() {
    let bytes = fat_binary();
    let chosen = on("9.0", &bytes).unwrap();
    assert!(chosen.name.starts_with("image 2, cubin for sm_90"), "{}", chosen.name);
    assert_eq!(chosen.bytes, cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &[]));
    assert_eq!(chosen.kernels.len(), 1);
    assert_eq!(chosen.kernels[0].name, "store");
    let sizes: Vec<u32> = chosen.kernels[0]
        .parameters
        .iter()
        .flatten()
        .map(|one| one.size)
        .collect();
    assert_eq!(sizes, [8]);
    assert!(on("8.6", &bytes).unwrap().name.starts_with("image 1, cubin for sm_80"));
}

#[test]
fn ptx_is_taken_where_no_machine_code_fits_and_it_is_allowed() {
    let bytes = fat_binary();
    let chosen = on("10.0", &bytes).unwrap();
    assert!(chosen.is_ptx());
    assert_eq!(chosen.jit.optimization, Some(1));
    assert_eq!(chosen.jit.max_registers, Some(40));
    // Text as it was, without the container's NUL or padding.
    let text = String::from_utf8(chosen.bytes).unwrap();
    assert_eq!(text.trim_end_matches('\0'), nvidia::store_kernel("7.0", "sm_80"));
    let refused = choose("k.bin", &bytes, "10.0".parse().unwrap(), None, PtxFallback::Refused);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "only image 3, PTX for sm_80 at 0x".to_owned()
            + refused_offset(&bytes).as_str()
            + " of k.bin fits 10.0, and the driver is not allowed to compile PTX (PtxFallback::Refused): compile machine code \
               for the device, or allow it"
    );
}

/// Where the PTX lies, as messages state it.
fn refused_offset(bytes: &[u8]) -> String {
    let fatbin = fatbin::read(bytes).unwrap();
    format!("{:x}", fatbin.entries[2].payload_offset)
}

#[test]
fn images_without_a_container_are_taken_as_they_are() {
    let ptx = nvidia::store_kernel("7.8", "sm_90");
    assert!(on("9.0", ptx.as_bytes()).unwrap().is_ptx());
    let machine = cubin(&ptx, "sm_90", &[]);
    assert_eq!(on("9.0", &machine).unwrap().bytes, machine);
    let code = amd::hsaco(amd::KERNELS, "gfx90a", "", 5);
    let chosen = on("gfx90a:sramecc+:xnack-", &code).unwrap();
    assert_eq!((chosen.kind, chosen.bytes == code), (FileKind::Hsaco, true));
    // Hidden arguments are none of the launch's.
    let saxpy = chosen.kernels.iter().find(|kernel| kernel.name == "saxpy").unwrap();
    let sizes: Vec<u32> = saxpy.parameters.iter().flatten().map(|one| one.size).collect();
    assert_eq!(sizes, [8, 8, 4, 4]);
    assert_eq!(saxpy.max_threads_per_block, Some(256));
    let scratch = chosen.kernels.iter().find(|kernel| kernel.name == "scratch").unwrap();
    assert_eq!(scratch.required_block, Some([64, 2, 1]));
}

#[test]
fn bundles_and_offload_binaries_are_taken_apart() {
    let (first, second) = (
        amd::hsaco(amd::KERNELS, "gfx90a", "-xnack", 5),
        amd::hsaco(amd::KERNELS, "gfx1100", "", 5),
    );
    let images = [
        BundleImage::host(),
        BundleImage::hip(&"gfx90a:xnack-".parse().unwrap(), &first),
        BundleImage::hip(&"gfx1100".parse().unwrap(), &second),
    ];
    let options = BundleOptions {
        compression: Some(bundle::Compression::default()),
        ..BundleOptions::default()
    };
    let bytes = bundle::write(&images, &options).unwrap();
    assert!(on("gfx1100", &bytes).unwrap().bytes == second);
    assert!(on("gfx90a:xnack-", &bytes).unwrap().bytes == first);
    assert!(refusal("gfx90a:xnack+", &bytes).contains("it needs xnack-, and the device has xnack+"));

    let machine = cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &[]);
    let stored = |kind, language, triple, arch, bytes| {
        offload_binary::Image::new(kind, language, KindNumbering::BitMask, triple, arch, bytes).unwrap()
    };
    let both = offload_binary::write(&[
        stored(
            StoredKind::Cubin,
            OffloadKind::Cuda,
            "nvptx64-nvidia-cuda",
            "sm_90",
            &machine,
        ),
        stored(
            StoredKind::Object,
            OffloadKind::Hip,
            "amdgcn-amd-amdhsa",
            "gfx1100",
            &second,
        ),
    ])
    .unwrap();
    assert!(on("9.0", &both).unwrap().bytes == machine);
    assert!(on("gfx1100", &both).unwrap().bytes == second);
}

#[test]
fn another_chips_code_is_refused_with_every_reason() {
    let bytes = fat_binary();
    let only_old = cubin(&nvidia::store_kernel("7.0", "sm_80"), "sm_80", &[]);
    assert_eq!(
        refusal("9.0", &only_old),
        "nothing in k.bin loads on 9.0: CUDA_ERROR_NO_BINARY_FOR_GPU (209)\n  image 1, cubin for sm_80: machine code for sm_80 \
         runs on 8.0 and later devices of 8.x alone\nCompile for the device: --target sm_90"
    );
    let text = refusal("7.5", &bytes);
    for part in [
        "image 1, cubin for sm_80",
        "image 2, cubin for sm_90",
        "image 3, PTX for sm_80",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.ends_with("\nCompile for the device: --target sm_75"), "{text}");
    let other_vendor = refusal("gfx942", &only_old);
    assert!(other_vendor.contains("it is code for NVIDIA"), "{other_vendor}");
    assert!(other_vendor.ends_with("--target gfx942"), "{other_vendor}");
}

#[test]
fn ptx_newer_than_the_driver_is_refused_with_the_release() {
    let ptx = nvidia::store_kernel("8.8", "sm_90");
    let refused = choose(
        "k.ptx",
        ptx.as_bytes(),
        "9.0".parse().unwrap(),
        Some("8.0".parse().unwrap()),
        PtxFallback::Allowed,
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "nothing in k.ptx loads on 9.0: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)\n  image 1, PTX for sm_90: PTX ISA 8.8 needs a \
         driver of CUDA 12.9 or newer, and the driver reads up to 8.0\nUpdate the driver, compile machine code (--target \
         sm_90), or ask for an older PTX (--ptx)"
    );
}

#[test]
fn what_is_damaged_never_reaches_a_driver() {
    let machine = cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &[]);
    for end in [1, 16, 63, 64, machine.len() / 2, machine.len() - 1] {
        on("9.0", &machine[..end]).unwrap_err();
    }
    for end in [64, machine.len() / 2, machine.len() - 1] {
        let text = refusal("9.0", &machine[..end]);
        assert!(
            text.starts_with("k.bin is damaged, and nothing in it loads on 9.0:\n  image 1, cubin")
                && text.contains(": it is damaged: "),
            "{text}"
        );
    }
    let fat = fat_binary();
    for end in [3, 40, fat.len() / 2, fat.len() - 1] {
        let result = on("10.0", &fat[..end]);
        assert!(result.is_err(), "{end}: {result:?}");
    }
    let text = refusal("10.0", &fat[..fat.len() - 1]);
    assert!(
        text.starts_with("k.bin is damaged, and nothing in it loads on 10.0:\n  "),
        "{text}"
    );
    // One wrong byte anywhere: whatever is said, nothing panics, and what is chosen was read to the end.
    for index in (0..machine.len()).step_by(7) {
        let mut wrong = machine.clone();
        wrong[index] ^= 0x55;
        let _ = on("9.0", &wrong);
    }
    assert_eq!(refusal("9.0", b""), "k.bin cannot be loaded: the file is empty");
    assert!(
        refusal("9.0", b"hello, world").starts_with("k.bin cannot be loaded: it is none of the files that are read")
    );
    assert!(refusal("9.0", b"\x7fELF").starts_with("k.bin is damaged, and nothing in it loads on 9.0:\n  "));
}

#[test]
fn what_has_to_be_linked_says_so() {
    let object = amd::object(amd::KERNELS, "gfx90a", "", 5);
    assert_eq!(
        refusal("gfx90a", &object),
        "k.bin holds the input of a link, which no driver loads: link it first (`gpulower link`, or \
         serialize::device_link::link)"
    );
    // A relocatable cubin the driver links itself.
    let relocatable = cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &["-c"]);
    assert!(!on("9.0", &relocatable).unwrap().is_ptx());
}

#[test]
fn several_modules_are_one_too_many() {
    let mut archive = b"!<arch>\n".to_vec();
    for name in ["a.cubin/", "b.cubin/"] {
        let machine = cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &[]);
        archive.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, machine.len()).bytes());
        archive.extend(&machine);
        if machine.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    let text = refusal("9.0", &archive);
    assert!(text.starts_with("k.bin holds 2 modules that 9.0 loads ("), "{text}");
    assert!(text.contains("in a.cubin") && text.contains("in b.cubin"), "{text}");
    assert!(
        text.ends_with("): take one of them out (`gpulower extract`), and load each on its own"),
        "{text}"
    );
}

/// What the reader of sizes does not look at, and the driver crashes over.
#[test]
fn a_cubin_whose_tables_are_wrong_is_not_chosen() {
    let mut bytes = cubin(&nvidia::store_kernel("7.8", "sm_90"), "sm_90", &[]);
    on("9.0", &bytes).unwrap();
    let sections = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    // The alignment of the third section.
    bytes[sections + 3 * 64 + 48 + 5] = 1;
    let text = on("9.0", &bytes).unwrap_err().to_string();
    assert!(
        text.starts_with(
            "k.bin is damaged, and nothing in it loads on 9.0:\n  image 1, cubin for sm_90: section 3, \"."
        ) && text.contains("with an alignment of 10995116277"),
        "{text}"
    );
}

/// Launches are checked alike, whichever image of a kernel is loaded. The kernels are those of the check on a GPU.
#[test]
fn text_and_machine_code_describe_the_same_kernels() {
    for (ptx, kernels) in [
        (include_str!("../../gpulower-checks/src/runtime/plain.ptx"), 13),
        (include_str!("../../gpulower-checks/src/runtime/cluster.ptx"), 2),
    ] {
        let text = on("9.0", ptx.as_bytes()).unwrap().kernels;
        let machine = on("9.0", &cubin(ptx, "sm_90", &[])).unwrap().kernels;
        assert_eq!((text.len(), machine.len()), (kernels, kernels));
        for kernel in &text {
            let compiled = machine.iter().find(|other| other.name == kernel.name).unwrap();
            let sizes = |kernel: &KernelInterface| -> Option<Vec<u32>> {
                Some(kernel.parameters.as_ref()?.iter().map(|one| one.size).collect())
            };
            assert!(sizes(kernel).is_some(), "{}", kernel.name);
            assert_eq!(sizes(kernel), sizes(compiled), "{}", kernel.name);
            assert_eq!(kernel.required_block, compiled.required_block, "{}", kernel.name);
            assert_eq!(
                kernel.max_threads_per_block, compiled.max_threads_per_block,
                "{}",
                kernel.name
            );
            assert_eq!(kernel.cluster, compiled.cluster, "{}", kernel.name);
            assert_eq!(
                kernel.max_cluster_blocks, compiled.max_cluster_blocks,
                "{}",
                kernel.name
            );
            assert_eq!((kernel.shared_bytes, compiled.shared_bytes.is_some()), (None, true));
        }
        let of = |name: &str| machine.iter().find(|kernel| kernel.name == name);
        if let Some(arguments) = of("arguments") {
            let sizes: Vec<u32> = arguments.parameters.iter().flatten().map(|one| one.size).collect();
            assert_eq!(sizes, [8, 1, 2, 4, 8, 12]);
            assert_eq!(of("static_and_dynamic_shared").unwrap().shared_bytes, Some(40960));
            assert_eq!(of("exactly_32").unwrap().required_block, Some([32, 1, 1]));
            assert_eq!(of("at_most_64").unwrap().max_threads_per_block, Some(64));
        } else {
            assert_eq!(of("cluster_of_two").unwrap().cluster, Some([2, 1, 1]));
            assert_eq!(of("cluster_rank").unwrap().cluster, None);
        }
    }
}

#[test]
fn options_for_ptxas_become_numbers() {
    assert_eq!(jit_options(""), JitOptions::default());
    let options = jit_options("--opt-level 2 -maxrregcount=24 -lineinfo --unknown=3");
    assert_eq!(
        (options.optimization, options.max_registers, options.line_info),
        (Some(2), Some(24), true)
    );
    assert_eq!(jit_options("-O0").optimization, Some(0));
    assert_eq!(jit_options("--maxrregcount many").max_registers, None);
}
