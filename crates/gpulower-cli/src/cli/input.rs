//! Reading what a command is about.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use super::message::Problem;

/// The bytes of a file, or of the standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let result = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    result.map_err(|error| {
        let what = if path.is_dir() {
            "it is a directory; name a file in it".to_owned()
        } else {
            error.to_string()
        };
        Problem::input(format!("cannot read {}: {what}", path.display()))
    })
}
