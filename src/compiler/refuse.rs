//! What is refused before anything is compiled: options, formats and chips that do not go together.

use super::{
    Compiler,
    emit::Emit,
    plan::{self, Step},
    request::{Product, Request},
};
use crate::{
    error::{Cause, Error, Failure},
    options::{Isolation, OptionError},
    stage::Stage,
    target::{CudaRelease, Target},
};

/// Releases of CUDA that compilers are looked at for: chips that both know need no look.
const OLDEST_AND_NEWEST: [CudaRelease; 2] = [CudaRelease::new(12, 0), CudaRelease::new(13, 0)];

impl Compiler {
    /// Refuses requests that cannot succeed, all at once, and what the gate refuses. `input_of`: the input that a module is of.
    pub(super) fn refuse(
        &self,
        requests: &[Request<'_>],
        emit: Emit,
        input_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), Failure> {
        let errors: Vec<Error> = requests.iter().filter_map(|request| self.refusal(request)).collect();
        if !errors.is_empty() {
            return Err(Failure {
                errors: one_of_each(errors),
            });
        }
        Ok(self.ask_gate(requests, emit, input_of)?)
    }

    /// Asks who wanted to be asked about what is to come out.
    pub(super) fn ask_gate(
        &self,
        requests: &[Request<'_>],
        emit: Emit,
        input_of: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), Error> {
        match &self.gate {
            Some(gate) => gate(&Self::outputs(requests, emit, input_of))
                .map_err(|reason| Error::new(Stage::Output, Cause::Gate(reason))),
            None => Ok(()),
        }
    }

    /// Why a request cannot succeed, as far as that is known before it begins.
    pub(super) fn refusal(&self, request: &Request<'_>) -> Option<Error> {
        let error = self.check(request).err()?;
        let mut error = error.in_module(&request.name).for_target(&request.target);
        let place = request.place();
        // Options that do not fit are not in the source.
        if let (true, Some(place)) = (error.stage != Stage::Plan, place) {
            error.location.get_or_insert(place);
        }
        Some(error)
    }

    fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        let planned = |cause: Cause| Error::new(Stage::Plan, cause);
        let steps = plan::steps(request).map_err(planned)?;
        request
            .options
            .resolve(&request.target, None)
            .map_err(|error| planned(error.into()))?;
        for step in steps {
            let Step::PtxToCubin(Product { target, .. }) = step else {
                continue;
            };
            let choice = request.options.ptx_compiler;
            // Where compilers are to stay in processes of their own, this one loads none.
            let may_look = self.options.isolation == Isolation::InProcess && !is_common(&target);
            if let Target::Nvidia(chip) = target
                && (may_look || self.ptx_to_cubin.first(choice).is_none())
            {
                self.ptx_to_cubin
                    .check_chip(&chip, choice)
                    .map_err(|error| Error::new(Stage::PtxToCubin, error).for_target(&target))?;
            }
        }
        Ok(())
    }
}

fn is_common(target: &Target) -> bool {
    let chip = target.as_nvidia();
    chip.is_some_and(|chip| OLDEST_AND_NEWEST.iter().all(|release| chip.supported_by_cuda(*release)))
}

/// Errors that are known before anything is compiled, each once: what is wrong with many modules alike, or with one option for
/// several targets, is said once.
pub(super) fn one_of_each(errors: Vec<Error>) -> Vec<Error> {
    let mut ones: Vec<(Error, Vec<Target>)> = Vec::new();
    for error in errors {
        let targets: Vec<Target> = error.target.into_iter().collect();
        match ones.iter_mut().find(|(one, _)| is_same(one, &error)) {
            Some((one, its)) => {
                if one.module != error.module {
                    (one.module, one.location) = (None, None);
                }
                if one.input != error.input {
                    one.input = None;
                }
                its.extend(
                    targets
                        .into_iter()
                        .filter(|target| !its.contains(target))
                        .collect::<Vec<_>>(),
                );
            }
            None => ones.push((error, targets)),
        }
    }
    ones.into_iter().map(|(one, targets)| for_all(one, &targets)).collect()
}

/// Whether two errors are about the same, for modules or targets that differ.
fn is_same(one: &Error, other: &Error) -> bool {
    if one.stage != other.stage {
        return false;
    }
    match (option_and_reason(one), option_and_reason(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.message == other.message && one.target == other.target,
    }
}

fn option_and_reason(error: &Error) -> Option<(&'static str, &str)> {
    match error.cause() {
        Some(Cause::Option(OptionError::NotHonoured { name, reason, .. })) => Some((name, reason)),
        _ => None,
    }
}

/// The error for all of the targets that it is about.
fn for_all(mut error: Error, targets: &[Target]) -> Error {
    let (Some((name, reason)), [_, _, ..]) = (option_and_reason(&error), targets) else {
        return error;
    };
    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    let cause = OptionError::NotHonoured {
        name,
        target: names.join(", "),
        reason: reason.to_owned(),
    };
    error.message = cause.to_string();
    error.target = None;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_honoured(module: &str, target: &str, reason: &str) -> Error {
        let cause = OptionError::NotHonoured {
            name: "wave-size",
            target: target.to_owned(),
            reason: reason.to_owned(),
        };
        Error::new(Stage::Plan, cause)
            .in_module(module)
            .for_target(&target.parse().expect("a target"))
    }

    #[test]
    fn one_wrong_option_is_one_error() {
        let errors = ["a", "b"]
            .iter()
            .flat_map(|module| ["sm_80", "sm_90"].map(|target| not_honoured(module, target, "no")))
            .chain([not_honoured("a", "sm_70", "another reason")])
            .collect();
        let texts: Vec<String> = one_of_each(errors).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "plan: option 'wave-size' cannot be honoured for sm_80, sm_90: no",
                "plan, module a, target sm_70: option 'wave-size' cannot be honoured for sm_70: another reason"
            ]
        );
    }
}
