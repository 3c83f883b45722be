//! Commands with long work in a real terminal (tmux): progress is shown, and Ctrl-C leaves a clean screen, no file, and a word on what
//! was kept.

use std::{
    fmt::Write,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use super::support::{Workshop, cuda};

/// A terminal of 100 columns with a shell in a folder.
struct Terminal {
    /// The name of the server.
    name: String,
}

impl Terminal {
    fn open(work: &Workshop, name: &str) -> Self {
        let terminal = Self {
            name: format!("gpulower-{name}-{}", std::process::id()),
        };
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_gpulower"));
        let mut path = vec![program.parent().expect("a folder").to_path_buf()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path).expect("a path");
        let made = Command::new("tmux")
            .args([
                "-L",
                &terminal.name,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                "100",
                "-y",
                "24",
            ])
            .arg("exec env PS1='$ ' bash --norc --noprofile")
            .current_dir(work.path(""))
            .env("PATH", path)
            .env("CUDA_HOME", cuda())
            .env("XDG_CACHE_HOME", work.path("cache"))
            .env_remove("GPULOWER_CACHE")
            .env_remove("GPULOWER_LOG")
            .env_remove("TMUX")
            .output()
            .expect("a terminal is opened by tmux in this test: install Debian's package tmux");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let output = Command::new("tmux").args(["-L", &self.name]).args(arguments).output();
        output.expect("tmux runs")
    }

    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout)
            .trim_end()
            .to_owned()
    }

    /// Waits until the screen is as it should be. The limit is for what never comes.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(start.elapsed() < Duration::from_secs(180), "never {what}:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Begins a command, waits for a word in its line of progress, and interrupts it. What is on the screen then, the command left out.
fn interrupted(work: &Workshop, name: &str, command: &str, progress: &str) -> String {
    let terminal = Terminal::open(work, name);
    terminal.until("a prompt", |screen| screen.contains('$'));
    terminal.types(&format!("clear; {command}"));
    let shown = terminal.until("any progress", |screen| {
        screen
            .lines()
            .any(|line| line.contains(progress) && line.contains(" s]"))
    });
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{shown}");
    terminal.tmux(&["send-keys", "C-c"]);
    terminal.until("the end", |screen| screen.ends_with("\n$"));
    // bash knows that the command was ended by a signal, and would not go on with a list of commands.
    terminal.types("echo status $?");
    let left = terminal.until("the status", |screen| screen.contains("\nstatus "));
    assert!(
        !left.lines().any(|line| line.contains(progress) && line.contains(" s]")),
        "the line of progress is still there:\n{left}"
    );
    left
}

/// A program with many modules, which takes some seconds for each target.
fn large(modules: usize) -> String {
    let mut text = "module attributes {gpu.container_module} {\n".to_owned();
    for module in 0..modules {
        let _ = write!(
            text,
            "gpu.module @m{module} {{ gpu.func @k{module}(%a: memref<?xf32>, %n: index) kernel {{\n\
             %c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%x = arith.constant {module}.0 : f32\n\
             scf.for %i = %c0 to %n step %c1 {{ %v = memref.load %a[%i] : memref<?xf32>\n"
        );
        let mut last = "v".to_owned();
        for step in 0..20 {
            let _ = writeln!(
                text,
                "%w{step} = math.sin %{last} : f32\n%v{step} = arith.addf %w{step}, %x : f32"
            );
            last = format!("v{step}");
        }
        let _ = writeln!(
            text,
            "memref.store %{last}, %a[%i] : memref<?xf32> }}\ngpu.return }} }}"
        );
    }
    text + "func.func @main() -> i32 {\n%c1 = arith.constant 1 : index\n%m = memref.alloc(%c1) : memref<?xf32>\n\
            gpu.launch_func @m0::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>, %c1 : index)\n\
            %z = arith.constant 0 : i32\nreturn %z : i32 }\n}\n"
}

const CTRL_C: &str = "status 130";

#[test]
fn compiling() {
    let work = Workshop::new();
    work.write("big.mlir", large(400));
    let command = "gpulower compile big.mlir -t sm_90 -o out/";
    let left = interrupted(&work, "compile", command, "compiling big.mlir [");
    assert!(
        left.contains("interrupted: no file was written; ") && left.contains(CTRL_C),
        "{left}"
    );
    assert_eq!(work.files(""), ["big.mlir", "cache"], "no output, no temporary file");
    assert!(
        left.contains("are in the cache, and need not be compiled again") || left.contains("nothing was kept"),
        "{left}"
    );
    // What was kept is there: the count of what comes from the cache is shown at once.
    if left.contains("are in the cache") {
        let again = interrupted(&work, "compile-again", command, "from the cache)");
        assert!(again.contains(CTRL_C), "{again}");
    }
}

#[test]
fn linking_exporting_running_and_inspecting() {
    let work = Workshop::new();
    work.write("big.mlir", large(400));
    for (name, command, progress) in [
        ("link", "gpulower link big.mlir -t gfx942 -o linked", "linking big.mlir"),
        (
            "export",
            "gpulower export big.mlir -t sm_90 --emit self -o app.o --no-cache",
            "exporting big.mlir",
        ),
        ("run", "gpulower run big.mlir -t sm_90 --no-cache", "compiling big.mlir"),
        // What it waits for is the file.
        ("inspect", "sleep 1000 | gpulower inspect -", "inspecting -"),
    ] {
        let left = interrupted(&work, name, command, progress);
        assert!(
            left.contains("interrupted: no file was written; nothing was kept"),
            "{command}:\n{left}"
        );
        assert!(left.contains(CTRL_C), "{command}:\n{left}");
    }
    assert_eq!(work.files(""), ["big.mlir", "cache"], "no output, no temporary file");
}

/// Signals that were ignored when the command began stay so: that is how shells and nohup protect what runs in the background.
#[test]
fn what_was_ignored_stays_so() {
    let work = Workshop::new();
    let program = env!("CARGO_BIN_EXE_gpulower");
    let script = format!(
        "trap '' INT HUP; (sleep 3; cat k.ptx) | {program} inspect - & child=$!; sleep 2; kill -INT $child; kill -HUP $child; wait $child"
    );
    work.write("k.ptx", ".version 7.8\n.target sm_90\n.address_size 64\n");
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(work.path(""))
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{output:?}");
}
