//! Running the program in a directory of its own.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// The CUDA toolkit of the tests. They need one: without it they fail and say so.
pub fn cuda() -> PathBuf {
    let path = std::env::var_os("GPULOWER_CUDA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolkit/cuda"),
        PathBuf::from,
    );
    assert!(
        path.join("bin/ptxas").is_file(),
        "{} is no CUDA toolkit, which these tests need: run `cargo xtask setup`, or set GPULOWER_CUDA",
        path.display()
    );
    path
}

/// A program of LLVM 22.
pub fn llvm_program(name: &str) -> PathBuf {
    let directory = std::env::var_os("GPULOWER_LLVM_BIN").map_or_else(|| "/usr/lib/llvm-22/bin".into(), PathBuf::from);
    let path = directory.join(name);
    assert!(
        path.exists(),
        "{} is missing: install LLVM 22, or set GPULOWER_LLVM_BIN",
        path.display()
    );
    path
}

/// A file under `examples/`.
pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path.display().to_string()
}

/// A directory in which the program is run.
pub struct Workshop {
    directory: TempDir,
    cuda: PathBuf,
}

impl Workshop {
    /// With a CUDA toolkit.
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            cuda: cuda(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, contents).expect("written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}; there is {:?}", self.files("")))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    /// The names in a directory, sorted.
    pub fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The program, in this directory, with no toolkit but the one of the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpulower"));
        command.args(arguments).current_dir(self.directory.path());
        for name in [
            "CUDA_PATH",
            "CUDA_ROOT",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "CUDA_HOME",
            "GPULOWER_LOG",
        ] {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", std::env::temp_dir().join("gpulower-test-cache"));
        // What is tested is to be compiled.
        command.env("GPULOWER_CACHE", "off");
        command.env("CUDA_HOME", &self.cuda);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(
            self.command(arguments)
                .stdin(Stdio::null())
                .output()
                .expect("the program runs"),
        )
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("no panic").expect("everything was read");
        Run::of(output)
    }
}

/// What a run left.
pub struct Run {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().expect("not ended by a signal"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// It succeeded and had nothing to say.
    #[track_caller]
    pub fn quiet(self) -> Self {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""));
        self
    }

    #[track_caller]
    pub fn failed(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}", self.stderr);
        self
    }

    /// Each of these stands in the messages.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no {text:?} in:\n{}", self.stderr);
        }
        self
    }

    pub fn output(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", self.output()))
    }
}
