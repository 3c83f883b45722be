//! What is to be done: inputs, targets, a form, options.

use std::{path::PathBuf, sync::Arc};

use gpulower::{
    Emit, ErrorKind, Library, Options, Stage, Target,
    offload::{HostTriple, release::FinishWith},
    options::DeviceLink,
};

use crate::{
    config::{directory, refused, set_option, switch},
    problem::Problem,
};

/// Bytes with a name for messages.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub name: String,
    pub bytes: Arc<[u8]>,
    /// What an image that is packed is for, where it does not say so itself.
    pub target: Option<String>,
}

/// One call to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub inputs: Vec<Input>,
    pub libraries: Vec<Library>,
    pub objects: Vec<Library>,
    pub targets: Vec<Target>,
    pub emit: Option<Emit>,
    options: Vec<(String, String)>,
    device_link: bool,
    pub keep_going: bool,
    pub export: ExportSettings,
    pub pass: Option<String>,
    pub pass_options: Vec<(String, String)>,
}

/// How a program is exported.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportSettings {
    /// `obj` where nothing is said.
    pub form: Option<String>,
    pub finish_with: Option<FinishWith>,
    pub host_triple: Option<HostTriple>,
    pub unit: Option<String>,
    pub keep_names: bool,
    pub further_toolkits: Vec<PathBuf>,
}

impl Request {
    /// Sets one thing. The header lists the keys.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let wrong = |kind, error: &dyn std::fmt::Display| Problem::new(Stage::Plan, kind, error.to_string());
        match key {
            "target" => {
                let targets = Target::parse_list(value).map_err(|error| wrong(ErrorKind::Target, &error))?;
                self.targets.extend(targets);
            }
            "emit" => self.emit = Some(value.parse().map_err(|error| wrong(ErrorKind::Target, &error))?),
            "link" => self.libraries.push(Library::File(value.into())),
            "link-object" => self.objects.push(Library::File(value.into())),
            "device-link" => self.device_link = switch(key, value)?,
            "keep-going" => self.keep_going = switch(key, value)?,
            "export-form" => self.export.form = Some(value.to_owned()),
            "finish-with" => {
                let list = value.parse().map_err(|error| wrong(ErrorKind::Export, &error))?;
                self.export.finish_with = Some(list);
            }
            "host-triple" => {
                let triple = value.parse().map_err(|error| wrong(ErrorKind::Export, &error))?;
                self.export.host_triple = Some(triple);
            }
            "unit" => self.export.unit = Some(value.to_owned()),
            "keep-names" => self.export.keep_names = switch(key, value)?,
            "pass" => self.pass = Some(value.to_owned()),
            "pass-option" => {
                let (name, value) = value.split_once('=').ok_or_else(|| refused(key, value, "NAME=VALUE"))?;
                self.pass_options.push((name.to_owned(), value.to_owned()));
            }
            "ptxas-of" => self.export.further_toolkits.push(directory(key, value)?),
            _ => {
                // Refused now, where the caller can see which it is; applied to the compiler's options later.
                set_option(&mut Options::default(), key, value)?;
                self.options.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// The compiler's options with those of the request.
    pub(crate) fn options(&self, base: &Options) -> Result<Options, Problem> {
        let mut options = base.clone();
        for (key, value) in &self.options {
            set_option(&mut options, key, value)?;
        }
        options.libraries.extend(self.libraries.iter().cloned());
        if self.device_link || !self.objects.is_empty() {
            options.device_link = Some(DeviceLink {
                objects: self.objects.clone(),
            });
        }
        Ok(options)
    }

    /// The inputs as compilations take them.
    pub(crate) fn sources(&self) -> Result<Vec<(&str, &[u8])>, Problem> {
        if self.inputs.is_empty() {
            return Err(Problem::argument(
                "request has no input: add one with gpulower_request_add_input",
            ));
        }
        Ok(self
            .inputs
            .iter()
            .map(|input| (input.name.as_str(), &*input.bytes))
            .collect())
    }
}
