//! A pass of ours on MLIR in memory, for those whose MLIR is another one: what goes in and comes out is text.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use melior::ir::{
    Module,
    operation::{OperationLike, OperationPrintingFlags},
};

use super::{
    attach_targets::AttachTargets, embed_offload::EmbedOffload, lower::Lower, serialize::Serialize, to_binary::ToBinary,
};
use crate::{
    bridge::{
        edit::Exclusive,
        external_pass::{NamedPass, OptionValues, PassOption},
        mlir::{MlirDiagnostic, capture_diagnostics},
    },
    compiler::{Compiler, InputError},
    error::{Error, Failure},
    options::OptionError,
    report::Warning,
    stage::Stage,
};

/// A pass and its options, as a pass manager of somebody else's could register them.
#[derive(Clone, Debug)]
pub struct PassDescription {
    /// Name in pipeline strings.
    pub argument: &'static str,
    /// One line.
    pub description: &'static str,
    options: &'static [PassOption],
}

impl PassDescription {
    /// Name, help and default of each option; values are text.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &str, &'static str)> {
        self.options
            .iter()
            .map(|option| (option.name, &*option.help, option.default))
    }
}

/// What a pass made of a module.
#[derive(Clone, Debug)]
pub struct Transformed {
    /// The module in generic form, with locations: the form that other releases of MLIR read.
    pub text: String,
    /// What deserves attention.
    pub warnings: Vec<Warning>,
}

/// What a pass is for the functions below: those are called with its type.
struct Entry {
    describe: fn() -> PassDescription,
    check: fn(&OptionValuesByName<'_>) -> Result<(), String>,
    run: fn(&OptionValuesByName<'_>, &mut Module<'_>) -> Result<bool, String>,
}

type OptionValuesByName<'a> = [(&'a str, &'a str)];

const PASSES: [Entry; 5] = [
    entry::<AttachTargets>(),
    entry::<Lower>(),
    entry::<Serialize>(),
    entry::<ToBinary>(),
    entry::<EmbedOffload>(),
];

const fn entry<P: NamedPass>() -> Entry {
    Entry {
        describe: || PassDescription {
            argument: P::ARGUMENT,
            description: P::DESCRIPTION,
            options: P::options(),
        },
        check: |values| {
            P::parse(&OptionValues::by_name(P::ARGUMENT, P::options(), values)?)?;
            Ok(())
        },
        run: |values, module| {
            let values = OptionValues::by_name(P::ARGUMENT, P::options(), values)?;
            let options = P::parse(&values)?;
            Ok(P::run(&options, Exclusive::of(module)).is_ok())
        },
    }
}

/// The passes that [`run`] runs.
#[must_use]
pub fn descriptions() -> Vec<PassDescription> {
    PASSES.iter().map(|pass| (pass.describe)()).collect()
}

thread_local! {
    /// The call that this thread is in: what its compiler has, and the errors that went to MLIR's handler.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

struct Call {
    compiler: Compiler,
    reported: Vec<Error>,
}

/// The compiler of the call that this thread is in.
pub(super) fn compiler_of_call() -> Option<Compiler> {
    CALL.with_borrow(|call| call.as_ref().map(|call| call.compiler.clone()))
}

/// Keeps the value behind a diagnostic.
pub(super) fn keep(error: &Error) {
    CALL.with_borrow_mut(|call| {
        if let Some(call) = call {
            call.reported.push(error.clone());
        }
    });
}

/// Runs a pass with options by name on a module, text or bytecode, as a pass manager would run it; toolkit, threads and cache
/// are the compiler's. Of an empty source, the options are checked, and nothing else is done.
///
/// # Errors
///
/// What the pass says, one error for each of its diagnostics.
pub fn run(
    compiler: &Compiler,
    pass: &str,
    options: &[(&str, &str)],
    name: &str,
    source: &[u8],
) -> Result<Transformed, Failure> {
    let plan = |text: String| Failure::from(Error::new(Stage::Plan, OptionError::Pass(text)));
    let Some(entry) = PASSES.iter().find(|entry| (entry.describe)().argument == pass) else {
        let names: Vec<&str> = descriptions().iter().map(|pass| pass.argument).collect();
        return Err(plan(format!(
            "unknown pass '{pass}': expected one of {}",
            names.join(", ")
        )));
    };
    if source.is_empty() {
        (entry.check)(options).map_err(plan)?;
        return Ok(Transformed {
            text: String::new(),
            warnings: Vec::new(),
        });
    }
    compiler.in_context(source.len(), |context| {
        let mut module = crate::compiler::parse(context, name, source)
            .map_err(|error| Failure::from(Error::new(Stage::Input, error)))?;
        let ((done, reported), diagnostics) =
            capture_diagnostics(context, || within(compiler, || (entry.run)(options, &mut module)));
        let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics.into_iter().partition(|one| one.is_error);
        match done {
            Err(text) => Err(plan(text)),
            Ok(true) => Ok(Transformed {
                text: printed(&module),
                warnings: warnings.into_iter().map(warning).collect(),
            }),
            Ok(false) => Err(failure(errors, &reported)),
        }
    })
}

/// Runs work as the call of a compiler.
fn within(compiler: &Compiler, work: impl FnOnce() -> Result<bool, String>) -> (Result<bool, String>, Vec<Error>) {
    let call = Call {
        compiler: compiler.clone(),
        reported: Vec::new(),
    };
    let before = CALL.replace(Some(call));
    let done = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("internal error in a pass (this is a bug in gpulower)".to_owned()));
    let reported = CALL.replace(before).map(|call| call.reported).unwrap_or_default();
    (done, reported)
}

fn printed(module: &Module<'_>) -> String {
    let flags = OperationPrintingFlags::new()
        .enable_debug_info(true, false)
        .print_generic_operation_form();
    module.as_operation().to_string_with_flags(flags).unwrap_or_default()
}

fn warning(diagnostic: MlirDiagnostic) -> Warning {
    Warning {
        stage: Stage::Plan,
        module: None,
        target: None,
        location: Some(diagnostic.location),
        message: diagnostic.message,
    }
}

/// An error for each diagnostic: the value behind it, or its words.
fn failure(diagnostics: Vec<MlirDiagnostic>, reported: &[Error]) -> Failure {
    let errors = diagnostics
        .into_iter()
        .map(|diagnostic| {
            let known = reported
                .iter()
                .find(|error| error.without_place().to_string() == diagnostic.message);
            let mut error = known
                .cloned()
                .unwrap_or_else(|| Error::new(Stage::Plan, InputError::Mlir(vec![diagnostic.clone()])));
            error.location = Some(diagnostic.location);
            error
        })
        .collect();
    Failure { errors }
}
