use super::*;

fn one(text: &str) -> PtxEntry {
    let entries = entries(text.as_bytes()).unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    entry.clone()
}

fn refusal(text: &str) -> String {
    entries(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn parameters_have_the_offsets_of_their_alignment() {
    let entry = one(
        ".version 9.0\n.target sm_90\n// .entry no()\n.visible .entry k(\n\t.param .u8 a,\n\t.param .u64 .ptr .global \
         .align 16 b, /* ) */ .param .align 8 .b8 c[0x14], .param .f32 d, .param .v2 .f32 e, .param .b8 f[2][3])\n\
         .maxntid 128, 2\n.minnctapersm 3 .maxnreg 64\n.pragma \"nounroll }\";\n.reqnctapercluster 2, 1, 1 \
         .maxclusterrank 8 .someday 7, x\n{ .param .b32 x; { } \"}\" // }\n ret; }\n",
    );
    assert_eq!(entry.name, "k");
    let parameters: Vec<_> = entry
        .parameters
        .iter()
        .map(|one| {
            (
                one.name.as_deref().unwrap(),
                one.offset,
                one.size,
                one.kind.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        parameters,
        [
            ("a", 0, 1, "u8"),
            ("b", 8, 8, "u64"),
            ("c", 16, 20, "b8[20]"),
            ("d", 36, 4, "f32"),
            ("e", 40, 8, "v2.f32"),
            ("f", 48, 6, "b8[2][3]")
        ]
    );
    assert_eq!(entry.parameter_bytes, 54);
    assert_eq!((entry.max_threads_per_block, entry.required_block), (Some(256), None));
    assert_eq!(
        (entry.max_registers, entry.min_blocks_per_multiprocessor),
        (Some(64), Some(3))
    );
    assert_eq!((entry.cluster, entry.max_cluster_rank), (Some([2, 1, 1]), Some(8)));
}

#[test]
fn kernels_are_what_has_a_body_and_is_no_function() {
    let text = ".extern .entry declared(.param .u64 p);\n.func (.param .b32 r) helper(.param .b32 a) { .entry { } ret; }\n\
                .weak .entry bare { ret; }\n.entry empty()\n.reqntid 32\n{ ret; }\n";
    let entries = entries(text.as_bytes()).unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["bare", "empty"]);
    assert_eq!(entries[1].required_block, Some([32, 1, 1]));
    assert_eq!(entries[1].max_threads_per_block, Some(32));
    assert!(entries[1].parameters.is_empty());
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    for (text, expected) in [
        (
            ".entry",
            "line 1, offset 0x6: the text ends where the name of a kernel is expected",
        ),
        (
            "\n.entry 7()",
            "line 2, offset 0x8: '7' where the name of a kernel is expected",
        ),
        (".entry k", "the text ends where the body of a kernel is expected"),
        (".entry k(.param .u64 a { }", "'{' behind a parameter"),
        (".entry k(.reg .u64 a) { }", "'.reg' where .param is expected"),
        (
            ".entry k(.param .quux a) { }",
            "parameter \"a\" has no type that is known",
        ),
        (".entry k(.param .align 3 .b8 a) { }", "alignment 3 is no power of two"),
        (".entry k(.param .b8 a[x]) { }", "'x' is no number of 32 bits"),
        (
            ".entry k(.param .b8 a[99999999999]) { }",
            "'99999999999' is no number of 32 bits",
        ),
        (".entry k(.param .b8 a[2) { }", "')' where ']' is expected"),
        (
            ".entry k(.param .b64 a[4294967295]) { }",
            "the parameters up to \"a\" are larger than 4 GiB",
        ),
        (
            ".entry k(.param .b8 a[4294967295], .param .u64 b) { }",
            "the parameters up to \"b\" are larger",
        ),
        (
            ".entry k(.param .u64 ,) { }",
            "',' where the name of a parameter is expected",
        ),
        (".entry k() .maxntid { }", "'{' where a number of threads is expected"),
        (".entry k() + { }", "'+' where the body of a kernel is expected"),
        (".entry k() { ret;", "the text ends where the end of a body is expected"),
        ("/* open", "line 1, offset 0x0: a comment has no end"),
        (".pragma \"open", "a string has no end"),
        (
            "\x1b[2J .entry \x1b[2J",
            "'\\x1b' where the name of a kernel is expected",
        ),
    ] {
        let message = refusal(text);
        assert!(
            message.starts_with("PTX: line ") && message.contains(expected),
            "{text:?}: {message}"
        );
    }
}

#[test]
fn numbers_in_every_notation() {
    for (text, value) in [("0", 0), ("10", 10), ("0x1F", 31), ("010", 8), ("0b11", 3), ("7U", 7)] {
        assert_eq!(number(text.as_bytes()), Some(value), "{text}");
    }
    for text in ["", "0x", "-1", "+1", "1.5", "08", "4294967296"] {
        assert_eq!(number(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn truncations_and_a_wrong_byte_anywhere_are_survived() {
    let text = gpulower_testing::nvidia::rich_module("9.0", "sm_90");
    let good = text.as_bytes();
    assert_eq!(entries(good).unwrap().len(), 4);
    for length in (0..good.len()).step_by(3) {
        let _ = entries(&good[..length]);
    }
    let mut changed = good.to_vec();
    for position in 0..good.len() {
        let values = [0, b'{', b'"', b'/', good[position] ^ 0x91];
        changed[position] = values[position % values.len()];
        let _ = entries(&changed);
        changed[position] = good[position];
    }
}

/// The offsets and sizes that ptxas puts into a cubin.
#[test]
fn ptxas_agrees_on_parameters_and_limits() {
    let text = gpulower_testing::nvidia::rich_module("9.0", "sm_90").replace(
        ".param .u64 p, .param .u32 n, .param .align 8 .b8 block[40])",
        ".param .u64 p, .param .u32 n, .param .align 8 .b8 block[40], .param .u8 c, .param .u16 d, .param .f64 e, \
         .param .align 16 .b8 f[3], .param .b16 g[5])",
    );
    let cubin = gpulower_testing::nvidia::assemble(&text, &["--gpu-name=sm_90"]).cubin;
    let cubin = crate::image::cubin::read(&cubin).unwrap();
    let entries = entries(text.as_bytes()).unwrap();
    assert_eq!(entries.len(), cubin.kernels.len());
    for entry in &entries {
        let kernel = cubin.kernels.iter().find(|kernel| kernel.name == entry.name).unwrap();
        let places = |parameters: &[Parameter]| -> Vec<_> {
            parameters
                .iter()
                .map(|one| (one.ordinal, one.offset, one.size))
                .collect()
        };
        assert_eq!(places(&entry.parameters), places(&kernel.parameters), "{}", entry.name);
        assert_eq!(Some(entry.parameter_bytes), kernel.parameter_bytes, "{}", entry.name);
        assert_eq!(entry.required_block, kernel.required_block);
        assert_eq!(entry.max_threads_per_block, kernel.max_threads_per_block);
    }
}
