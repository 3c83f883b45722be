//! The cache that machines share, through the programs.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use gpulower_testing::servers::{Certificate, PASSWORD, Server, USER, free_port};

use super::support::{Run, Workshop, example};

/// The results of a machine: its own directory and its own home.
fn compile(work: &Workshop, machine: &str, url: &str, input: &str, more: &[&str]) -> Run {
    let output = format!("{machine}-out/");
    let mut arguments = vec![
        "compile",
        input,
        "-o",
        &output,
        "--target",
        "sm_90,gfx942",
        "--report=json",
    ];
    arguments.extend(more);
    fs::create_dir_all(work.path(machine)).expect("made");
    let command = &mut work.command(&arguments);
    command
        .env("HOME", work.path(machine))
        .env("XDG_CACHE_HOME", work.path(machine));
    Run::of(
        command
            .env_remove("GPULOWER_CACHE")
            .env("GPULOWER_CACHE_REMOTE", url)
            .output()
            .expect("it runs"),
    )
}

/// Where each artifact came from, and how many stages were carried out.
fn sources(run: &Run) -> (Vec<String>, usize) {
    let report = run.json();
    let artifacts = report["artifacts"].as_array().expect("a list");
    let stages = artifacts
        .iter()
        .map(|artifact| artifact["stages"].as_array().expect("a list").len())
        .sum();
    let decisions = artifacts
        .iter()
        .flat_map(|artifact| artifact["decisions"].as_array().expect("a list"));
    let of_cache = decisions.filter(|decision| decision["stage"] == "cache");
    (
        of_cache
            .map(|decision| decision["choice"].as_str().expect("text").to_owned())
            .collect(),
        stages,
    )
}

fn shared(run: &Run, counter: &str) -> u64 {
    run.json()["shared_cache"][counter].as_u64().expect("a number")
}

fn assert_same_outputs(work: &Workshop, one: &str, other: &str) {
    let (one, other) = (format!("{one}-out"), format!("{other}-out"));
    assert_eq!(work.files(&one), work.files(&other));
    for file in work.files(&one) {
        assert!(
            work.read(&format!("{one}/{file}")) == work.read(&format!("{other}/{file}")),
            "{file}"
        );
    }
}

#[test]
fn a_machine_compiles_nothing_that_another_has_compiled() {
    let server = Server::redis(Some(PASSWORD));
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}/0/team", server.port);
    let work = Workshop::new();
    let one = compile(&work, "a", &url, &example("softmax.mlir"), &["-j", "1"]).quiet();
    assert!(sources(&one).1 > 4 && shared(&one, "uploaded") >= 3, "{}", one.stderr);
    // Another home, another path of the input, another number of threads.
    let elsewhere = work.path("elsewhere/softmax.mlir");
    work.write(
        "elsewhere/softmax.mlir",
        fs::read(example("softmax.mlir")).expect("read"),
    );
    let other = compile(&work, "b", &url, &elsewhere.display().to_string(), &["-j", "4"]).quiet();
    assert_eq!(sources(&other), (vec!["remote".to_owned(); 2], 0));
    assert_eq!((shared(&other, "hits"), shared(&other, "misses")), (1, 0));
    assert_same_outputs(&work, "a", "b");
    // From then on it is on that machine, whatever becomes of the server.
    drop(server);
    let again = compile(&work, "b", &url, &example("softmax.mlir"), &[]).quiet();
    assert_eq!(sources(&again), (vec!["disk".to_owned(); 2], 0));
    // Nothing shows the password.
    let trace = work
        .command(&[
            "compile",
            &example("gelu.mlir"),
            "-o",
            "x/",
            "--target",
            "gfx942",
            "--cache-remote",
            &url,
            "--report=json",
        ])
        .env_remove("GPULOWER_CACHE")
        .env("XDG_CACHE_HOME", work.path("c"))
        .env("GPULOWER_LOG", "trace")
        .output()
        .expect("it runs");
    for bytes in [&trace.stdout, &trace.stderr, &one.stdout, &other.stdout] {
        assert!(!String::from_utf8_lossy(bytes).contains(PASSWORD));
    }
    let wrong = work.run(&[
        "compile",
        "x.mlir",
        "--cache-remote",
        &format!("redis//:{PASSWORD}@host"),
    ]);
    assert!(
        wrong.status != 0 && !wrong.stderr.contains(PASSWORD),
        "{}",
        wrong.stderr
    );
}

/// An authority of one's own is named as for other programs: in SSL_CERT_FILE, or in the system's store.
#[test]
fn authorities_are_those_that_the_machine_trusts() {
    let certificate = Certificate::new();
    let redis = Server::redis_with_tls(&certificate);
    let webdav = Server::webdav_with_tls(&certificate);
    for url in [
        format!("rediss://127.0.0.1:{}/0/tls", redis.port),
        format!("webdavs://{USER}:{PASSWORD}@127.0.0.1:{}/tls", webdav.port),
    ] {
        let work = Workshop::new();
        let compile = |machine: &str, authority: Option<&Path>, deadline: &str| {
            let url = format!("{url}?deadline={deadline}");
            let arguments = [
                "compile",
                &example("saxpy.mlir"),
                "-t",
                "gfx942",
                "-o",
                machine,
                "--report=json",
            ];
            let mut command = work.command(&arguments);
            command
                .env_remove("GPULOWER_CACHE")
                .env("XDG_CACHE_HOME", work.path(&format!("home-{machine}")));
            command
                .env("GPULOWER_CACHE_REMOTE", url)
                .env_remove("SSL_CERT_FILE")
                .env_remove("SSL_CERT_DIR");
            if let Some(authority) = authority {
                command.env("SSL_CERT_FILE", authority);
            }
            Run::of(command.output().expect("it runs"))
        };
        let authority = certificate.authority();
        let one = compile("a", Some(&authority), "60s").quiet();
        assert!(shared(&one, "uploaded") > 0);
        let other = compile("b", Some(&authority), "60s").quiet();
        assert_eq!((shared(&other, "hits"), shared(&other, "misses")), (1, 0));
        // Nobody whom this machine knows says who that is: that is told, and not waited for.
        let stranger = compile("c", None, "60s").failed(0);
        assert_eq!((shared(&stranger, "hits"), shared(&stranger, "uploaded")), (0, 0));
        stranger.says(&["is out, and is done without for now", "certificate"]);
    }
}

#[test]
fn authorities_that_cannot_be_read_are_told() {
    let redis = Server::redis_with_tls(&Certificate::new());
    let url = format!("rediss://127.0.0.1:{}/0?deadline=60s", redis.port);
    let work = Workshop::new();
    let arguments = [
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "gfx942",
        "-o",
        "k",
        "--cache-remote",
        &url,
    ];
    let output = work
        .command(&arguments)
        .env_remove("GPULOWER_CACHE")
        .env("XDG_CACHE_HOME", work.path("home"))
        .env("SSL_CERT_FILE", work.path("nowhere.pem"))
        .output();
    Run::of(output.expect("it runs"))
        .failed(0)
        .says(&["is out, and is done without for now", "nowhere.pem"]);
}

#[test]
fn without_a_server_everything_is_compiled_and_one_warning_says_so() {
    let work = Workshop::new();
    let url = format!("redis://127.0.0.1:{}/0", free_port());
    let run = compile(&work, "a", &url, &example("softmax.mlir"), &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(
        run.stderr.matches("is out, and is done without for now").count(),
        1,
        "{}",
        run.stderr
    );
    assert!(shared(&run, "failures") + shared(&run, "skipped") > 0 && shared(&run, "misses") == 0);
    let alone = compile(&work, "b", "", &example("softmax.mlir"), &[]).quiet();
    assert!(alone.json()["shared_cache"].is_null());
    assert_same_outputs(&work, "a", "b");
}

#[test]
fn only_signed_results_are_taken_where_that_is_asked_for() {
    let server = Server::redis(None);
    let url = format!("redis://127.0.0.1:{}/0", server.port);
    let work = Workshop::new();
    let key = |name: &str| work.run(&["cache", "keygen", name]).quiet().output().trim().to_owned();
    let (ours, theirs) = (key("ours.key"), key("theirs.key"));
    work.run(&["cache", "keygen", "ours.key"]).failed(1);
    let path = work.path("ours.key").display().to_string();
    let input = example("softmax.mlir");
    compile(&work, "a", &url, &input, &[]).quiet();
    let unsigned = compile(&work, "b", &url, &input, &["--cache-accept-key", &ours]);
    assert!(
        sources(&unsigned).1 > 4 && unsigned.stderr.contains("it is not signed"),
        "{}",
        unsigned.stderr
    );
    assert_eq!((shared(&unsigned, "hits"), shared(&unsigned, "uploaded")), (0, 0));
    // A signer replaces what it refuses, and it alone does.
    compile(
        &work,
        "d",
        &url,
        &input,
        &["--cache-sign-key", &path, "--cache-accept-key", &ours],
    );
    let stranger = compile(&work, "c", &url, &input, &["--cache-accept-key", &theirs]);
    assert!(stranger.stderr.contains("which is not accepted"), "{}", stranger.stderr);
    assert_same_outputs(&work, "a", "c");
    let both = format!("{theirs},{ours}");
    compile(&work, "f", &url, &input, &["--cache-accept-key", &both]).quiet();
    let again = compile(&work, "e", &url, &input, &["--cache-accept-key", &ours]).quiet();
    assert_eq!(sources(&again), (vec!["remote".to_owned(); 2], 0));
}

#[test]
fn results_are_moved_between_machines_and_shown_in_sizes() {
    let server = Server::webdav();
    let url = format!(
        "webdav://{}:{PASSWORD}@127.0.0.1:{}/kernels",
        gpulower_testing::servers::USER,
        server.port
    );
    let work = Workshop::new();
    let cache = |action: &[&str], directory: &str| {
        let mut arguments = vec!["cache"];
        arguments.extend(action);
        arguments.extend(["--cache-dir", directory, "--cache-remote", &url]);
        work.run(&arguments).quiet().output()
    };
    // Made without the service, and read-only clients send nothing.
    compile(&work, "a", "", &example("softmax.mlir"), &[]).quiet();
    compile(
        &work,
        "r",
        &format!("{url}?read-only=true"),
        &example("softmax.mlir"),
        &[],
    )
    .quiet();
    assert!(cache(&["show"], "a/gpulower").contains("kernels holds 0 results in 0 bytes"));
    let pushed = cache(&["push"], "a/gpulower");
    assert!(
        pushed.contains(" results of ") && pushed.contains("KiB, and had 0"),
        "{pushed}"
    );
    assert!(cache(&["push"], "a/gpulower").contains("got 0 results of 0 bytes"));
    let pulled = cache(&["pull"], "b/gpulower");
    assert!(pulled.contains("; 0 were here"), "{pulled}");
    let known = compile(&work, "b", "", &example("softmax.mlir"), &[]).quiet();
    assert_eq!(sources(&known), (vec!["disk".to_owned(); 2], 0));
    assert!(cache(&["prune", "--keep", "5K"], "a/gpulower").contains(" lost "));
    assert!(cache(&["clear"], "a/gpulower").contains(" lost "));
    assert!(cache(&["show"], "a/gpulower").contains("kernels holds 0 results in 0 bytes"));
    // What is on disk was not meant.
    assert!(!cache(&["show"], "a/gpulower").starts_with("a/gpulower/results holds 0"));
    work.run(&["cache", "push", "--cache-dir", "a/gpulower"])
        .failed(2)
        .says(&["--cache-remote"]);
    work.run(&["cache", "prune", "--cache-dir", "a/gpulower"])
        .failed(2)
        .says(&["--keep"]);
    let pruned = work
        .run(&["cache", "prune", "--keep", "1K", "--cache-dir", "a/gpulower"])
        .quiet()
        .output();
    assert!(pruned.starts_with("a/gpulower/results holds "), "{pruned}");
}

#[test]
fn a_directory_of_a_group_is_used_when_it_is_named() {
    let work = Workshop::new();
    let group = fs::metadata(work.path(""))
        .map(|metadata| std::os::unix::fs::MetadataExt::gid(&metadata))
        .expect("there");
    let whom = format!("group:{group}");
    fs::create_dir(work.path("shared")).expect("made");
    let permit = |mode| fs::set_permissions(work.path("shared"), fs::Permissions::from_mode(mode)).expect("permitted");
    permit(0o2770);
    let directory = work.path("shared").display().to_string();
    let sharing = ["--cache-dir", &directory, "--cache-shared-with", &whom];
    compile(&work, "a", "", &example("softmax.mlir"), &sharing).quiet();
    let modes = |folder: &str| fs::metadata(work.path(folder)).expect("there").permissions().mode() & 0o7777;
    assert_eq!((modes("shared/results"), modes("shared/results/1")), (0o2770, 0o2770));
    assert!(
        !Path::new(&work.path("shared/results/size")).exists(),
        "nothing is locked"
    );
    let other = compile(&work, "b", "", &example("softmax.mlir"), &sharing).quiet();
    assert_eq!(sources(&other), (vec!["disk".to_owned(); 2], 0));
    // Without the switch, of another group, or for everybody it is not used.
    let plain = compile(&work, "c", "", &example("softmax.mlir"), &sharing[..2]);
    assert!(plain.stderr.contains("may be written by others"), "{}", plain.stderr);
    let strange = compile(
        &work,
        "d",
        "",
        &example("softmax.mlir"),
        &["--cache-dir", &directory, "--cache-shared-with", "group:54321"],
    );
    assert!(
        strange.stderr.contains("is to be the cache of group 54321"),
        "{}",
        strange.stderr
    );
    fs::set_permissions(work.path("shared/results"), fs::Permissions::from_mode(0o2777)).expect("permitted");
    let open = compile(&work, "e", "", &example("softmax.mlir"), &sharing);
    assert!(open.stderr.contains("and has owner"), "{}", open.stderr);
    work.run(&["compile", "x.mlir", "--cache-shared-with", "everybody"])
        .failed(2)
        .says(&["group:NAME"]);
}
