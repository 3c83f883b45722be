//! The oracle is `ptxas`: what it writes for all kernels together.

use gpulower_image::image::cubin;
use gpulower_image::image::join_cubin::*;
use gpulower_image::target::{CudaRelease, NvidiaArch};
use gpulower_testing::{
    kernels::{BODIES, BRANCHES, DIVISION, FILES, PLAIN, SHARED, head, kernel, lines},
    nvidia,
};

/// What `ptxas` makes of PTX.
fn compile(ptx: &str, chip: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("k.ptx"), directory.path().join("k.cubin"));
    std::fs::write(&input, ptx).unwrap();
    let arch = format!("-arch={chip}");
    let mut arguments: Vec<&std::ffi::OsStr> = vec![arch.as_ref(), input.as_ref(), "-o".as_ref(), output.as_ref()];
    arguments.extend(options.iter().map(|option| std::ffi::OsStr::new(*option)));
    nvidia::run("ptxas", &arguments);
    std::fs::read(output).unwrap()
}

/// Joins kernels that were compiled apart, and compiles them together.
fn both(kernels: &[(&str, &str)], chip: &str) -> (Vec<u8>, Vec<u8>) {
    let texts: Vec<String> = kernels.iter().map(|(name, body)| kernel(name, body)).collect();
    let parts: Vec<Vec<u8>> = texts
        .iter()
        .map(|text| compile(&(head(chip) + text), chip, &[]))
        .collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let joined = join(&parts).unwrap_or_else(|error| panic!("{chip}: {error}"));
    (joined, compile(&(head(chip) + &texts.concat()), chip, &[]))
}

#[test]
fn joined_kernels_are_what_ptxas_makes_of_them_together() {
    let named: Vec<(&str, &str)> = ["k", "k1", "_Z4axpyfPfS_", "text", "a$b", "gamma"]
        .into_iter()
        .zip(BODIES)
        .collect();
    let mut reversed = named.clone();
    reversed.reverse();
    for chip in [
        "sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103a", "sm_110f", "sm_120", "sm_121a",
    ] {
        for kernels in [&named, &reversed] {
            let (joined, whole) = both(kernels, chip);
            assert!(joined == whole, "{chip}: joined and compiled together differ");
        }
    }
    let (joined, _) = both(&named, "sm_90");
    let info = cubin::read(&joined).unwrap();
    assert_eq!(info.kernels.len(), named.len());
}

#[test]
fn a_kernel_is_joined_under_another_name() {
    for chip in ["sm_75", "sm_90", "sm_120"] {
        let part = |name, body| compile(&(head(chip) + &kernel(name, body)), chip, &[]);
        let (one, two) = (part("content_1", DIVISION), part("content_2", BRANCHES));
        let joined = join_renamed(&[
            (&one, &[("content_1", "first")]),
            (&two, &[]),
            (&one, &[("content_1", "a_copy_of_the_first")]),
        ])
        .unwrap();
        let kernels = [
            ("first", DIVISION),
            ("content_2", BRANCHES),
            ("a_copy_of_the_first", DIVISION),
        ];
        let text: String = kernels.iter().map(|(name, body)| kernel(name, body)).collect();
        assert!(joined == compile(&(head(chip) + &text), chip, &[]), "{chip}");
    }
}

#[test]
fn kernels_of_one_cubin_are_what_ptxas_makes_of_each() {
    let mut named: Vec<(&str, &str)> = ["k", "k1", "_Z4axpyfPfS_", "text", "a$b", "gamma"]
        .into_iter()
        .zip(BODIES)
        .collect();
    // Shared memory that is not used, and some that is by a kernel with functions.
    let declared = format!(".shared .align 4 .b8 unused[64]; {DIVISION}");
    let both = format!("{DIVISION} {SHARED}");
    named.extend([("declares", declared.as_str()), ("shares", both.as_str())]);
    for chip in ["sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_103"] {
        assert!(can_be_split(NvidiaArch::parse(chip).unwrap(), CudaRelease::new(13, 0)));
        let texts: Vec<String> = named.iter().map(|(name, body)| kernel(name, body)).collect();
        let whole = compile(&(head(chip) + &texts.concat()), chip, &[]);
        let renamed: Vec<(&str, &str)> = named.iter().map(|(name, _)| (*name, "content")).collect();
        let apart = split(&whole, &renamed).unwrap_or_else(|error| panic!("{chip}: {error}"));
        for ((name, body), apart) in named.iter().zip(apart) {
            let alone = compile(&(head(chip) + &kernel("content", body)), chip, &[]);
            assert!(apart == alone, "{chip}: `{name}` of the whole and alone differ");
        }
    }
}

#[test]
fn one_part_is_itself() {
    let part = compile(&(head("sm_90") + &kernel("k", SHARED)), "sm_90", &[]);
    assert_eq!(join(&[&part]).unwrap(), part);
    assert_eq!(refusal(&[]), "cubins cannot be joined: there are none");
}

fn refusal(parts: &[&[u8]]) -> String {
    join(parts).expect_err("is refused").to_string()
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let part = |text: &str, chip| compile(&(head(chip) + text), chip, &[]);
    let plain = part(&kernel("k", PLAIN), "sm_90");
    assert_eq!(
        refusal(&[&plain, &plain]),
        "cubins 0 and 1 cannot be joined: both have `k`"
    );
    for name in ["", "two words", "zero\0", "_param"] {
        let renamed = join_renamed(&[(&plain, &[("k", name)])]);
        let message = renamed.expect_err("is refused").to_string();
        let expected = format!("a kernel cannot be called `{}`", name.escape_debug());
        assert!(message.ends_with(&expected), "{message}");
    }
    let other_chip = part(&kernel("other", PLAIN), "sm_80");
    let message = refusal(&[&plain, &other_chip]);
    assert!(message.ends_with(" is not the same"), "{message}");
    let other_options = compile(&(head("sm_90") + &kernel("other", PLAIN)), "sm_90", &["-O1"]);
    let message = refusal(&[&plain, &other_options]);
    assert!(message.ends_with(" is not the same"), "{message}");
    let relocatable = nvidia::relocatable_cubin(&(head("sm_90") + &kernel("other", PLAIN)), "sm_90");
    assert_eq!(
        refusal(&[&plain, &relocatable]),
        "cubin 1 cannot be joined with others: it is not an executable one: relocatable cubins are joined by a linker"
    );
    let text = b"no cubin".as_slice();
    let message = refusal(&[text, &plain]);
    assert!(
        message.starts_with("cubin 0 cannot be joined with others: not an ELF file"),
        "{message}"
    );
    let variable = |name: &str| {
        let body = format!("ld.global.f32 %f1, [of_{name}];");
        part(
            &(format!(".global .f32 of_{name} = 0f3F800000;\n") + &kernel(name, &body)),
            "sm_90",
        )
    };
    let (one, two) = (variable("one"), variable("two"));
    let message = refusal(&[&one, &two]);
    assert!(
        message.starts_with("cubins 0 and 1 cannot be joined: both have `.nv."),
        "{message}"
    );
    // One part with variables is no reason to compile the others with it.
    let joined = cubin::read(&join(&[&one, &plain]).unwrap()).unwrap();
    assert_eq!((joined.kernels.len(), joined.global_bytes), (2, 4));
    let texture = part(
        &(".global .texref texture;\n".to_owned()
            + &kernel("other", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f2}, [texture, {%r1}];")),
        "sm_90",
    );
    let message = refusal(&[&plain, &texture]);
    assert!(
        message.starts_with("cubin 1 cannot be joined with others: it is not known how"),
        "{message}"
    );
}

#[test]
fn line_tables_are_joined() {
    // So many that lines of the PTX need two bytes.
    let kernels: Vec<String> = (0..12)
        .map(|index| {
            kernel(
                &format!("k{index}"),
                &lines(1 + index % 2, 40 * index + 1, BODIES[index as usize % 3]),
            )
        })
        .chain([kernel("without_lines", PLAIN)])
        .collect();
    for chip in ["sm_80", "sm_90", "sm_100"] {
        let compile = |text: &str| compile(&(head(chip) + text + FILES), chip, &["-lineinfo"]);
        let parts: Vec<Vec<u8>> = kernels.iter().map(|text| compile(text)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        assert!(join(&parts).unwrap() == compile(&kernels.concat()), "{chip}");
    }
}

#[test]
fn components_of_a_module_are_joined() {
    let module = format!(
        "{}.func (.param .f32 r) half(.param .f32 x) {{ .reg .f32 %f<2>; ld.param.f32 %f1, [x]; \
         mul.f32 %f1, %f1, 0f3F000000; st.param.f32 [r], %f1; ret; }}\n\
         .shared .align 4 .b8 tile[512];\n{}{}{}",
        head("sm_90"),
        kernel("calls", "call (%f1), half, (%f1);"),
        kernel(
            "shares",
            "st.shared.f32 [tile], %f1; bar.sync 0; ld.shared.f32 %f1, [tile+4];"
        ),
        kernel(
            "shares_and_calls",
            "st.shared.f32 [tile], %f1; bar.sync 0; call (%f1), half, (%f1);"
        ),
    );
    let components = gpulower_image::image::ptx_components::components(&module).unwrap();
    assert_eq!(components.len(), 3);
    let parts: Vec<Vec<u8>> = components
        .iter()
        .map(|part| compile(&part.text(), "sm_90", &[]))
        .collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    assert!(join(&parts).unwrap() == compile(&module, "sm_90", &[]));
}

/// Changes to `part` that make it another, or no cubin at all.
fn damaged(part: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..part.len()).step_by(97).map(|length| part[..length].to_vec());
    let changed = (0..part.len()).map(|position| {
        let mut part = part.to_vec();
        part[position] = [part[position] ^ 1, part[position] ^ 0x80, 0xff][position % 3];
        part
    });
    cut.chain(changed)
}

#[test]
fn what_a_cubin_does_not_say_of_each_kernel_is_not_split() {
    let of = |chip, release| can_be_split(NvidiaArch::parse(chip).unwrap(), release);
    let release = CudaRelease::new(13, 0);
    for chip in ["sm_100", "sm_100a", "sm_101", "sm_110", "sm_120", "sm_121a"] {
        assert!(!of(chip, release), "{chip}");
    }
    assert!(!of("sm_90", CudaRelease::new(12, 5)) && of("sm_90", CudaRelease::new(12, 6)));
    // One of two kernels for sm_100 needs what is in no word of its own.
    let text = head("sm_100") + &kernel("k", PLAIN) + &kernel("other", DIVISION);
    let message = split(&compile(&text, "sm_100", &[]), &[("k", "one"), ("other", "two")]).unwrap_err();
    assert!(
        message.to_string().contains("section `.nv.compat` belongs"),
        "{message}"
    );
}

#[test]
fn of_a_damaged_cubin_nothing_is_lost() {
    let text = head("sm_90") + &kernel("k", SHARED) + &kernel("other", DIVISION);
    let whole = compile(&text, "sm_90", &[]);
    let back: [Renaming<'_>; 2] = [&[("one", "k")], &[("two", "other")]];
    for damaged in damaged(&whole) {
        if let Ok(apart) = split(&damaged, &[("k", "one"), ("other", "two")]) {
            let parts: Vec<(&[u8], Renaming<'_>)> = apart.iter().map(Vec::as_slice).zip(back).collect();
            assert!(join_renamed(&parts).unwrap() == damaged);
        }
    }
    for kernels in [&[("other", "one"), ("k", "two")][..], &[("k", "one")], &[]] {
        let message = split(&whole, kernels).unwrap_err().to_string();
        assert!(
            message.ends_with("its kernels are others, or in another order"),
            "{message}"
        );
    }
}

#[test]
fn damaged_parts_do_no_harm() {
    for chip in ["sm_75", "sm_100"] {
        let [part, other] = [("k", PLAIN), ("other", DIVISION)]
            .map(|(name, body)| compile(&(head(chip) + &kernel(name, body)), chip, &[]));
        let largest = 2 * (part.len() + other.len());
        for damaged in damaged(&part) {
            // Code and constants may be anything; what is joined is what can be read.
            if let Ok(joined) = join(&[&damaged, &other]) {
                assert!(joined.len() < largest);
                cubin::read(&joined).unwrap();
            }
        }
    }
}
