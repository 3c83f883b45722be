//! `gpulower export --check`, asked about what `gpulower export` writes and what real clangs make of it.

use super::{
    export::Site,
    support::{Workshop, cuda, example},
};

/// Exports `app.mlir` and gives the commands that finish it.
fn export(site: &Site, with: &str, form: &str, file: &str) -> String {
    let target = if with.contains("cuda") { "sm_80" } else { "gfx90a" };
    let app = example("app.mlir");
    let mut arguments = vec![&*app, "-t", target, "--emit", form, "-o", file];
    // What registers itself is finished by any linker.
    if form != "self" {
        arguments.extend(["--finish-with", with]);
    }
    site.export(&arguments)
}

#[test]
fn exported_files_say_who_registers_them() {
    let site = Site::new();
    export(&site, "clang-15..19,21..23,cuda-13.0", "obj", "app.o");
    let text = site.work.run(&["export", "--check", "app.o"]).quiet().output();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("app.o: host object, "), "{text}");
    for expected in [
        "                kernels  variables  problems",
        "clang 15 to 19   2 of 2          -  none",
        "clang 20         0 of 2          -  it reads entries of 56 bytes in the section",
        "clang 21 to 23   2 of 2          -  none",
    ] {
        assert!(lines.contains(&expected), "no {expected:?} in\n{text}");
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    site.work
        .run(&["export", "--check", "app.o", "--with", "15..19,22"])
        .quiet();
    site.work
        .run(&["export", "--check", "app.o", "--with", "19..20"])
        .failed(1)
        .says(&["app.o: error: input: clang 20: it reads entries of 56 bytes in the section cuda_offloading_entries"]);

    let run = site
        .work
        .run(&["export", "--check", "app.o", "--json", "--with", "19,20"])
        .failed(1);
    let document = run.json();
    assert_eq!((&document["schema"], &document["kind"]), (&1.into(), &"object".into()));
    assert_eq!(document["complete"], false);
    let releases = document["releases"].as_array().expect("releases");
    let of = |clang: u32| {
        releases
            .iter()
            .find(|release| release["clang"] == clang)
            .expect("a release")
    };
    assert_eq!(releases.len(), 2, "{document}");
    assert_eq!(of(19)["complete"], true, "{document}");
    assert_eq!(of(19)["kernels"].as_array().map(Vec::len), Some(2), "{document}");
    assert_eq!(
        of(20)["missing_kernels"].as_array().map(Vec::len),
        Some(2),
        "{document}"
    );
    let image = &document["images"][0];
    assert_eq!(
        (&image["arch"], &image["form"], &image["made_for"], &image["triple"]),
        (
            &"sm_80".into(),
            &"relocatable cubin".into(),
            &"sm_80".into(),
            &"nvptx64-nvidia-cuda".into()
        ),
        "{document}"
    );
    assert_eq!(
        image["symbols"]["kernels"].as_array().map(Vec::len),
        Some(2),
        "{document}"
    );
}

#[test]
fn llvm_ir_and_archives_are_checked_too() {
    let site = Site::new();
    for form in ["ll", "bc"] {
        let file = format!("app.{form}");
        export(&site, "clang-19,cuda-13.0", form, &file);
        let text = site
            .work
            .run(&["export", "--check", &file, "--with", "19"])
            .quiet()
            .output();
        assert!(text.starts_with(&format!("{file}: host code as LLVM IR, ")), "{text}");
        assert!(
            text.contains("note: a release of clang has to be able to read this LLVM IR, too"),
            "{text}"
        );
        site.work
            .run(&["export", "--check", &file, "--with", "22"])
            .failed(1)
            .says(&[
                "clang 22: it looks for entries in the section llvm_offload_entries, and they are in cuda_offloading",
            ]);
    }
    export(&site, "clang-22,cuda-13.0", "obj", "app.o");
    assert!(site.tool("ar", &["rcs", "libapp.a", "app.o"]).status.success());
    let text = site
        .work
        .run(&["export", "--check", "libapp.a", "--with", "22"])
        .quiet()
        .output();
    assert!(
        text.contains("archive, ") && text.contains("kernels in app.o"),
        "{text}"
    );
    assert!(text.contains("-Wl,--should-extract=sm_80 does it, too"), "{text}");
}

#[test]
fn numbers_of_hip_and_images_for_older_clangs_are_refused() {
    let site = Site::new();
    export(&site, "clang-15..19,rocm", "obj", "hip.o");
    site.work
        .run(&["export", "--check", "hip.o", "--with", "16,19"])
        .quiet();
    site.work
        .run(&["export", "--check", "hip.o", "--with", "20"])
        .failed(1)
        .says(&["clang 20: it reads entries of 56 bytes in the section hip_offloading_entries"]);
    site.work
        .run(&["export", "--check", "hip.o", "--with", "22"])
        .failed(1)
        .says(&["clang 22: it looks for entries in the section llvm_offload_entries, and they are in hip_offloading_entries"]);
    export(&site, "clang-20,rocm", "obj", "hip.o");
    site.work
        .run(&["export", "--check", "hip.o", "--with", "22"])
        .failed(1)
        .says(&["hip_offloading_entries"]);
}

#[test]
fn finished_programs_say_what_they_register() {
    let site = Site::new();
    for clang in ["16", "19", "22"] {
        let commands = export(&site, &format!("clang-{clang},cuda-13.0"), "obj", "app.o");
        let ran = site.finish(&commands, "", "app");
        assert!(ran.log.contains("launch saxpy"), "{}", ran.log);
        let text = site.work.run(&["export", "--check", "app"]).quiet().output();
        assert!(text.contains("by itself   2 of 2"), "{text}");
        // What is not done does no harm here: the program is finished.
        site.work.run(&["export", "--check", "app", "--with", "20"]).quiet();

        // The command without --offload-link succeeds as well.
        let plain = commands.replace(" --offload-link", "");
        assert_ne!(plain, commands);
        let output = site.tool("sh", &["-ec", &plain]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        site.work
            .run(&["export", "--check", "app"])
            .failed(1)
            .says(&["the program has offload entries and registers none: it was linked without --offload-link"]);
    }
    // A layout for other releases links, too.
    let commands = export(&site, "clang-19,cuda-13.0", "obj", "app.o");
    let output = site.tool("sh", &["-ec", &commands.replace("clang-19", "clang-22")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    site.work
        .run(&["export", "--check", "app"])
        .failed(1)
        .says(&["its constructor reads none of its entries, which are in cuda_offloading_entries"]);
    export(&site, "clang-19,cuda-13.0", "self", "self.o");
    let text = site.work.run(&["export", "--check", "self.o"]).quiet().output();
    let first = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    assert!(
        first.ends_with("it registers them with CUDA by itself, and needs no clang"),
        "{text}"
    );
}

#[test]
fn clangs_of_this_machine_may_be_named() {
    let site = Site::new();
    export(&site, "clang-19,cuda-13.0", "obj", "app.o");
    site.work
        .run(&["export", "--check", "app.o", "--with", "/usr/bin/clang-19"])
        .quiet();
    site.work
        .run(&["export", "--check", "app.o", "--with", "19,/usr/bin/clang-22"])
        .failed(1)
        .says(&["clang 22: it looks for entries"]);
    let run = |path: &str, with: &str| {
        let mut command = site.work.command(&["export", "--check", "app.o", "--with", with]);
        let output = command.env("PATH", path).output().expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(run("/usr/lib/llvm-19/bin", "clang"), (Some(0), String::new()));
    for (with, message) in [
        (
            "clang",
            "error: plan: there is no program clang in PATH: name a release, such as clang-19",
        ),
        (
            "/nonexistent/clang",
            "error: plan: cannot run /nonexistent/clang to ask for its version",
        ),
        (
            "/bin/true",
            "error: plan: /bin/true cannot be exported for: it does not say a version of clang",
        ),
        (
            "/bin/false",
            "error: plan: /bin/false did not say its version when asked with --version",
        ),
    ] {
        let (status, stderr) = run("/nonexistent", with);
        assert_eq!(status, Some(1), "{with}: {stderr}");
        assert!(stderr.starts_with(message), "{with}: {stderr}");
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let work = Workshop::new();
    work.write("script", "#!/bin/sh\n");
    work.write("broken.ll", "define void @f( {");
    let refused = |file: &str, message: &str| {
        work.run(&["export", "--check", file]).failed(1).says(&[message]);
    };
    refused(
        "script",
        "script: error: input: cannot be checked: not an ELF file: it starts with [23 21 2f 62] instead of [7f 45 4c 46]; name \
         a host object, a program, an archive of objects, or host code as LLVM IR",
    );
    refused(
        "broken.ll",
        "broken.ll: error: input: cannot be checked: LLVM IR:1:18: error: expected type",
    );
    refused("missing.o", "cannot read missing.o");
    let program = cuda().join("bin/ptxas").display().to_string();
    refused(&program, "there are neither offload entries nor device images in it");
    for (arguments, message) in [
        (
            &["--check", "script", "--with", "gcc-99"][..],
            "--with gcc-99: \"gcc-99\" is no clang: write clang-19",
        ),
        (
            &["--check", "script", "--with", "14"],
            "--with 14: clang 14 cannot finish the program",
        ),
        (
            &["--check", "script", "--with", "19,cuda-12.4"],
            "\"cuda-12.4\" is no clang",
        ),
        (&["--check", "script", "app.mlir"], "cannot be used with"),
        (
            &["app.mlir", "-o", "app.o", "--with", "19"],
            "--with and --json go with --check FILE",
        ),
        (&[], "required arguments were not provided"),
    ] {
        work.run(&[&["export"], arguments].concat()).failed(2).says(&[message]);
    }
}
