//! Writing results so that a failure leaves nothing behind and nothing overwritten, and refusing before any work what cannot be
//! written.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, Permissions},
    io::{self, IsTerminal, Write},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::{Access, AtFlags, CWD, RenameFlags, accessat, renameat_with, statvfs};
use tempfile::{Builder, NamedTempFile};

use super::{Failed, interruption, message::Problem, text_to_stdout, to_stdout};

/// A file to be written.
#[derive(Debug)]
pub struct Output<'a> {
    pub path: PathBuf,
    pub bytes: &'a [u8],
}

impl<'a> Output<'a> {
    pub fn new(path: impl Into<PathBuf>, bytes: &'a [u8]) -> Self {
        Self {
            path: path.into(),
            bytes,
        }
    }
}

/// Refuses files that cannot be written, that are one of the inputs, or of which two are the same. `directory`: one that is made
/// if it is not there.
pub fn check(paths: &[&Path], directory: Option<&Path>, inputs: &[&Path]) -> Result<(), Failed> {
    let reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    check_beside(reserved, paths, directory, inputs)
}

fn check_beside(
    reserved: Option<PathBuf>,
    paths: &[&Path],
    directory: Option<&Path>,
    inputs: &[&Path],
) -> Result<(), Failed> {
    if let Some(directory) = directory.filter(|directory| !directory.as_os_str().is_empty()) {
        check_directory(directory)?;
    }
    let mut places: HashSet<PathBuf> = reserved.into_iter().collect();
    let mut folders = HashSet::new();
    let inputs: HashSet<PathBuf> = inputs.iter().filter_map(|input| input.canonicalize().ok()).collect();
    let mut known = Places::default();
    for path in paths {
        let place = known.of(path);
        if inputs.contains(&place) {
            return Err(Failed::Usage(format!(
                "{} is an input; name another file with -o",
                path.display()
            )));
        }
        let inside = directory.filter(|directory| path.starts_with(directory) && !directory.is_dir());
        match inside {
            Some(directory) => check_names(path, existing_part(directory))?,
            None => check_file(path, &place, &mut folders)?,
        }
        if !places.insert(place) && !is_device(path) {
            return Err(Failed::Usage(format!(
                "two outputs would both be {}: name another file for one, or rename a module",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The file of `--trace`, which every command has.
static RESERVED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Refuses a file that cannot be written, and sees to it that no output is this file.
pub fn reserve(path: Option<&Path>) -> Result<(), Failed> {
    match path {
        Some(path) if is_stdout(path) => super::stdout_is_open()?,
        Some(path) => check_beside(None, &[path], None, &[])?,
        None => {}
    }
    *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) = path.map(|path| match is_stdout(path) {
        true => path.to_owned(),
        false => Places::default().of(path),
    });
    Ok(())
}

/// Whether a name means a directory, whether there is one or not: it ends with `/`, `/.` or `/..`.
pub fn means_directory(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    [&b"/"[..], b"/.", b"/.."].iter().any(|end| name.ends_with(end))
}

/// Whether a name means the standard output.
pub fn is_stdout(path: &Path) -> bool {
    // Paths are equal where their parts are: `-/` is a directory.
    path.as_os_str() == "-"
}

/// Paths without links, as far as they exist. A thousand files lie in one folder, which is asked for once.
#[derive(Default)]
struct Places(HashMap<PathBuf, PathBuf>);

impl Places {
    fn of(&mut self, path: &Path) -> PathBuf {
        if path.symlink_metadata().is_ok()
            && let Ok(place) = path.canonicalize()
        {
            return place;
        }
        let parent = parent_of(path);
        let name = path.file_name().unwrap_or_default();
        if let Some(place) = self.0.get(parent) {
            return place.join(name);
        }
        let place = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        self.0.entry(parent.to_owned()).or_insert(place).join(name)
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Something that must not be replaced: a terminal, a pipe, `/dev/full`.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Refuses what cannot become a file. Into each of the folders, something is written once.
fn check_file(path: &Path, place: &Path, folders: &mut HashSet<PathBuf>) -> Result<(), Failed> {
    let result = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.file_type().is_socket() => Err(io::Error::other("it is a socket")),
        Ok(metadata) if !metadata.is_file() => {
            accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(io::Error::from)
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ if means_directory(path) => Err(io::ErrorKind::IsADirectory.into()),
        _ if !folders.insert(parent_of(place).to_owned()) => Ok(()),
        // It is replaced by another file beside it; only making one, with something in it, shows that this works.
        _ => Builder::new()
            .prefix(".gpulower-")
            .tempfile_in(parent_of(place))
            .and_then(|mut file| file.write_all(b"{")),
    };
    result.map_err(|error| cannot_write(path, &error).into())
}

/// Refuses names that are too long for the file system, below a directory that is there.
fn check_names(path: &Path, there: &Path) -> Result<(), Failed> {
    // Some file systems do not tell.
    let longest = statvfs(there).map_or(0, |told| told.f_namemax);
    let below = path.strip_prefix(there).unwrap_or(path);
    match longest > 0 && below.iter().any(|name| name.len() as u64 > longest) {
        true => Err(cannot_write(path, &rustix::io::Errno::NAMETOOLONG.into()).into()),
        false => Ok(()),
    }
}

/// What there is of a directory.
fn existing_part(directory: &Path) -> &Path {
    let there = directory
        .ancestors()
        .find(|ancestor| ancestor.symlink_metadata().is_ok());
    there
        .filter(|there| !there.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A directory that is there, or can be made.
fn check_directory(directory: &Path) -> Result<(), Failed> {
    // Without a slash at its end, after which a file would not be found.
    let path: PathBuf = directory.components().collect();
    let there = existing_part(&path);
    let made = Builder::new().prefix(".gpulower-").tempdir_in(there).map(drop);
    made.map_err(|error| cannot_write(directory, &error))?;
    check_names(&path, there)
}

/// Refuses to write to a standard output that is closed, and machine code to a terminal.
pub fn check_stdout(is_text: bool) -> Result<(), Failed> {
    super::stdout_is_open()?;
    let trace = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if trace.is_some_and(|path| is_stdout(&path)) {
        return Err(Failed::Usage(
            "the trace and something else cannot both go to the standard output; name a file with --trace".to_owned(),
        ));
    }
    if !is_text && io::stdout().is_terminal() {
        return Err(Failed::Usage(
            "what is asked for is no text, and the standard output is a terminal: name a file with -o, or redirect it"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Where the one result of a command goes.
#[derive(Debug)]
pub struct OneOutput<'a>(Option<&'a Path>);

impl<'a> OneOutput<'a> {
    /// `-` is the standard output. Refuses what cannot be written.
    pub fn new(output: &'a Path, inputs: &[&Path], is_text: bool) -> Result<Self, Failed> {
        if is_stdout(output) {
            check_stdout(is_text)?;
            return Ok(Self(None));
        }
        if output.is_dir() || means_directory(output) {
            return Err(Failed::Usage(format!(
                "{} is a directory: name a file with -o",
                output.display()
            )));
        }
        check(&[output], None, inputs)?;
        Ok(Self(Some(output)))
    }

    pub fn write(&self, bytes: &[u8]) -> Result<(), Failed> {
        match self.0 {
            Some(path) => write_all(&[Output::new(path, bytes)], None, b""),
            None => write_all(&[], None, bytes),
        }
    }
}

/// Writes files, and bytes to the standard output: everything, or nothing. `directory` is made if it is not there.
pub fn write_all(files: &[Output<'_>], directory: Option<&Path>, stdout: &[u8]) -> Result<(), Failed> {
    let _uninterrupted = interruption::writing();
    let made = match directory {
        Some(directory) if !directory.as_os_str().is_empty() => MadeDirectories::make(directory)?,
        _ => MadeDirectories::default(),
    };
    let (mut pending, mut known) = (Vec::new(), Places::default());
    for file in files {
        pending.push(PendingFile::prepare(&file.path, file.bytes, &mut known)?);
    }
    // What cannot be taken back comes first.
    pending.sort_by_key(|file| matches!(file, PendingFile::Renamed(..)));
    let read = match stdout {
        [] => Ok(()),
        // It is text then, with names from anybody's file.
        bytes if io::stdout().is_terminal() => text_to_stdout(&String::from_utf8_lossy(bytes)),
        bytes => to_stdout(bytes),
    };
    if !matches!(read, Ok(()) | Err(Failed::NobodyReads)) {
        return read;
    }
    let mut done = Done::default();
    for file in pending {
        file.finish(&mut done)?;
    }
    done.keep();
    made.keep();
    read
}

/// Writes one file, whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let _uninterrupted = interruption::writing();
    let mut done = Done::default();
    PendingFile::prepare(path, bytes, &mut Places::default())?.finish(&mut done)?;
    done.keep();
    Ok(())
}

/// Directories that were made, and are removed again unless they are kept.
#[derive(Default)]
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(directory: &Path) -> Result<Self, Problem> {
        let missing = directory
            .ancestors()
            .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
        let made = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for directory in &self.0 {
            // One that is not empty is somebody else's.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Files that have their names, and are taken back unless they are kept.
#[derive(Default)]
struct Done {
    /// Files that took the place of none.
    new: Vec<PathBuf>,
    /// Files with what was there before, and where that was.
    replaced: Vec<(NamedTempFile, PathBuf)>,
}

impl Done {
    fn keep(mut self) {
        self.new.clear();
        self.replaced.clear();
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        // The problem that counts is the first one.
        for path in &self.new {
            let _ = fs::remove_file(path);
        }
        for (before, path) in &self.replaced {
            let _ = exchange(before.path(), path);
        }
    }
}

fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// A file that is complete and has not got its name yet.
enum PendingFile<'a> {
    /// A device or pipe, which must not be replaced.
    InPlace(PathBuf, &'a [u8]),
    /// Takes the place of an earlier file, or of none.
    Renamed(NamedTempFile, PathBuf),
}

impl<'a> PendingFile<'a> {
    fn prepare(path: &Path, bytes: &'a [u8], known: &mut Places) -> Result<Self, Problem> {
        if is_device(path) {
            return Ok(Self::InPlace(path.to_owned(), bytes));
        }
        // Through a symbolic link, so that the link stays one.
        let path = known.of(path);
        let write = || -> io::Result<NamedTempFile> {
            // What the process's umask leaves of 0666, as for any other file; the default is for its owner alone.
            let mut file = Builder::new()
                .prefix(".gpulower-")
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(parent_of(&path))?;
            file.write_all(bytes)?;
            Ok(file)
        };
        match write() {
            Ok(file) => Ok(Self::Renamed(file, path)),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    fn finish(self, done: &mut Done) -> Result<(), Problem> {
        match self {
            Self::Renamed(file, path) if path.is_file() => match exchange(file.path(), &path) {
                Ok(()) => {
                    done.replaced.push((file, path));
                    Ok(())
                }
                // Not every file system can exchange.
                Err(_) => persist(file, &path),
            },
            Self::Renamed(file, path) => {
                persist(file, &path)?;
                done.new.push(path);
                Ok(())
            }
            Self::InPlace(path, bytes) => File::options()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(bytes))
                .map_err(|error| cannot_write(&path, &error)),
        }
    }
}

fn persist(file: NamedTempFile, path: &Path) -> Result<(), Problem> {
    file.persist(path)
        .map(drop)
        .map_err(|error| cannot_write(path, &error.error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Problem {
    let reason = error.to_string();
    // The temporary file's name, which tempfile adds, would only confuse.
    let reason = reason.split(" at path ").next().unwrap_or_default();
    Problem::output(format!("cannot write {}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_both(one: &Path, other: &Path) -> Result<(), Failed> {
        write_all(&[Output::new(one, b"new"), Output::new(other, b"new")], None, b"")
    }

    #[test]
    fn what_was_there_comes_back_where_one_of_two_fails() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("old"), "old").expect("a file");
        fs::create_dir(path("taken")).expect("a directory");
        fs::write(path("taken/file"), "old").expect("a file");
        assert!(
            write_both(&path("old"), &path("taken")).is_err(),
            "a directory is no file"
        );
        assert!(
            write_both(&path("new"), &path("taken")).is_err(),
            "a directory is no file"
        );
        assert_eq!(fs::read(path("old")).expect("the file"), b"old");
        let names = fs::read_dir(directory.path()).expect("the directory").count();
        assert_eq!(names, 2, "no other file is left");
        write_both(&path("old"), &path("new")).expect("written");
        assert_eq!(fs::read(path("old")).expect("the file"), b"new");
    }

    #[test]
    fn a_directory_that_was_made_goes_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let deep = directory.path().join("a/b");
        let files = [
            Output::new(deep.join("file"), b"x"),
            Output::new(deep.join("none/file"), b"x"),
        ];
        assert!(write_all(&files, Some(&deep), b"").is_err());
        assert!(!directory.path().join("a").exists());
    }

    #[test]
    fn a_file_takes_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.bin");
        let pending = PendingFile::prepare(&path, b"abc", &mut Places::default()).expect("written");
        assert!(!path.exists());
        let mut done = Done::default();
        pending.finish(&mut done).expect("renamed");
        done.keep();
        assert_eq!(fs::read(&path).expect("the file"), b"abc");
        let entries = fs::read_dir(directory.path()).expect("the directory");
        assert_eq!(entries.count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_and_a_device_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        let link = directory.path().join("link");
        fs::write(&file, b"old").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_file(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).expect("the file"), b"new");
        write_file(Path::new("/dev/null"), b"new").expect("written");
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let refusal = write_file(Path::new("/dev/null/a"), b"").expect_err("refused");
        let message = refusal.message();
        assert!(message.starts_with("cannot write /dev/null/a: "), "{message}");
    }
}
