//! nvcc's flags with one dash, as the options with two that clap knows.

use std::ffi::OsString;

/// nvcc's short flags; the long ones, `--gpu-architecture` and so on, are aliases of the options.
const FLAGS: [&str; 3] = ["arch", "code", "gencode"];

/// The option whose value may look like one of the flags, and is none.
const PASSES_ON: &str = "--ptxas-options";

/// Rewrites `-arch X` and `-arch=X` to `--arch X` and `--arch=X`, and so for `-code` and `-gencode`. Everything else stays
/// as it is, and everything after `--`.
pub fn rewrite(arguments: Vec<OsString>) -> Vec<OsString> {
    let (mut options, mut value) = (true, false);
    arguments
        .into_iter()
        .map(|argument| {
            let is_value = std::mem::replace(&mut value, argument == PASSES_ON);
            options &= argument != "--" || is_value;
            if options && !is_value && is_flag(&argument) {
                let mut long = OsString::from("-");
                long.push(argument);
                long
            } else {
                argument
            }
        })
        .collect()
}

/// Whether the argument is a flag of nvcc's, alone or with its value.
fn is_flag(argument: &OsString) -> bool {
    let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix('-')) else {
        return false;
    };
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    FLAGS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(arguments: &[&str]) -> Vec<String> {
        rewrite(arguments.iter().map(OsString::from).collect())
            .into_iter()
            .map(|argument| argument.into_string().expect("UTF-8"))
            .collect()
    }

    #[test]
    fn flags_of_nvcc_become_long_options() {
        assert_eq!(
            rewritten(&[
                "gpulower",
                "compile",
                "k.mlir",
                "-arch=sm_90",
                "-gencode",
                "arch=compute_80,code=sm_80"
            ]),
            [
                "gpulower",
                "compile",
                "k.mlir",
                "--arch=sm_90",
                "--gencode",
                "arch=compute_80,code=sm_80"
            ]
        );
        assert_eq!(
            rewritten(&[
                "-arch",
                "compute_90",
                "-code=sm_90,compute_90",
                "-gencode=arch=a,code=b",
                "-code="
            ]),
            [
                "--arch",
                "compute_90",
                "--code=sm_90,compute_90",
                "--gencode=arch=a,code=b",
                "--code="
            ]
        );
    }

    #[test]
    fn everything_else_stays() {
        for arguments in [
            &[
                "-a", "-archive", "-g", "-gen", "-encode", "arch", "--arch", "--code=x", "-O3", "-o", "-", "-=arch",
            ][..],
            &["--", "-arch=sm_90", "-code"],
            // A value for ptxas, not a flag of ours.
            &["--ptxas-options", "-arch=sm_90", "--ptxas-options=-code"],
            &["--ptxas-options", "--"],
            &[],
        ] {
            assert_eq!(rewritten(arguments), arguments);
        }
        assert_eq!(
            rewritten(&["--ptxas-options", "--", "-arch=sm_90"]),
            ["--ptxas-options", "--", "--arch=sm_90"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_unicode_stays() {
        use std::os::unix::ffi::OsStringExt as _;
        let arguments = vec![
            OsString::from_vec(b"-arch=\xff".to_vec()),
            OsString::from_vec(vec![0xff]),
        ];
        assert_eq!(rewrite(arguments.clone()), arguments);
    }
}
