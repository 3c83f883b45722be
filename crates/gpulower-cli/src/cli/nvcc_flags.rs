//! nvcc's flags, as the options that clap knows.

use std::ffi::OsString;

/// What a flag of nvcc's becomes.
#[derive(Clone, Copy)]
enum Meaning {
    /// These words.
    Words(&'static str),
    /// An option with the same value, in the next word or after `=`.
    Same(&'static str),
    /// An option whose value is made of nvcc's.
    Value(&'static str, fn(&str) -> String),
}

use Meaning::{Same, Value, Words};

/// nvcc's flags with one dash, and those with two that are no options or aliases of ours. `-ptx` has one dash alone: `--ptx` is an
/// option of ours.
const FLAGS: [(&[&str], Meaning); 19] = [
    (&["-arch"], Same("--arch")),
    (&["-code"], Same("--code")),
    (&["-gencode"], Same("--gencode")),
    (
        &["-lineinfo", "-generate-line-info", "--generate-line-info"],
        Words("--debug=line-tables"),
    ),
    (&["-G", "-device-debug", "--device-debug"], Words("--debug=full")),
    (&["-cubin", "--cubin"], Words("--emit=cubin")),
    (&["-ptx"], Words("--emit=ptx")),
    (&["-fatbin", "--fatbin"], Words("--emit=fatbin")),
    (&["-dc", "-device-c", "--device-c"], Words("--emit=object")),
    (
        &["-Xptxas", "-ptxas-options"],
        Value("--ptxas-options", |value| value.replace(',', " ")),
    ),
    (&["-use_fast_math", "--use_fast_math"], Words("--fast")),
    (
        &["-maxrregcount", "--maxrregcount"],
        Value("--max-registers", str::to_owned),
    ),
    (&["-ftz"], Value("--ftz", str::to_owned)),
    (&["-prec-div"], Value("--prec-div", str::to_owned)),
    (&["-prec-sqrt"], Value("--prec-sqrt", str::to_owned)),
    (&["-fmad", "--fmad"], Value("--fp-contract", contract)),
    (&["-dryrun", "--dryrun"], Words("--dry-run")),
    (
        &["-res-usage", "-resource-usage", "--resource-usage"],
        Words("--report=table"),
    ),
    (
        &[
            "-MD",
            "-generate-dependencies-with-compile",
            "--generate-dependencies-with-compile",
        ],
        Words("--depfile"),
    ),
];

/// Where the dependencies go, for nvcc and for gcc.
const DEPENDENCY_FILE: (&[&str], Meaning) = (
    &["-MF", "-dependency-output", "--dependency-output"],
    Value("--depfile", str::to_owned),
);

/// `--fmad`, which is on unless it is switched off.
fn contract(value: &str) -> String {
    if value == "false" { "off" } else { "fast" }.to_owned()
}

/// The option whose value may look like one of the flags, and is none.
const PASSES_ON: &str = "--ptxas-options";

/// Rewrites nvcc's flags of `gpulower compile`. Everything else stays as it is, and everything after `--`.
pub fn rewrite(arguments: Vec<OsString>) -> Vec<OsString> {
    // Before the command there are options of all commands alone.
    if !arguments.iter().take(4).any(|argument| argument == "compile") {
        return arguments;
    }
    let names_file = arguments
        .iter()
        .any(|argument| meaning(argument).is_some_and(|(_, _, is_file)| is_file));
    let mut rewritten = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            rewritten.push(argument);
            break;
        }
        let passes_on = argument == PASSES_ON;
        match meaning(&argument) {
            // The file says that dependencies are wanted, too.
            Some((Words("--depfile"), ..)) if names_file => {}
            Some((Words(words), None, _)) => rewritten.push(words.into()),
            Some((Same(option), value, _)) => rewritten.push(match value {
                Some(value) => format!("{option}={value}").into(),
                None => option.into(),
            }),
            Some((Value(option, value_of), value, _)) => {
                let next = || rest.next().and_then(|next| next.into_string().ok());
                match value.map(str::to_owned).or_else(next) {
                    Some(value) => rewritten.push(format!("{option}={}", value_of(&value)).into()),
                    None => rewritten.push(option.into()),
                }
            }
            Some((Words(_), Some(_), _)) | None => rewritten.push(argument),
        }
        if passes_on {
            rewritten.extend(rest.next());
        }
    }
    rewritten.extend(rest);
    rewritten
}

/// What an argument means that is a flag of nvcc's, the value after `=`, and whether it names the file of dependencies.
fn meaning(argument: &OsString) -> Option<(Meaning, Option<&str>, bool)> {
    let text = argument.to_str()?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let mut all = FLAGS.iter().chain([&DEPENDENCY_FILE]);
    let (names, meaning) = all.find(|(names, _)| names.contains(&name))?;
    Some((*meaning, value, *names == DEPENDENCY_FILE.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(arguments: &[&str]) -> Vec<String> {
        let arguments = ["gpulower", "compile"].iter().chain(arguments).map(OsString::from);
        let words = rewrite(arguments.collect()).into_iter().skip(2);
        words.map(|argument| argument.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn flags_of_nvcc_become_options() {
        for (theirs, ours) in [
            (
                "k.mlir -arch=sm_90 -gencode arch=compute_80,code=sm_80",
                "k.mlir --arch=sm_90 --gencode arch=compute_80,code=sm_80",
            ),
            (
                "-arch compute_90 -code=sm_90,compute_90 -gencode=arch=a -code=",
                "--arch compute_90 --code=sm_90,compute_90 --gencode=arch=a --code=",
            ),
            (
                "-lineinfo -cubin -use_fast_math",
                "--debug=line-tables --emit=cubin --fast",
            ),
            (
                "--generate-line-info -ptx --use_fast_math -G",
                "--debug=line-tables --emit=ptx --fast --debug=full",
            ),
            (
                "-maxrregcount 32 --maxrregcount=64",
                "--max-registers=32 --max-registers=64",
            ),
            (
                "-ftz=true -prec-div false -fmad=false --fmad true",
                "--ftz=true --prec-div=false --fp-contract=off --fp-contract=fast",
            ),
            ("-res-usage -dryrun -dc", "--report=table --dry-run --emit=object"),
            ("-MD -o k", "--depfile -o k"),
            ("-MD -MF k.d -o k", "--depfile=k.d -o k"),
            ("-Xptxas --warn-on-spills", "--ptxas-options=--warn-on-spills"),
        ] {
            let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
            let theirs: Vec<&str> = theirs.split(' ').collect();
            assert_eq!(rewritten(&theirs), words(ours), "{theirs:?}");
        }
        assert_eq!(
            rewritten(&["-Xptxas", "-v,--warn-on-spills"]),
            ["--ptxas-options=-v --warn-on-spills"]
        );
    }

    #[test]
    fn everything_else_stays() {
        for arguments in [
            &[
                "-a",
                "-archive",
                "-g",
                "-gen",
                "-encode",
                "arch",
                "--arch",
                "--code=x",
                "-O3",
                "-o",
                "-",
                "-=arch",
                "-l",
                "ineinfo",
                "--ptx=8.0",
                "-cubin=x",
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
        let of_link = ["gpulower", "link", "-ptx"].map(OsString::from).to_vec();
        assert_eq!(rewrite(of_link.clone()), of_link);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_unicode_stays() {
        use std::os::unix::ffi::OsStringExt as _;
        let arguments = vec![
            OsString::from("compile"),
            OsString::from_vec(b"-arch=\xff".to_vec()),
            OsString::from_vec(vec![0xff]),
        ];
        assert_eq!(rewrite(arguments.clone()), arguments);
    }
}
