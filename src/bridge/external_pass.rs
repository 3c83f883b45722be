//! Passes written in Rust: what MLIR's pass manager calls by name, with options. The passes are those of `crate::passes`.

use std::{
    borrow::Cow,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

use melior::ir::{Location, operation::OperationLike};
use mlir_sys::MlirOperation;

use super::{
    contain::{Bytes, Uncontained},
    edit::Exclusive,
    mlir::{Severity, emit},
};

/// One option of a pass. Values are strings; [`NamedPass::parse`] gives them their type.
#[derive(Clone, Debug)]
pub(crate) struct PassOption {
    /// Name in pipeline strings, in kebab case.
    pub(crate) name: &'static str,
    /// One line for `--help`.
    pub(crate) help: Cow<'static, str>,
    /// Value when the pipeline string does not give one.
    pub(crate) default: &'static str,
}

/// The values of a pass's options, in the order of [`NamedPass::options`].
#[derive(Clone, Debug)]
pub(crate) struct OptionValues {
    names: &'static [PassOption],
    values: Vec<String>,
}

impl OptionValues {
    /// Values by name, and defaults for the others; a name that `pass` does not have is an error.
    pub(crate) fn by_name(pass: &str, names: &'static [PassOption], given: &[(&str, &str)]) -> Result<Self, String> {
        let mut values: Vec<String> = names.iter().map(|option| option.default.to_owned()).collect();
        for (name, value) in given {
            let place = names.iter().position(|option| option.name == *name);
            match place.and_then(|place| values.get_mut(place)) {
                Some(place) => (*value).clone_into(place),
                None => return Err(format!("{pass} has no option '{name}'")),
            }
        }
        Ok(Self { names, values })
    }

    /// The value of an option, or the empty string for a name that the pass does not have.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.names
            .iter()
            .zip(&self.values)
            .find(|(option, _)| option.name == name)
            .map_or("", |(_, value)| value)
    }
}

/// A pass that MLIR knows by name.
pub(crate) trait NamedPass: Sync + 'static {
    /// Name in pipeline strings.
    const ARGUMENT: &'static str;
    /// One line for `--help`.
    const DESCRIPTION: &'static str;
    /// Options with their types.
    type Options;

    /// Options in the order of `--help`; the same at every call.
    fn options() -> &'static [PassOption];

    /// Gives the option values their types, or says what is wrong with them.
    fn parse(values: &OptionValues) -> Result<Self::Options, String>;

    /// Whether operations of this name can be the pass's anchor.
    fn can_schedule_on(operation_name: &str) -> bool;

    /// Runs on one operation, which is the pass's alone meanwhile. An error means that a diagnostic has been emitted.
    fn run(options: &Self::Options, operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted>;
}

/// A diagnostic with the reason of a failure has gone to MLIR's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiagnosticEmitted;

/// MLIR's own function for messages.
type Report = extern "C-unwind" fn(*mut c_void, Bytes);

#[repr(C)]
struct RawOption {
    name: Bytes,
    help: Bytes,
    initial: Bytes,
}

#[repr(C)]
struct RawTable {
    argument: Bytes,
    description: Bytes,
    options: *const RawOption,
    option_count: usize,
    pass: *const c_void,
    validate: extern "C" fn(*const c_void, *const Bytes, Report, *mut c_void) -> bool,
    run: extern "C" fn(*const c_void, *const Bytes, MlirOperation) -> bool,
    can_schedule_on: extern "C" fn(*const c_void, Bytes) -> bool,
}

unsafe extern "C-unwind" {
    fn gpulowerRegisterPass(table: *const RawTable);
    fn gpulowerRegisterModuleToBinary(table: *const RawTable);
}

/// Registers a pass with MLIR, for this process. Call once per pass: MLIR refuses a second registration.
pub(crate) fn register<P: NamedPass>() {
    // SAFETY: the table and all it points to live as long as the process.
    unsafe { gpulowerRegisterPass(table::<P>()) }
}

/// Registers a pass as MLIR's `gpu-module-to-binary`. Of two registrations under a name MLIR keeps the first.
pub(crate) fn register_in_place<P: NamedPass>() {
    // SAFETY: as above.
    unsafe { gpulowerRegisterModuleToBinary(table::<P>()) }
}

fn table<P: NamedPass>() -> &'static RawTable {
    let options: Vec<RawOption> = P::options()
        .iter()
        .map(|option| RawOption {
            name: Bytes::new(option.name.as_bytes()),
            help: Bytes::new(option.help.as_bytes()),
            initial: Bytes::new(option.default.as_bytes()),
        })
        .collect();
    let options = options.leak();
    Box::leak(Box::new(RawTable {
        argument: Bytes::new(P::ARGUMENT.as_bytes()),
        description: Bytes::new(P::DESCRIPTION.as_bytes()),
        options: options.as_ptr(),
        option_count: options.len(),
        pass: std::ptr::null(),
        validate: validate::<P>,
        run: run::<P>,
        can_schedule_on: can_schedule_on::<P>,
    }))
}

/// # Safety
///
/// `values` points to as many strings as `P` has options.
unsafe fn option_values<P: NamedPass>(values: *const Bytes) -> OptionValues {
    let values = (0..P::options().len())
        // SAFETY: the C++ pass hands over one string for each option.
        .map(|index| unsafe { (*values.add(index)).to_text() })
        .collect();
    OptionValues {
        names: P::options(),
        values,
    }
}

/// Called by MLIR's parser of pipelines, which may be contained.
extern "C" fn validate<P: NamedPass>(
    _pass: *const c_void,
    values: *const Bytes,
    report: Report,
    closure: *mut c_void,
) -> bool {
    let _uncontained = Uncontained::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: called by the C++ pass with its options.
        P::parse(&unsafe { option_values::<P>(values) }).map(|_| ())
    }));
    let message = match outcome {
        Ok(Ok(())) => return true,
        Ok(Err(message)) => message,
        Err(_) => "internal error while reading the options (this is a bug in gpulower)".to_owned(),
    };
    report(closure, Bytes::new(message.as_bytes()));
    false
}

extern "C" fn run<P: NamedPass>(_pass: *const c_void, values: *const Bytes, operation: MlirOperation) -> bool {
    let _uncontained = Uncontained::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: called by the C++ pass with its options and the operation it is allowed to change: MLIR's pass manager gives
        // one operation, and what is inside of it, to one pass at a time.
        let (values, operation) = unsafe { (option_values::<P>(values), Exclusive::from_raw(operation)) };
        match P::parse(&values) {
            Ok(options) => P::run(&options, operation),
            Err(message) => {
                emit(operation.get().location(), Severity::Error, &message);
                Err(DiagnosticEmitted)
            }
        }
    }));
    match outcome {
        Ok(result) => result.is_ok(),
        Err(_) => {
            // SAFETY: the operation that the pass was called on is still alive: a pass changes what is inside of it.
            let location = unsafe { Location::from_raw(mlir_sys::mlirOperationGetLocation(operation)) };
            emit(location, Severity::Error, "internal error (this is a bug in gpulower)");
            false
        }
    }
}

extern "C" fn can_schedule_on<P: NamedPass>(_pass: *const c_void, operation_name: Bytes) -> bool {
    let _uncontained = Uncontained::new();
    // SAFETY: the string lives during the call.
    catch_unwind(|| P::can_schedule_on(&unsafe { operation_name.to_text() })).unwrap_or(false)
}
