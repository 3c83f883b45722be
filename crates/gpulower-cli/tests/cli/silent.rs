//! Nothing is sent anywhere: no command opens a socket.

use std::process::{Command, Stdio};

use super::support::{Workshop, example};

#[test]
fn no_command_opens_a_socket() {
    let work = Workshop::new();
    let (saxpy, app) = (example("saxpy.mlir"), example("app.mlir"));
    work.write(
        "host.mlir",
        "llvm.func @main() -> i32 { %0 = llvm.mlir.constant(0 : i32) : i32 llvm.return %0 : i32 }",
    );
    let commands: [&[&str]; 9] = [
        &[
            "compile",
            &saxpy,
            "-t",
            "sm_90,gfx942",
            "-o",
            "out/",
            "--report=html",
            "--trace",
            "t.json",
        ],
        &[
            "compile",
            &saxpy,
            "-t",
            "sm_90",
            "-e",
            "cubin",
            "--ptx-compiler=ptxas",
            "-o",
            "k.cubin",
        ],
        &["link", &saxpy, "-t", "gfx942", "-o", "linked"],
        &["export", &app, "-t", "sm_90", "--emit", "self", "-o", "app.o"],
        &["run", "host.mlir"],
        &["inspect", "k.cubin", "--disassemble"],
        &["targets", "sm_90"],
        &["cache", "show"],
        &["doctor"],
    ];
    for arguments in commands {
        let program = work.command(arguments);
        let mut traced = Command::new("strace");
        // Sockets are made by `socket`; a pair of connected ones leads nowhere.
        traced
            .args([
                "-f",
                "-qq",
                "-e",
                "trace=socket,connect,bind,sendto,sendmsg",
                "-e",
                "signal=none",
                "-o",
                "calls",
            ])
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(work.path(""))
            .stdin(Stdio::null())
            .env("XDG_CACHE_HOME", work.path("cache"));
        for (name, value) in program.get_envs() {
            if name != "XDG_CACHE_HOME" {
                match value {
                    Some(value) => traced.env(name, value),
                    None => traced.env_remove(name),
                };
            }
        }
        let output = traced
            .output()
            .expect("this test looks at system calls with strace: install Debian's package strace");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() || arguments == ["doctor"],
            "{arguments:?}: {said}"
        );
        assert_eq!(work.text("calls"), "", "{arguments:?}");
    }
}

/// strace sees what it is to see.
#[test]
fn a_socket_would_be_seen() {
    let work = Workshop::new();
    let script = "import socket; socket.socket().close()";
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=socket",
            "-o",
            "calls",
            "python3",
            "-c",
            script,
        ])
        .current_dir(work.path(""))
        .output()
        .expect("strace runs");
    assert!(output.status.success());
    assert!(work.text("calls").contains("socket(AF_INET"));
}
