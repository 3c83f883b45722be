//! From what LLVM emitted to the images asked for.

use super::{
    cached::{Kept, get_or_make, machine_code_key, taken},
    job::Job,
    kernels::{PtxCode, PtxWork},
    phases::llvm_part,
    request::Product,
};
use crate::{
    cache::Cache,
    error::{Cause, Error},
    image::{hsaco::Hsaco, ptx_log, ptx_symbols::symbols, resource::KernelResources, symbols::SymbolKind},
    options::{DebugLevel, FpContract},
    report::{Decision, Format, Image},
    serialize::{
        amd::{self, LinkedHsaco},
        device_link::{self, LinkInput, LinkOptions, LtoOptions},
        nvidia::{Outcome as Attempted, PtxCompiler},
        nvidia_options::PtxOptions,
    },
    stage::Stage,
    target::Vendor,
};

impl Job<'_, '_> {
    /// What LLVM emitted, as it is.
    pub(super) fn keep(&self, product: &Product, code: Vec<u8>) -> Result<(Image, Vec<u8>), Error> {
        let is_object = product.format == Format::Object && product.target.vendor() == Vendor::Amd;
        let image = Image {
            target: product.target,
            format: product.format,
            bytes: code.len(),
            tool: is_object.then(|| llvm_part("LLVM")),
            kernels: if is_object { hsaco_kernels(&code)? } else { Vec::new() },
            log: String::new(),
        };
        Ok((image, code))
    }

    /// An hsaco from an object.
    pub(super) fn hsaco(&mut self, product: &Product, object: &[u8]) -> Result<(Image, Vec<u8>), Error> {
        let name = &self.name;
        let key = || Some(machine_code_key("hsaco", &[("object", object)]));
        let kept = Kept {
            is_claimed: true,
            what: "an hsaco",
            module: name,
            same: |known: &LinkedHsaco, made| known.bytes == made.bytes,
            may_be_kept: |_| true,
        };
        let clock = &mut self.clock;
        let interrupt = clock.interrupt().clone();
        let stop = || interrupt.check().is_err();
        let made = get_or_make(self.compiler.cache(), key, &kept, &stop, Cache::get, || {
            clock
                .time(Stage::LinkObject, || amd::link_object(name, object))
                .map_err(|error| Error::new(Stage::LinkObject, error))
        })?;
        self.decisions.extend(made.from.map(taken));
        let linked = made.value;
        let image = Image {
            target: product.target,
            format: product.format,
            bytes: linked.bytes.len(),
            tool: Some(llvm_part("lld")),
            kernels: hsaco_kernels(&linked.bytes)?,
            log: linked.warnings.join("\n"),
        };
        Ok((image, linked.bytes))
    }

    fn ptx_options(&self, relocatable: bool) -> PtxOptions {
        PtxOptions {
            opt_level: self.resolved.optimization.number(),
            // The kernels carry the limit themselves; given here too, it is checked on the result.
            max_registers: self.resolved.max_registers,
            line_info: self.resolved.debug == DebugLevel::LineTables,
            device_debug: self.resolved.debug == DebugLevel::Full,
            relocatable,
            threads: None,
            extra: self.options.ptxas_options.clone(),
        }
    }

    /// Machine code linked from what was generated and from the user's objects.
    pub(super) fn device_link(&mut self, product: &Product, code: &[u8]) -> Result<(Image, Vec<u8>), Error> {
        let failed = |error| Error::new(Stage::DeviceLink, error);
        let options = match product.target.vendor() {
            Vendor::Nvidia => LinkOptions {
                ptx: self.ptx_options(false),
                lto: LtoOptions {
                    flush_denormals: Some(self.resolved.flush_denormals),
                    precise_division: Some(self.resolved.precise_division),
                    precise_square_root: Some(self.resolved.precise_square_root),
                    contract: Some(self.resolved.contract != FpContract::Off),
                },
            },
            Vendor::Amd => LinkOptions::default(),
        };
        let objects = self.objects.iter().map(|object| (object.name.as_str(), &*object.bytes));
        let inputs = std::iter::once((self.name.as_str(), code))
            .chain(objects)
            .map(|(name, bytes)| LinkInput::detect(name, bytes))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let tools = &self.compiler.ptx_to_cubin;
        let linked = self
            .clock
            .time(Stage::DeviceLink, || {
                device_link::link(&inputs, &product.target, &options, tools)
            })
            .map_err(failed)?;
        for warning in linked.warnings {
            self.warn_for(product.target, Stage::DeviceLink, warning);
        }
        let image = Image {
            target: product.target,
            format: product.format,
            bytes: linked.bytes.len(),
            tool: Some(linked.tool),
            kernels: linked.kernels,
            log: linked.log,
        };
        Ok((image, linked.bytes))
    }

    /// A cubin, relocatable if the product is an object.
    pub(super) fn cubin(&mut self, product: &Product, code: PtxCode<'_>) -> Result<(Image, Vec<u8>), Error> {
        // An executable cubin has no functions but kernels: without them, others could not link what there is.
        let options =
            self.ptx_options(product.format == Format::Object || matches!(code, PtxCode::Text(ptx) if is_library(ptx)));
        let interrupt = self.clock.interrupt().clone();
        let choice = self.options.ptx_compiler;
        let helpers = self.helpers;
        let (compiler, name) = (self.compiler, self.name.clone());
        let told = compiler.kernels_told(&name, &product.target);
        let work = PtxWork {
            compiler: &self.compiler.ptx_to_cubin,
            cache: self.compiler.cache(),
            module: &self.name,
            chip: product.target.chip(),
            options: &options,
            choice,
            at_once: self.resolved.fast_compile,
            interrupt: &interrupt,
            told: &told,
        };
        let made = self.clock.time(Stage::PtxToCubin, || work.cubin(code, helpers))?;
        self.decisions.extend(made.taken());
        let cubin = made.cubin;
        self.decisions.extend(cubin.decisions.iter().map(|decision| Decision {
            stage: Stage::PtxToCubin,
            choice: match &decision.version {
                Some(version) => format!("{} {version}", decision.compiler.name()),
                None => decision.compiler.name().to_owned(),
            },
            outcome: match &decision.outcome {
                Attempted::Used => "used".to_owned(),
                Attempted::Failed => "failed".to_owned(),
                Attempted::Unavailable(reason) => format!("not available: {reason}"),
                Attempted::Unsupported(reason) => format!("not possible: {reason}"),
            },
        }));
        if cubin.compiler == PtxCompiler::NvJitLink && choice.is_none() {
            self.warn_for(
                product.target,
                Stage::PtxToCubin,
                "compiled by nvJitLink, which makes relocatable code and may use more registers than ptxas; \
                 install ptxas or nvPTXCompiler"
                    .to_owned(),
            );
        }
        let unreadable = |error| Error::new(Stage::PtxToCubin, Cause::Cubin(error));
        let log = ptx_log::parse(&cubin.log);
        let info = cubin.info_with(&log).map_err(unreadable)?;
        for warning in log.warnings {
            self.warn_for(product.target, Stage::PtxToCubin, warning);
        }
        let image = Image {
            target: product.target,
            format: product.format,
            bytes: cubin.bytes.len(),
            tool: Some(format!("{} {}", cubin.compiler.name(), cubin.version)),
            kernels: info.kernels,
            log: cubin.log,
        };
        Ok((image, cubin.bytes))
    }
}

/// Whether PTX has functions for others, and no kernel.
fn is_library(ptx: &str) -> bool {
    // A kernel cannot be written without the word; the rest is read for those alone that may be libraries.
    !ptx.contains(".entry")
        && symbols(ptx.as_bytes()).is_ok_and(|symbols| {
            let mut defined = symbols.defined.values();
            defined.any(|symbol| symbol.kind == SymbolKind::Function)
        })
}

fn hsaco_kernels(bytes: &[u8]) -> Result<Vec<KernelResources>, Error> {
    let hsaco = Hsaco::read(bytes).map_err(|error| Error::new(Stage::LinkObject, Cause::Hsaco(error)))?;
    Ok(hsaco.resources().cloned().collect())
}
