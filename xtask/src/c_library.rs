//! `cargo xtask c`: the C library from outside, in programs in C, C++ and Python that use what `cargo xtask install` lays out.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, capture, run as run_command, shown};
use crate::env::Workspace;
use crate::{install, integrations, plugin};

#[derive(Debug, Args)]
pub struct Options {
    /// The pass plugin alone.
    #[arg(long)]
    plugin: bool,
    /// Take the library and the programs as they were built.
    #[arg(long)]
    no_build: bool,
}

/// The newest versions of theirs that it may need: `docs/c.md` says so.
const NEWEST: [(&str, [u32; 3]); 4] = [
    ("GLIBC_", [2, 34, 0]),
    ("GLIBCXX_", [3, 4, 29]),
    ("CXXABI_", [1, 3, 13]),
    ("ZLIB_", [1, 2, 2]),
];

/// Python packages that bring an LLVM or an MLIR of their own: what of them is imported. They are those of the integrations.
const WHEELS: [&str; 2] = ["numba_cuda_mlir._mlir.ir", "triton._C.libtriton"];

/// Where the pages install.
const PREFIX: &str = "/opt/gpulower";

/// Compilers, and what they call the standards for which the headers are.
const C_COMPILERS: [(&str, &[&str]); 2] = [("gcc", &["c99", "c11", "c2x"]), ("clang", &["c99", "c11", "c23"])];
const CPP_COMPILERS: [(&str, &[&str]); 2] = [
    ("g++", &["c++17", "c++20", "c++23"]),
    ("clang++", &["c++17", "c++20", "c++23", "c++26"]),
];

/// What the library may need of the system, so that it runs where it was not built. libffi is LLVM's.
const NEEDED: [&str; 7] = [
    "ld-linux",
    "libc.so.6",
    "libffi.so.8",
    "libgcc_s.so.1",
    "libm.so.6",
    "libstdc++.so.6",
    "libz.so.1",
];

/// Folders of our own sources in C and C++.
const SOURCES: [&str; 5] = [
    "crates/gpulower-c/include",
    "crates/gpulower-c/plugin",
    "crates/gpulower-c/tests/c",
    "crates/gpulower-c/tests/c/first_release",
    "examples/c",
];

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let mut build = workspace.cargo("build");
    // Everything at once: what is built for less has other features of dependencies.
    build.args(["--workspace", "--lib", "--bins", "--tests", "--locked"]);
    if !options.no_build {
        run_command(&mut build)?;
    }
    let built = workspace.binaries()?;
    let tests = Tests {
        workspace,
        folder: built.with_file_name("c-library"),
    };
    let library = built.join("libgpulower_c.so");
    install::lay_out(workspace, &built, &library, &tests.prefix())?;
    if options.plugin {
        return plugin::test(workspace, &tests.prefix(), &tests.folder);
    }
    check_symbols(workspace, &library)?;
    tests.check_format()?;
    tests.headers()?;
    tests.cmake("build", &[])?;
    tests.cmake("build-with-sanitizers", &["-DADDRESS_SANITIZER=ON"])?;
    tests.pkg_config()?;
    tests.tutorial()?;
    tests.neighbours()?;
    tests.python(None, &["gpulower"])?;
    plugin::test(workspace, &tests.prefix(), &tests.folder)?;
    tests.wheels()
}

/// Runs the commands that a page shows in its blocks of a language, in a folder, as if its prefix were this one. What installs there
/// was done.
pub fn run_page(workspace: &Workspace, page: &str, prefix: &Path, folder: &Path) -> Result<(), Failure> {
    let path = workspace.root.join(page);
    let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let commands = blocks(&text, "sh").replace(PREFIX, &prefix.display().to_string());
    let (installs, others): (Vec<&str>, Vec<&str>) = commands
        .lines()
        .partition(|line| line.starts_with("cargo xtask install "));
    if installs.is_empty() || others.iter().all(|line| line.is_empty()) {
        return Err(Failure::new(format!(
            "{page} does not say how to install, or nothing else"
        )));
    }
    let mut shell = workspace.command("bash");
    shell.args(["-exc", &others.join("\n")]).current_dir(folder);
    shell
        .env("GPULOWER_CACHE", "off")
        .env("CUDA_HOME", workspace.wheel_cuda());
    run_command(&mut shell)
}

/// Nothing is visible but the functions of the header, each with a version; nothing is needed that was not before.
fn check_symbols(workspace: &Workspace, library: &Path) -> Result<(), Failure> {
    let output = capture(Command::new("nm").args(["-D", "--defined-only"]).arg(library))?;
    let symbols = String::from_utf8_lossy(&output.stdout);
    // A line of type A stands for the version itself.
    let symbols = symbols.lines().filter(|line| !line.contains(" A "));
    let visible: BTreeSet<&str> = symbols.filter_map(|line| line.split_whitespace().last()).collect();
    let header = workspace.root.join("crates/gpulower-c/include/gpulower.h");
    let header = fs::read_to_string(&header).context(|| format!("read {}", header.display()))?;
    let declared: BTreeSet<&str> = declared(&header).collect();
    // With which version a function came is tested by the program of the first release.
    let versioned = visible.iter().all(|symbol| symbol.contains("@@GPULOWER_1."));
    let visible: BTreeSet<&str> = visible.iter().filter_map(|symbol| symbol.split('@').next()).collect();
    if declared.len() < 50 || visible != declared || !versioned {
        let differing: Vec<_> = visible.symmetric_difference(&declared).collect();
        return Err(Failure::new(format!(
            "the library shows other symbols than the header declares: {differing:?}"
        )));
    }
    let output = capture(Command::new("readelf").args(["-dW"]).arg(library))?;
    let dynamic = String::from_utf8_lossy(&output.stdout);
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        if !NEEDED.iter().any(|name| line.contains(name)) {
            return Err(Failure::new(format!("the library needs more of the system: {line}")));
        }
    }
    let output = capture(Command::new("readelf").args(["-VW"]).arg(library))?;
    let versions = String::from_utf8_lossy(&output.stdout);
    for version in versions
        .split("Name: ")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next())
    {
        if NEWEST.iter().any(|(of, newest)| {
            version
                .strip_prefix(of)
                .is_some_and(|version| numbers(version) > *newest)
        }) {
            return Err(Failure::new(format!(
                "the library needs {version}, and with it a newer system than docs/c.md says (src/bridge/cpp/older_systems.cpp)"
            )));
        }
    }
    for what in ["[libgpulower.so.1]", "NODELETE"] {
        if !dynamic.contains(what) {
            return Err(Failure::new(format!(
                "the library is not linked as it should be: no {what}"
            )));
        }
    }
    if dynamic.contains("STATIC_TLS") {
        return Err(Failure::new(
            "the library has static thread-local storage: dlopen may find no room for it",
        ));
    }
    println!("\n{} functions are visible, and nothing else", visible.len());
    Ok(())
}

/// The first numbers of a version.
fn numbers(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(u32::MAX));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// The functions that a header declares: the last name before a parenthesis, at the end of what the line says of the type.
fn declared(header: &str) -> impl Iterator<Item = &str> {
    let lines = header
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with("typedef") && !line.starts_with(' '));
    lines.filter_map(|line| {
        let (before, _) = line.split_once('(')?;
        before
            .rsplit([' ', '*'])
            .next()
            .filter(|name| name.starts_with("gpulower_"))
    })
}

struct Tests<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

impl Tests<'_> {
    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    fn check_format(&self) -> Result<(), Failure> {
        let mut command = self.workspace.command(self.workspace.llvm.join("bin/clang-format"));
        command.args(["--dry-run", "-Werror"]);
        for folder in SOURCES {
            let folder = self.workspace.root.join(folder);
            let entries = fs::read_dir(&folder).context(|| format!("read {}", folder.display()))?;
            for entry in entries.filter_map(Result::ok) {
                let path = entry.path();
                let extension = path.extension().and_then(|extension| extension.to_str());
                // cbindgen has a style of its own.
                let is_ours = matches!(extension, Some("c" | "cpp" | "hpp"));
                if is_ours {
                    command.arg(path);
                }
            }
        }
        run_command(&mut command)
    }

    /// The headers in every standard that they are for, without a warning.
    fn headers(&self) -> Result<(), Failure> {
        let include = self.workspace.root.join("crates/gpulower-c/include");
        for (compilers, header, more) in [
            (&C_COMPILERS, "gpulower.h", &["-Wstrict-prototypes", "-xc"][..]),
            (&CPP_COMPILERS, "gpulower.h", &["-xc++"]),
            (&CPP_COMPILERS, "gpulower.hpp", &["-Wold-style-cast", "-xc++"]),
        ] {
            for (compiler, standards) in compilers {
                let compiler = match compiler.strip_prefix("clang") {
                    Some(_) => self.workspace.llvm.join("bin").join(compiler),
                    None => PathBuf::from(compiler),
                };
                for standard in *standards {
                    let mut command = self.workspace.command(&compiler);
                    command
                        .arg(format!("-std={standard}"))
                        .args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic"]);
                    command.args(["-Wshadow", "-Wconversion", "-Werror"]).args(more);
                    // Included, since a header on its own is warned of.
                    command.arg("-include").arg(include.join(header)).arg("/dev/null");
                    run_command(&mut command)?;
                }
            }
        }
        Ok(())
    }

    /// The prefix by a name with a space in it.
    fn spaced_prefix(&self) -> Result<PathBuf, Failure> {
        let link = self.folder.join("a prefix");
        let _ = fs::remove_file(&link);
        symlink("prefix", &link).context(|| format!("make {}", link.display()))?;
        Ok(link)
    }

    /// `find_package(gpulower)`, and everything that ctest runs.
    fn cmake(&self, folder: &str, options: &[&str]) -> Result<(), Failure> {
        let build = self.folder.join(folder);
        let mut configure = self.workspace.command("cmake");
        configure
            .arg("-S")
            .arg("crates/gpulower-c/tests/c")
            .arg("-B")
            .arg(&build);
        configure
            .arg(format!("-DCMAKE_PREFIX_PATH={}", self.spaced_prefix()?.display()))
            .args(options);
        run_command(&mut configure)?;
        run_command(self.workspace.command("cmake").arg("--build").arg(&build).arg("-j2"))?;
        let mut tests = self.workspace.command("ctest");
        run_command(tests.args(["--output-on-failure", "--test-dir"]).arg(&build))
    }

    /// A compiler that takes a file, and then what pkg-config says.
    fn compiler(&self, compiler: &str, source: &Path) -> Result<Command, Failure> {
        let mut question = self.workspace.command("pkg-config");
        question.args(["--cflags", "--libs", "gpulower"]);
        question.env("PKG_CONFIG_PATH", self.prefix().join("lib/pkgconfig"));
        let output = capture(&mut question)?;
        let flags = String::from_utf8_lossy(&output.stdout).into_owned();
        if !flags.contains("-lgpulower") {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new(format!("`{}`: {flags}{said}", shown(&question))));
        }
        let mut command = self.workspace.command(compiler);
        command
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(source)
            .args(flags.split_whitespace());
        command.arg(format!("-Wl,-rpath,{}", self.prefix().join("lib").display()));
        Ok(command)
    }

    fn compile_and_run(&self, compiler: &str, source: &Path, arguments: &[&str]) -> Result<(), Failure> {
        let program = self.folder.join("program");
        run_command(self.compiler(compiler, source)?.arg("-o").arg(&program))?;
        run_command(
            self.workspace
                .command(&program)
                .current_dir(&self.folder)
                .args(arguments),
        )
    }

    fn pkg_config(&self) -> Result<(), Failure> {
        let example = |name: &str| self.prefix().join("share/gpulower/examples").join(name);
        let input = example("saxpy.mlir").display().to_string();
        self.compile_and_run("cc", &example("c/compile.c"), &[&input, "gfx942", "hsaco"])
    }

    /// The programs that docs/c.md writes, piece by piece, and what it says of building them.
    fn tutorial(&self) -> Result<(), Failure> {
        let path = self.workspace.root.join("docs/c.md");
        let page = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
        for (language, compiler, name) in [("c", "cc", "tutorial.c"), ("c++", "c++", "tutorial.cpp")] {
            let program = blocks(&page, language);
            if !program.contains("main(") {
                return Err(Failure::new(format!("docs/c.md has no program in {language}")));
            }
            let source = self.folder.join(name);
            fs::write(&source, program).context(|| format!("write {}", source.display()))?;
            self.compile_and_run(compiler, &source, &[])?;
        }
        let folder = self.folder.join("page");
        fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).context(|| format!("write {}", path.display()))
        };
        write("program.c", &blocks(&page, "c"))?;
        let project = "cmake_minimum_required(VERSION 3.16)\nproject(page C)\nadd_executable(program program.c)\n";
        write("CMakeLists.txt", &format!("{project}{}", blocks(&page, "cmake")))?;
        run_page(self.workspace, "docs/c.md", &self.prefix(), &folder)?;
        let mut configure = self.workspace.command("cmake");
        configure.arg("-S").arg(&folder).arg("-B").arg(folder.join("build"));
        run_command(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", self.prefix().display())))?;
        run_command(self.workspace.command("cmake").arg("--build").arg(folder.join("build")))?;
        for program in ["program", "build/program"] {
            run_command(&mut self.workspace.command(folder.join(program)))?;
        }
        Ok(())
    }

    /// Beside other LLVMs and an MLIR that are opened for all to see, in every order.
    fn neighbours(&self) -> Result<(), Failure> {
        let llvm = self.workspace.llvm.join("lib");
        let libraries: Vec<OsString> = vec![
            "gpulower".into(),
            "libLLVM.so.19.1".into(),
            llvm.join("libLLVM.so.22.1").into(),
            llvm.join("libMLIR.so.22.1").into(),
        ];
        let reference = self.folder.join("reference");
        // The reference is what comes out with no other library in the process.
        let _ = fs::remove_file(&reference);
        let mut orders = vec![vec![libraries[0].clone()]];
        orders.extend(permutations(&libraries));
        for order in &orders {
            let mut command = self.workspace.command(self.folder.join("build/neighbours"));
            command.env("LD_LIBRARY_PATH", self.prefix().join("lib"));
            let output = capture(command.arg(&reference).args(order))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(Failure::new(format!(
                    "`{}`: {}\n{said}",
                    shown(&command),
                    output.status
                )));
            }
        }
        println!("the same bytes in {} orders of libraries", orders.len());
        Ok(())
    }

    /// Python with its faulthandler on, from a virtual environment if one is given.
    fn python(&self, environment: Option<&Path>, order: &[&str]) -> Result<(), Failure> {
        let program = environment.map_or_else(|| PathBuf::from("python3"), |folder| folder.join("bin/python"));
        let mut command = self.workspace.command(program);
        command.arg("crates/gpulower-c/tests/c/neighbours.py");
        // numba-cuda-mlir opens the CUDA runtime when it is imported.
        command.env("LD_LIBRARY_PATH", self.workspace.wheel_cuda().join("lib"));
        run_command(command.arg(self.prefix().join("lib/libgpulower.so.1")).args(order))
    }

    fn wheels(&self) -> Result<(), Failure> {
        let environment = integrations::packages(self.workspace)?;
        let names = ["gpulower", WHEELS[0], WHEELS[1]];
        for order in permutations(&names) {
            self.python(Some(&environment), &order)?;
        }
        // Each for all to see. Both so are too much for triton: it crashes while it is imported, without this library, too.
        for module in WHEELS {
            let module = format!("+{module}");
            self.python(Some(&environment), &["gpulower", &module])?;
            self.python(Some(&environment), &[&module, "gpulower"])?;
        }
        Ok(())
    }
}

/// The code blocks of a language in a page of Markdown, one after the other.
fn blocks(page: &str, language: &str) -> String {
    let opening = format!("\n```{language}\n");
    let after = page.split(opening.as_str()).skip(1);
    after.filter_map(|rest| rest.split("```").next()).collect()
}

/// All orders.
fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        for mut order in permutations(&rest) {
            order.insert(0, first.clone());
            all.push(order);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_a_header() {
        let header = "// gpulower_no(x)\ntypedef void (*gpulower_f)(void *data);\nconst char *gpulower_a(void);\n\
                      gpulower_status gpulower_b(gpulower_config *config,\n                           size_t gpulower_c(1));\n";
        assert_eq!(declared(header).collect::<Vec<_>>(), ["gpulower_a", "gpulower_b"]);
    }

    #[test]
    fn blocks_of_a_language_are_one_program() {
        let page = "a\n```c\nint x;\n```\nb\n```c++\nno\n```\n```c\nint y;\n```\n";
        assert_eq!(blocks(page, "c"), "int x;\nint y;\n");
        assert_eq!(permutations(&[1, 2, 3]).len(), 6);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("2.4") < numbers("2.34") && numbers("2.34") < numbers("2.34.1"));
        assert!(numbers("3.4.30") > numbers("3.4.29") && numbers("PRIVATE") > numbers("99"));
    }
}
