//! `gpulower inspect --extract`: images as files.

use std::path::{Path, PathBuf};

use gpulower::inspect::{Inspection, file_names};
use serde::Serialize;

use super::{
    Failed,
    inspect::stem,
    message::{self, Problem},
    output::Destination,
    to_stdout,
    write::{self, Output},
};

/// Where images go.
#[derive(Debug)]
pub struct Request<'a> {
    pub input: &'a Path,
    pub output: Option<&'a Path>,
    /// Write over files that are there.
    pub force: bool,
    /// Do not print the names of the files.
    pub quiet: bool,
}

/// An image that was written.
#[derive(Debug, Serialize)]
pub struct Written {
    /// The image's number.
    image: usize,
    /// The file.
    path: String,
}

impl Request<'_> {
    /// Writes images, which come with their numbers, to files: all of them or none. The names are ours, and never the
    /// file's.
    pub fn write(&self, inspection: &Inspection, images: &[(usize, Vec<u8>)]) -> Result<Vec<Written>, Failed> {
        if images.is_empty() {
            return Err(Problem::input("there is no image to extract".to_owned()).into());
        }
        let destination = Destination::of(self.output);
        let names = file_names(inspection, &stem(self.input));
        let directory = match (&destination, images) {
            (Destination::Stdout, [(_, bytes)]) => {
                if self.quiet {
                    return Err(Failed::Usage(
                        "the image and the JSON document cannot both go to the standard output".to_owned(),
                    ));
                }
                to_stdout(bytes)?;
                return Ok(Vec::new());
            }
            (Destination::File(path), [_]) => return self.finish(vec![path.clone()], images, None),
            (Destination::Directory(directory), _) => directory,
            (Destination::Stdout | Destination::File(_), _) => {
                return Err(Failed::Usage(format!(
                    "{} images do not fit into one file: name a directory, such as -o out/, or one image with --image",
                    images.len()
                )));
            }
        };
        let paths = images
            .iter()
            .filter_map(|(number, _)| Some(directory.join(names.get(number.checked_sub(1)?)?)));
        self.finish(paths.collect(), images, Some(directory))
    }

    fn finish(
        &self,
        paths: Vec<PathBuf>,
        images: &[(usize, Vec<u8>)],
        directory: Option<&Path>,
    ) -> Result<Vec<Written>, Failed> {
        let there: Vec<&PathBuf> = paths.iter().filter(|path| path.is_file()).collect();
        if let (false, Some(first)) = (self.force, there.first()) {
            let others = match there.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            return Err(Problem::output(format!(
                "{} is already there{others}: --force writes over it, -o names another place",
                first.display()
            ))
            .into());
        }
        let files: Vec<Output<'_>> = paths
            .iter()
            .zip(images)
            .map(|(path, (_, bytes))| Output::new(path, bytes))
            .collect();
        let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        write::check(&all, directory, &[self.input])?;
        let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
        let lines = if self.quiet {
            String::new()
        } else {
            message::shown(&lines)
        };
        write::write_all(&files, directory, lines.as_bytes())?;
        Ok(paths
            .iter()
            .zip(images)
            .map(|(path, (image, _))| Written {
                image: *image,
                path: path.display().to_string(),
            })
            .collect())
    }
}
