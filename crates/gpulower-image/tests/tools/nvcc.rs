//! Tests of nvcc's spelling, most of them against `nvcc --dryrun` of CUDA 13.0, which lists the images of the fat binary
//! without making them.

use gpulower_image::target::*;
use gpulower_testing::nvidia::part;
use std::path::PathBuf;
use std::process::Command;

const CUDA_13: CudaRelease = CudaRelease::new(13, 0);

/// nvcc, and a source file for it.
struct Nvcc {
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl Nvcc {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x.cu"), "__global__ void k() {}\n").unwrap();
        Self {
            program: part("bin/nvcc"),
            directory,
        }
    }

    /// The images in the order of the fat binary, as `cubin sm_90 ptx compute_90`, or what nvcc says against them.
    fn images(&self, flags: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .current_dir(self.directory.path())
            .args(["--dryrun", "-fatbin"])
            .args(flags)
            .arg("x.cu")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        if !output.status.success() {
            return Err(text.lines().filter(|line| !line.starts_with("#$")).collect());
        }
        let images: Vec<String> = text
            .split("--image3=kind=")
            .skip(1)
            .map(|image| {
                let (kind, rest) = image.split_once(",sm=").unwrap();
                let arch = rest.split_once(',').unwrap().0;
                match kind {
                    "elf" => format!("cubin sm_{arch}"),
                    "ptx" => format!("ptx compute_{arch}"),
                    other => format!("{other} {arch}"),
                }
            })
            .collect();
        assert!(!images.is_empty(), "nvcc {flags:?} lists no images:\n{text}");
        Ok(images.join(" "))
    }
}

/// The flags, each with its value after `=` or as the next word.
fn flags(words: &[&str]) -> NvccFlags {
    let mut flags = NvccFlags::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None => (*word, *words.next().unwrap()),
        };
        let list = match name {
            "-arch" | "--gpu-architecture" => &mut flags.arch,
            "-code" | "--gpu-code" => &mut flags.code,
            "-gencode" | "--generate-code" => &mut flags.gencode,
            other => panic!("{other}"),
        };
        list.push(value.to_owned());
    }
    flags
}

fn images(words: &[&str]) -> Result<String, String> {
    let plan = flags(words)
        .plan(None, CUDA_13, &[])
        .map_err(|error| error.to_string())?;
    let images: Vec<String> = plan.images().map(|(_, image)| image.to_string()).collect();
    Ok(images.join(" "))
}

fn refusal(words: &[&str]) -> String {
    images(words).expect_err(&words.join(" "))
}

/// Spellings whose images are nvcc's, in nvcc's order. The empty arguments among them are nvcc's own.
const ACCEPTED: &[&[&str]] = &[
    &["-arch=sm_90"],
    &["-arch", "sm_90"],
    &["--gpu-architecture=sm_90"],
    &["--gpu-architecture", "sm_90"],
    &["-arch=compute_90"],
    &["-arch=sm_90a"],
    &["-arch=compute_90a"],
    &["-arch=sm_100a"],
    &["-arch=sm_100f"],
    &["-arch=compute_100f"],
    &["-arch=sm_103f"],
    &["-arch=sm_121a"],
    &["-arch=all"],
    &["-arch=all-major"],
    &["-arch=sm_90", "-arch=sm_80"],
    &["-arch=sm_80", "-arch=sm_80"],
    &["-arch=sm_90", "-arch=all"],
    &["-arch=all", "--gpu-architecture=sm_90"],
    &["-arch=compute_90", "-code=sm_90"],
    &["-arch=compute_90", "-code=sm_90,compute_90"],
    &["-arch=compute_90", "-code=compute_90,sm_90"],
    &["-arch=compute_90", "-code=sm_90", "-code=compute_90"],
    &["-arch=compute_80", "-code=sm_80,sm_86,sm_87,compute_80"],
    &["-arch=compute_80", "-code=sm_80,sm_86", "-code=sm_87,compute_80"],
    &["-arch=compute_80", "-code=sm_80,sm_86,sm_80"],
    &["-arch=compute_80", "-code=sm_80 ,\tsm_86,"],
    &["-arch=compute_80", "-code=\"sm_80\""],
    &["-arch=compute_80", "-code", ","],
    &["-arch=sm_90a", "-code="],
    &["-arch=all", "-code="],
    &["-code=sm_80,sm_86", "-arch=compute_80"],
    &["-arch=compute_90", "--gpu-code=sm_90a"],
    &["-arch=compute_90", "--gpu-code", "sm_90a"],
    &["-arch=compute_100f", "-code=sm_100,sm_100f"],
    &["-arch=compute_90a", "-code=sm_90a,compute_90a"],
    &["-gencode", "arch=compute_80,code=[sm_80,sm_86,compute_80]"],
    &["-gencode=arch=compute_80,code=[compute_80,sm_86,sm_80]"],
    &["--generate-code", "arch=compute_80,code=[sm_80,sm_86,compute_80]"],
    &["--generate-code=arch=compute_80,code=sm_80"],
    &["-gencode", "arch=compute_80,code=\"sm_80,sm_86\""],
    &["-gencode", "arch=compute_80,\"code=sm_80,sm_86\""],
    &["-gencode", "\"arch=compute_80\",\"code=sm_80\""],
    &["-gencode", "arch=compute_80,\"code\"=sm_80"],
    &["-gencode", "arch=compute_80,code=[\"sm_80\",\"sm_86\"]"],
    &["-gencode", "arch=compute_80,code=[\"sm_80,sm_86\"]"],
    &["-gencode", "arch=compute_80,code=[sm_80,[sm_86,sm_87]]"],
    &["-gencode", "arch=[compute_80],code=[[sm_80]]"],
    &["-gencode", "arch=compute_80,[ code=sm_80]"],
    &["-gencode", "arch=compute_80,code=s\"m_8\"0"],
    &["-gencode", "code=sm_80,arch=compute_80"],
    &["-gencode", " arch=compute_80 ,,\tcode=sm_80 ,"],
    &["-gencode", "arch=compute_80,code=[sm_80,sm_86,sm_80]"],
    &["-gencode", "arch=compute_80,code=[sm_80,sm_80,sm_86]"],
    &["-gencode", "arch=compute_80,code=sm_90"],
    &["-gencode", "arch=compute_90,code=sm_90a"],
    &["-gencode", "arch=compute_90a,code=sm_90a"],
    &["-gencode", "arch=compute_100f,code=sm_100"],
    &["-gencode", "arch=compute_100f,code=[sm_100,sm_103,compute_100f]"],
    &["-gencode", "arch=compute_100f,code=[sm_100f,sm_100]"],
    &["-gencode", "arch=compute_100f,code=[sm_100,sm_100a]"],
    &["-gencode", "arch=compute_100f,code=[sm_100a,sm_103a,compute_100f]"],
    &["-gencode", "arch=compute_100,code=[sm_100f,sm_103a,compute_100]"],
    &["-gencode", "arch=compute_120f,code=sm_121"],
    &[
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90,code=sm_90",
    ],
    &[
        "-gencode",
        "arch=compute_90,code=sm_90",
        "-gencode",
        "arch=compute_80,code=sm_80",
    ],
    &[
        "-gencode",
        "arch=compute_90,code=[sm_90,compute_90]",
        "-gencode=arch=compute_80,code=[sm_80,compute_80]",
    ],
    &[
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_80,code=compute_80",
    ],
    &[
        "-gencode",
        "arch=compute_80,code=[sm_80,sm_86]",
        "-gencode",
        "arch=compute_80,code=[sm_87,sm_80,compute_80]",
    ],
    &[
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_80,code=sm_87",
    ],
    &[
        "-gencode",
        "arch=compute_80,code=sm_90",
        "-gencode",
        "arch=compute_90,code=sm_90",
    ],
    &[
        "-gencode",
        "arch=compute_90,code=sm_90",
        "-gencode",
        "arch=compute_90,code=sm_90a",
    ],
    &["-gencode", "arch=compute_80,code=sm_80", "-arch=sm_90"],
    &["-arch=sm_90", "-gencode", "arch=compute_80,code=sm_80"],
    &["-arch=sm_80", "-gencode", "arch=compute_80,code=[sm_87,sm_80]"],
    &[
        "-arch=compute_80",
        "-code=sm_80,compute_80",
        "-gencode",
        "arch=compute_80,code=[sm_87,sm_89]",
    ],
    &["-arch=sm_90a", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"],
    &["-gencode", "arch=compute_90,code=[sm_90]", "-arch=sm_90a"],
    &["-arch=compute_90a", "-gencode", "arch=compute_90a,code=sm_90a"],
    &["-arch=all", "-gencode", "arch=compute_90a,code=sm_90a"],
    &["-arch=all", "-gencode", "arch=compute_80,code=compute_80"],
    &["-arch=all-major", "-gencode", "arch=compute_75,code=sm_75"],
    &[
        "-gencode=arch=compute_100f,code=sm_103",
        "-gencode=arch=compute_100,code=sm_100",
    ],
    &[
        "-gencode=arch=compute_100f,code=sm_100",
        "-gencode=arch=compute_100,code=sm_100a",
    ],
    &[
        "-gencode=arch=compute_100f,code=sm_103",
        "-gencode=arch=compute_103f,code=sm_103",
    ],
    &[
        "-gencode=arch=compute_100f,code=compute_100f",
        "-gencode=arch=compute_100,code=[compute_100,sm_100]",
    ],
    &["-arch=sm_100f", "-gencode", "arch=compute_100,code=sm_100a"],
];

/// What nvcc refuses too, and a part of our message.
const REFUSED: &[(&[&str], &str)] = &[
    (&["-arch=sm_999"], "-arch=sm_999: unknown chip 'sm_999'"),
    (&["-arch="], "-arch=: empty target name"),
    (&["-arch=90"], "-arch=90: unknown chip '90'"),
    (&["-arch=SM_90"], "unknown chip 'SM_90': did you mean sm_90"),
    (&["-arch= sm_90"], "unknown chip ' sm_90'"),
    (&["-arch=sm_80,sm_90"], "unknown chip 'sm_80,sm_90'"),
    (&["-arch=all,sm_80"], "unknown chip 'all,sm_80'"),
    (&["-arch=\"sm_80\""], "unknown chip '\\\"sm_80\\\"'"),
    (
        &["-arch=gfx942"],
        "-arch=gfx942: 'gfx942' is not nvcc's notation: nvcc has NVIDIA's chips alone; name those of AMD by --target",
    ),
    (
        &["-arch=sm_90+ptx83"],
        "'sm_90+ptx83' is not nvcc's notation: it has no PTX ISA in the name; ask for one by --ptx",
    ),
    (
        &["-code=sm_80"],
        "-code=sm_80 needs -arch: write -arch=compute_80 -code=sm_80,compute_80, or use -gencode",
    ),
    (
        &["-code=sm_80", "-gencode", "arch=compute_80,code=sm_80"],
        "-code=sm_80 needs -arch",
    ),
    (
        &["-arch=sm_90", "-code=sm_90"],
        "-arch=sm_90 -code=sm_90: sm_90 is no virtual architecture: write compute_90 there, and sm_90 as its code",
    ),
    (
        &["-arch=all", "-code=sm_80"],
        "-arch=all decides about the code, and -code=sm_80 does too: leave one of the two out",
    ),
    (&["-arch=native", "-code=sm_80"], "-arch=native decides about the code"),
    (
        &["-arch=compute_90", "-code=[sm_90,compute_90]"],
        "unknown chip '[sm_90'",
    ),
    (
        &["-arch=compute_80", "-code=\"sm_80,sm_86\""],
        "unknown chip 'sm_80,sm_86'",
    ),
    (
        &["-arch=compute_80", "-code=all"],
        "'all' is not nvcc's notation: it stands alone, as in -arch=all",
    ),
    (&["-arch=compute_80", "-code=sm_80 sm_86"], "unknown chip 'sm_80 sm_86'"),
    (
        &["-arch=compute_80", "-code=\"sm_80"],
        "'\"' in -code \\\"sm_80 is not closed: write -gencode",
    ),
    (
        &["-gencode", "arch=compute_80,code=sm_80,sm_86"],
        "'sm_86' in -gencode arch=compute_80,code=sm_80,sm_86 is neither arch=... nor code=...: several codes stand in brackets, as in -gencode arch=compute_80,code=[sm_80,compute_80]",
    ),
    (
        &["-gencode", "arch=compute_80,code='sm_80,sm_86'"],
        "'sm_86\\'' in -gencode",
    ),
    (
        &["-gencode", "arch=compute_80,code={sm_80,sm_86}"],
        "'sm_86}' in -gencode",
    ),
    (
        &["-gencode", "arch=compute_80,code=\\[sm_80,sm_86\\]"],
        "unknown chip '\\\\sm_80'",
    ),
    (
        &["-gencode", "arch=compute_80,code=sm_80\\,sm_86"],
        "'sm_86' in -gencode",
    ),
    (&["-gencode", "arch=compute_80,code=\\\"sm_80\\\""], "is not closed"),
    (
        &["-gencode", "arch=compute_80,code=[sm_80"],
        "'[' in -gencode arch=compute_80,code=[sm_80 is not closed",
    ),
    (&["-gencode", "arch=compute_80,code=sm_80]"], "unknown chip 'sm_80]'"),
    (
        &["-gencode", "arch=compute_80,code=\"[sm_80]\""],
        "unknown chip '[sm_80]'",
    ),
    (
        &["-gencode", "arch=compute_80,code=[sm_80][sm_86]"],
        "unknown chip 'sm_80sm_86'",
    ),
    (
        &["-gencode", "arch=compute_80,code=[sm_80, sm_86]"],
        "unknown chip ' sm_86'",
    ),
    (&["-gencode", "arch=compute_80,code=[sm_80,]"], "empty target name"),
    (&["-gencode", "arch=compute_80,code="], "empty target name"),
    (
        &["-gencode", "arch=compute_80"],
        "-gencode arch=compute_80 lacks code=: write -gencode arch=compute_80,code=[sm_80,compute_80]",
    ),
    (&["-gencode", "code=sm_80"], "-gencode code=sm_80 lacks arch="),
    (&["-gencode", ""], "lacks arch="),
    (&["-gencode", "sm_80"], "'sm_80' in -gencode sm_80 is neither"),
    (
        &["-gencode", "arch = compute_80,code=sm_80"],
        "'arch = compute_80' in -gencode",
    ),
    (&["-gencode", "arch=compute_80 code=sm_80"], "lacks code="),
    (&["-gencode", "\"arch=compute_80,code=sm_80\""], "lacks code="),
    (
        &["-gencode", "arch=compute_80,\ncode=sm_80"],
        "'\\ncode=sm_80' in -gencode",
    ),
    (&["-gencode", "arch=compute_80,code=sm_80,x=y"], "'x=y' in -gencode"),
    (
        &["-gencode", "arch=compute_80,code=sm_80,code=sm_86"],
        "says code= twice: several codes stand in brackets, several architectures in several -gencode",
    ),
    (
        &["-gencode", "arch=compute_80,arch=compute_80,code=sm_80"],
        "says arch= twice",
    ),
    (
        &["-gencode", "arch=sm_80,code=sm_80"],
        "sm_80 is no virtual architecture: write compute_80 there, and sm_80 as its code",
    ),
    (
        &["-gencode", "arch=[compute_80,compute_86],code=sm_86"],
        "unknown chip 'compute_80,compute_86'",
    ),
    (&["-gencode", "arch=all,code=sm_80"], "'all' is not nvcc's notation"),
    (
        &["-gencode", "arch=compute_90,code=sm_80"],
        "incompatible code generation: arch=compute_90, code=sm_80: sm_80 is older and lacks what code for compute_90 may use",
    ),
    (
        &["-gencode", "arch=compute_90a,code=sm_90"],
        "incompatible code generation: arch=compute_90a, code=sm_90: code with all that sm_90a has runs on sm_90a alone",
    ),
    (
        &["-gencode", "arch=compute_90a,code=sm_100"],
        "code with all that sm_90a has runs on sm_90a alone",
    ),
    (
        &["-gencode", "arch=compute_100f,code=sm_110"],
        "incompatible code generation: arch=compute_100f, code=sm_110f: code for the family of sm_100f runs on sm_100f and later chips of the family",
    ),
    (
        &["-gencode", "arch=compute_100f,code=sm_90"],
        "incompatible code generation: arch=compute_100f, code=sm_90",
    ),
    (
        &["-gencode", "arch=compute_103f,code=sm_100"],
        "runs on sm_103f and later chips of the family",
    ),
    (
        &["-gencode", "arch=compute_75,code=sm_100f"],
        "incompatible code generation: arch=compute_75, code=sm_100f: sm_100f takes code generated for its own family",
    ),
    (
        &["-gencode", "arch=compute_100a,code=sm_100f"],
        "incompatible code generation",
    ),
    (
        &["-gencode", "arch=compute_80,code=compute_86"],
        "incompatible code generation: arch=compute_80, code=compute_86: the only PTX of a generation is its own: write compute_80, or compute_86 in a -gencode of its own",
    ),
    (
        &["-gencode", "arch=compute_90a,code=compute_90"],
        "the only PTX of a generation is its own",
    ),
    (
        &[
            "-gencode=arch=compute_100f,code=sm_100",
            "-gencode=arch=compute_100,code=sm_100",
        ],
        "compute_100f and compute_100 would both make code for sm_100f, one of them specific to a family: leave one of the two out",
    ),
    (
        &[
            "-gencode=arch=compute_100f,code=sm_100a",
            "-gencode=arch=compute_100,code=sm_100a",
        ],
        "both make code for sm_100a",
    ),
    (
        &[
            "-gencode=arch=compute_100f,code=sm_103f",
            "-gencode=arch=compute_80,code=sm_103",
        ],
        "compute_100f and compute_80 would both",
    ),
    (
        &["-arch=all-major", "-gencode=arch=compute_100f,code=sm_100"],
        "compute_100 and compute_100f would both",
    ),
    (
        &["-arch=sm_100f", "-gencode=arch=compute_100,code=sm_100"],
        "would both make code",
    ),
];

#[test]
fn images_are_those_of_nvcc() {
    let nvcc = Nvcc::new();
    for words in ACCEPTED {
        assert_eq!(images(words), nvcc.images(words), "{words:?}");
    }
}

#[test]
fn what_nvcc_refuses_is_refused_with_the_reason() {
    let nvcc = Nvcc::new();
    for (words, message) in REFUSED {
        let ours = refusal(words);
        assert!(ours.contains(message), "{words:?}: {ours}");
        assert!(
            nvcc.images(words).is_err(),
            "nvcc accepts {words:?}, and we say: {ours}"
        );
    }
}

/// nvcc hands these on, and they fail later or need its own front end.
#[test]
fn what_cannot_become_an_image_is_refused_before_it_is_made() {
    let nvcc = Nvcc::new();
    for (words, message) in [
        (
            ["-gencode", "arch=compute_100a,code=sm_103a"],
            "code with all that sm_100a has runs on sm_100a alone",
        ),
        (
            ["-gencode", "arch=compute_90a,code=sm_100a"],
            "code with all that sm_90a has runs on sm_90a alone",
        ),
        (
            ["-gencode", "arch=compute_100f,code=sm_110a"],
            "runs on sm_100f and later chips of the family",
        ),
        (
            ["-gencode", "arch=compute_90,code=[sm_90,lto_90]"],
            "-gencode arch=compute_90,code=[sm_90,lto_90]: lto_90 asks for NVIDIA's LTO-IR, which only NVIDIA's own \
             compilers (nvcc, NVRTC) make from source; leave it out here, and hand LTO-IR that they made to the link",
        ),
        (["-arch", "lto_90"], "-arch=lto_90: lto_90 asks for NVIDIA's LTO-IR"),
        (
            ["-gencode", "arch=lto_80,code=sm_80"],
            "lto_80 asks for NVIDIA's LTO-IR",
        ),
    ] {
        assert!(nvcc.images(&words).is_ok(), "{words:?}");
        let ours = refusal(&words);
        assert!(ours.contains(message), "{words:?}: {ours}");
    }
}

/// Every code of CUDA 13.0 for every architecture: what `nvcc --dryrun` of 13.0.88 accepts and `ptxas` compiles.
#[test]
fn compatible_codes() {
    const CODES: &str = "75 80 86 87 88 89 90 90a 100 100a 103 103a 110 110a 120 120a 121 121a";
    let nvcc = Nvcc::new();
    let from = |first: &str| CODES.find(first).map_or("", |at| &CODES[at..]);
    let mut with_family = Vec::new();
    for (arch, family) in [
        ("100", "100 100a 100f 103 103a 103f 110 110a 120 120a 121 121a"),
        ("103", "103 103a 103f 110 110a 120 120a 121 121a"),
        ("110", "110 110a 110f 120 120a 121 121a"),
        ("120", "120 120a 120f 121 121a 121f"),
        ("121", "121 121a 121f"),
        ("100f", "100 100a 100f 103 103a 103f"),
        ("103f", "103 103a 103f"),
        ("110f", "110 110a 110f"),
        ("120f", "120 120a 120f 121 121a 121f"),
        ("121f", "121 121a 121f"),
    ] {
        with_family.push((arch, family));
    }
    for arch in ["75", "80", "86", "87", "88", "89"] {
        with_family.push((arch, from(arch)));
    }
    with_family.push(("90", from("90 ")));
    for arch in ["90a", "100a", "103a", "110a", "120a", "121a"] {
        with_family.push((arch, arch));
    }
    let all: Vec<&str> = with_family.iter().map(|(arch, _)| *arch).collect();
    assert_eq!(all.len(), 23);
    for (arch, expected) in &with_family {
        let spelled = |code: &str| format!("-gencode=arch=compute_{arch},code={code}");
        for code in &all {
            let accepted = images(&[&spelled(&format!("sm_{code}"))]).is_ok();
            let listed = expected.split(' ').any(|listed| listed == *code);
            assert_eq!(accepted, listed, "compute_{arch} to sm_{code}");
        }
        // All of them in one go.
        let codes: Vec<String> = expected.split(' ').map(|code| format!("sm_{code}")).collect();
        let flag = spelled(&format!("[{},compute_{arch}]", codes.join(",")));
        assert_eq!(images(&[&flag]), nvcc.images(&[&flag]), "{flag}");
    }
}

#[test]
fn generations_are_nvccs() {
    let plan = flags(&["-arch=sm_90a", "-gencode=arch=compute_80,code=[sm_80,sm_86]"])
        .plan(None, CUDA_13, &[])
        .unwrap();
    let generations: Vec<String> = plan
        .generations
        .iter()
        .map(|generation| generation.target.to_string())
        .collect();
    assert_eq!(generations, ["compute_90", "compute_90a", "compute_80"]);
    assert!(plan.generations.iter().all(|generation| !generation.images.is_empty()));
    assert_eq!(plan.include_ptx.to_string(), "sm_90,sm_90a");
    assert_eq!(plan.notes, []);
    let plan = flags(&["-arch=compute_90", "-code=sm_90"])
        .plan(None, CUDA_13, &[])
        .unwrap();
    assert_eq!(plan.include_ptx, PtxPolicy::None);
}

#[test]
fn notes_say_what_nvcc_warns_about() {
    let notes = |words: &[&str]| -> Vec<String> {
        let plan = flags(words).plan(None, CUDA_13, &[]).unwrap();
        plan.notes.iter().map(PlanNote::to_string).collect()
    };
    assert_eq!(
        notes(&["-arch=sm_90", "-arch=sm_80"]),
        ["-arch=sm_80 counts, the last one, and -arch=sm_90 does not"]
    );
    assert!(notes(&["-arch=sm_80", "-arch=sm_80"]).is_empty());
    assert_eq!(
        notes(&[
            "-gencode=arch=compute_80,code=sm_90",
            "-gencode=arch=compute_90,code=sm_90"
        ]),
        ["there are two cubins for sm_90, made from compute_80 and compute_90: a device loads one of them only"]
    );
}

/// What nvcc does with two GPUs was observed with a stand-in for its `__nvcc_device_query`.
#[test]
fn native_is_the_devices() {
    let flags = flags(&["-arch=native", "-gencode=arch=compute_80,code=compute_80"]);
    assert_eq!(flags.arch(), Ok(Some(NvccArch::Native)));
    let on = |devices: &[(u16, u16)]| {
        let devices: Vec<ComputeCapability> = devices
            .iter()
            .map(|(major, minor)| ComputeCapability::new(*major, *minor))
            .collect();
        let plan = flags.plan(None, CUDA_13, &devices).map_err(|error| error.to_string())?;
        let images: Vec<String> = plan.images().map(|(_, image)| image.to_string()).collect();
        Ok::<_, String>(images.join(" "))
    };
    assert_eq!(on(&[(9, 0)]).as_deref(), Ok("cubin sm_90 ptx compute_80"));
    assert_eq!(
        on(&[(9, 0), (9, 0), (8, 0)]).as_deref(),
        Ok("cubin sm_90 ptx compute_80 cubin sm_80")
    );
    assert_eq!(
        on(&[]).unwrap_err(),
        "-arch=native found no NVIDIA GPU here: name the architecture, such as -arch=sm_90"
    );
    assert!(
        on(&[(9, 9)])
            .unwrap_err()
            .starts_with("-arch=native found a GPU of compute capability 9.9: unknown chip 'sm_99'")
    );
}

#[test]
fn lists_follow_the_release() {
    let images = |arch: &str, major, minor| {
        let plan = flags(&["-arch", arch])
            .plan(None, CudaRelease::new(major, minor), &[])
            .unwrap();
        let images: Vec<String> = plan.images().map(|(_, image)| image.to_string()).collect();
        images.join(" ").replace("cubin sm_", "E").replace("ptx compute_", "P")
    };
    assert_eq!(
        images("all", 12, 9),
        "E50 E52 E53 E60 E61 E62 E70 E72 E75 E80 E86 E87 E89 E90 E100 E101 E103 P120 E120 E121"
    );
    assert_eq!(images("all-major", 12, 9), "E50 E60 E70 E80 E90 E100 P120 E120");
    assert_eq!(images("all-major", 12, 4), "E50 E60 E70 E80 P90 E90");
    assert_eq!(images("all-major", 11, 8), "E35 E50 E60 E70 E80 P90 E90");
    assert_eq!(
        flags(&["-arch=all"])
            .plan(None, CudaRelease::new(1, 0), &[])
            .unwrap_err()
            .to_string(),
        "-arch=all: CUDA 1.0 is older than all releases that are known: name the architectures"
    );
}

#[test]
fn a_policy_beside_the_flags_is_refused() {
    assert_eq!(
        flags(&["-arch=sm_90"])
            .plan(Some(&PtxPolicy::Lowest), CUDA_13, &[])
            .unwrap_err()
            .to_string(),
        "--include-ptx=lowest beside -arch, -code or -gencode: their code lists say which PTX is included; leave the \
         policy out, or name the chips by --target"
    );
    assert_eq!(
        NvccFlags::default().plan(None, CUDA_13, &[]).unwrap_err().to_string(),
        "nothing to make: name at least one target, such as sm_90 or gfx942"
    );
    assert!(NvccFlags::default().is_empty() && !flags(&["-code="]).is_empty());
}
