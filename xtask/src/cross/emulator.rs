//! Programs of the other processor on this machine: qemu's user mode. A library in them (`spawn.c`) hands it the programs that they
//! start in turn, so that workers and tests of processes are of that processor too, and nothing has to be registered with the kernel.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::MULTIARCH;
use crate::command::{Context, Failure, run};
use crate::env::Workspace;

/// Debian's package.
pub const PACKAGES: [&str; 1] = ["qemu-user"];
const QEMU: &str = "/usr/bin/qemu-aarch64";

/// What runs programs of the other processor.
pub struct Emulator {
    folder: PathBuf,
    runner: PathBuf,
}

impl Emulator {
    /// Makes the script that runs a program, in a folder of this module's own.
    pub fn new(folder: PathBuf, sysroot: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
        let (runner, library, sysroot) = (folder.join("run"), folder.join("spawn.so"), sysroot.display());
        let mut compiler = Command::new("aarch64-linux-gnu-gcc");
        compiler.args(["-D_GNU_SOURCE", "-O1", "-shared", "-fPIC"]);
        for (name, value) in [
            ("QEMU", QEMU.to_owned()),
            ("SYSROOT", sysroot.to_string()),
            ("THIS", library.display().to_string()),
        ] {
            compiler.arg(format!("-D{name}=\"{value}\""));
        }
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cross/spawn.c");
        run(compiler.arg(source).arg("-o").arg(&library))?;
        // The device libraries are named, since qemu does not put the folder in the place of the system's for every call (`statx`).
        // GLib's own allocator, which qemu 7.2 uses, stays locked in a child that one thread makes while another one allocates, and
        // the child waits for ever; `malloc` does not.
        let text = format!(
            "#!/bin/sh\n: \"${{HIP_DEVICE_LIB_PATH={sysroot}/usr/lib/{MULTIARCH}/amdgcn/bitcode}}\"\nexport HIP_DEVICE_LIB_PATH\n\
             export G_SLICE=always-malloc\nexec {QEMU} -L '{sysroot}' -E 'LD_PRELOAD={}' \"$@\"\n",
            library.display()
        );
        write_script(&runner, &text)?;
        Ok(Self { folder, runner })
    }

    /// A program that takes another one and its arguments.
    pub fn runner(&self) -> &Path {
        &self.runner
    }

    /// Scripts with the names of programs, in a folder that can stand in PATH.
    pub fn wrapped(&self, folder: &str, programs: &[PathBuf]) -> Result<PathBuf, Failure> {
        let (folder, named) = (self.folder.join(folder), self.folder.join("named"));
        for folder in [&folder, &named] {
            fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
        }
        for program in programs {
            // Called by a link of another name, the program is to be called by one, too.
            let text = format!(
                "#!/bin/sh\nprogram='{1}'\nname=${{0##*/}}\nif [ \"$name\" != \"${{program##*/}}\" ]; then\n  \
                 ln -sf \"$program\" '{2}'/\"$name\"\n  program='{2}'/\"$name\"\nfi\nexec '{0}' \"$program\" \"$@\"\n",
                self.runner.display(),
                program.display(),
                named.display()
            );
            write_script(&folder.join(program.file_name().unwrap_or_default()), &text)?;
        }
        Ok(folder)
    }

    /// A CUDA tree of the other processor whose programs can be started here as well; `native` is this machine's.
    pub fn cuda(&self, tree: &Path, native: &Path) -> Result<PathBuf, Failure> {
        let mut programs = entries(&tree.join("bin"))?;
        // cuobjdump needs a newer C library (2.38) than Debian 12 has, and nvcc starts its parts by this machine's shell, which
        // knows nothing of qemu. This machine's write and say the same.
        const NATIVE: [&str; 2] = ["cuobjdump", "nvcc"];
        programs.retain(|program| !NATIVE.iter().any(|name| program.ends_with(name)));
        let folder = self.wrapped("cuda/bin", &programs)?;
        for name in NATIVE {
            let text = format!("#!/bin/sh\nexec '{}' \"$@\"\n", native.join("bin").join(name).display());
            let script = folder.join(name);
            // It may be a link to the program itself, of an earlier build.
            let _ = fs::remove_file(&script);
            write_script(&script, &text)?;
        }
        let wrapped = self.folder.join("cuda");
        for entry in entries(tree)? {
            let link = wrapped.join(entry.file_name().unwrap_or_default());
            if !link.exists() {
                symlink(&entry, &link).context(|| format!("make {}", link.display()))?;
            }
        }
        Ok(wrapped)
    }

    /// Whether a program of the other processor runs here.
    pub fn check(&self, workspace: &Workspace, program: &Path) -> Result<(), Failure> {
        crate::command::run(workspace.command(&self.runner).arg(program).arg("--version"))
            .map_err(|failure| Failure::new(format!("{failure}; Debian: apt-get install {}", PACKAGES.join(" "))))
    }
}

/// What is in a folder, in order.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let reading = || format!("read {}", folder.display());
    let entries = fs::read_dir(folder).context(reading)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.context(reading)?;
    paths.sort();
    Ok(paths)
}

fn write_script(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).context(|| format!("write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context(|| format!("protect {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::capture;

    const STARTS_ITSELF: &str = r#"
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments)
{
    char *next[] = {arguments[0], "spawned", NULL}, *last[] = {"by another name", "executed", "now", NULL};
    int child, status = 1;
    if (getenv("LD_PRELOAD"))
        return 2;
    if (count == 2)
        execve(arguments[0], last, environ);
    if (count == 3)
        return arguments[0][0] == 'b' ? 42 : 3;
    if (posix_spawnp(&child, "no program", NULL, NULL, next, environ) == 0)
        return 4;
    if (posix_spawnp(&child, arguments[0], NULL, NULL, next, environ) == 0)
        waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}"#;

    /// What a program of that text ends with under qemu.
    fn status_of(text: &str, folder: &Path, sysroot: &Path) -> Option<i32> {
        let (source, program) = (folder.join("starts.c"), folder.join("starts"));
        fs::write(&source, text).unwrap();
        run(Command::new("aarch64-linux-gnu-gcc")
            .arg(&source)
            .arg("-o")
            .arg(&program))
        .unwrap();
        let emulator = Emulator::new(folder.join("qemu"), sysroot).unwrap();
        let said = capture(Command::new(emulator.runner()).arg(&program)).unwrap();
        said.status.code()
    }

    #[test]
    fn programs_start_others_of_that_processor() {
        let folder = tempfile::tempdir().unwrap();
        let sysroot = Path::new("/usr/aarch64-linux-gnu");
        assert_eq!(status_of(STARTS_ITSELF, folder.path(), sysroot), Some(42));
    }

    #[test]
    fn programs_start_those_of_this_machine_that_the_folder_has_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let sysroot = folder.path().join("sysroot");
        fs::create_dir_all(sysroot.join("bin")).unwrap();
        symlink("/usr/aarch64-linux-gnu/lib", sysroot.join("lib")).unwrap();
        fs::copy("/usr/aarch64-linux-gnu/lib/libc.so.6", sysroot.join("bin/true")).unwrap();
        let text = r#"
#include <unistd.h>
int main(void) { return execv("/bin/true", (char *[]){"true", NULL}); }"#;
        assert_eq!(status_of(text, folder.path(), &sysroot), Some(0));
    }
}
