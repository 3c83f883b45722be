//! `speed=best`: a module is compiled in several ways, and for each kernel the one is taken that a static model finds better than
//! `balanced` by more than its own error.
//!
//! For NVIDIA the ways differ from kernel to kernel: the text of each comes from the variant that was chosen for it. AMD's
//! modules, and those that are more than kernels, are taken as wholes. What is chosen depends on code and resources alone.

mod code;
mod model;

use std::collections::BTreeMap;
use std::time::Instant;

use self::{code::Shape, model::Estimate};
use super::{
    Compiler, job,
    pool::{Helpers, map_each},
    request::{Outcome, Part, Product, Request, Source},
};
use crate::{
    bridge::disassemble::Disassembler,
    device::{FunctionText, assemble_ptx, cut_ptx},
    error::{Cause, Error},
    image::{
        elf::{Elf, SHT_SYMTAB},
        resource::KernelResources,
    },
    interrupt::InterruptError,
    options::{OptimizationLevel, Options, Speed},
    report::{Decision, Format},
    stage::{Stage, StageTime},
    target::{NvidiaTarget, Target},
};

/// What a variant has to take at most of the time of `balanced`. On an H200 a variant of 0.94 by the model took 1.09.
const WORTH_IT: f64 = 0.9;
const INTERLEAVED: [u32; 4] = [1, 2, 4, 8];

/// A way to compile.
struct Variant {
    name: String,
    options: Options,
}

/// What became of a variant.
struct Tried {
    name: String,
    /// PTX; what AMD's variants are made of is compiled again.
    text: String,
    options: Options,
    kernels: BTreeMap<String, Estimate>,
}

/// What was chosen for a kernel, or for a module.
struct Choice {
    /// Which variant, of those that were tried.
    variant: usize,
    reason: String,
}

/// Carries out a request as the best of several.
pub(super) fn run(compiler: &Compiler, request: Request<'_>, helpers: Helpers<'_>) -> Result<Outcome, Error> {
    let search = Search::new(compiler, &request);
    let is_code = |format| {
        matches!(
            format,
            Format::Ptx | Format::Asm | Format::Object | Format::Cubin | Format::Hsaco
        )
    };
    let makes_code = request.products.iter().all(|product| is_code(product.format));
    if !makes_code || request.options.device_link.is_some() {
        let why = "as balanced: only machine code and PTX of one module are chosen";
        let mut outcome = job::run(
            compiler,
            search.request(search.balanced(), request.products.clone()),
            helpers,
        )?;
        outcome.decisions.push(decision("speed=best", why.to_owned()));
        return Ok(outcome);
    }
    match request.target {
        Target::Nvidia(chip) => search.nvidia(chip, helpers),
        Target::Amd(_) => search.amd(helpers),
    }
}

struct Search<'a, 'c> {
    /// Without listeners that see and change stages: they see what is chosen.
    quiet: Compiler,
    compiler: &'a Compiler,
    request: &'a Request<'c>,
    start: Instant,
}

impl<'a, 'c> Search<'a, 'c> {
    fn new(compiler: &'a Compiler, request: &'a Request<'c>) -> Self {
        let mut quiet = compiler.clone();
        quiet.listeners.retain(|listener| listener.checkpoints().is_empty());
        Self {
            quiet,
            compiler,
            request,
            start: Instant::now(),
        }
    }

    fn balanced(&self) -> Options {
        Options {
            speed: Speed::Balanced,
            ..self.request.options.clone()
        }
    }

    /// The same with other options, and other products.
    fn request(&self, options: Options, products: Vec<Product>) -> Request<'c> {
        let request = self.request;
        let part = |part: &Part<_>| Part {
            name: part.name.clone(),
            source: part.source.clone(),
        };
        Request {
            name: request.name.clone(),
            module: request.module,
            parts: request.parts.iter().map(part).collect(),
            target: request.target,
            products,
            // All of it together has the time that was given.
            options: Options {
                time_limit: options
                    .time_limit
                    .map(|limit| limit.saturating_sub(self.start.elapsed())),
                ..options
            },
            include_ptx: request.include_ptx.clone(),
            notes: request.notes.clone(),
            position: request.position,
        }
    }

    /// What is made of PTX.
    fn of_ptx(&self, text: &str, options: &Options, products: Vec<Product>) -> Request<'c> {
        let mut request = self.request(options.clone(), products);
        request.options.input_optimized = false;
        request.options.llvm_passes = None;
        request.notes = Vec::new();
        request.parts = vec![Part {
            name: request.name.clone(),
            source: Source::Ptx(text.into()),
        }];
        request
    }

    /// The variants beside balanced. The one that interleaves nothing is what the others are compared by.
    fn variants(&self, interleave: u32, level: OptimizationLevel) -> Vec<Variant> {
        let is_open = self.request.options.interleave.is_none() && level >= OptimizationLevel::O2;
        let others = INTERLEAVED
            .into_iter()
            .filter(|factor| is_open && *factor != interleave);
        let variant = |factor| Variant {
            name: format!("interleave={factor}"),
            options: Options {
                interleave: Some(factor),
                ..self.balanced()
            },
        };
        others.map(variant).collect()
    }

    /// Balanced and the variants, with what `make` finds out about each; those that fail are left out.
    fn try_all(
        &self,
        base: Tried,
        helpers: Helpers<'_>,
        make: impl Fn(&Variant) -> Result<Option<Tried>, Error> + Sync,
    ) -> Result<Vec<Tried>, Error> {
        let resolved = self
            .balanced()
            .resolve(&self.request.target, None)
            .map_err(|error| Error::new(Stage::Plan, error))?;
        let variants = self.variants(resolved.interleave, resolved.optimization);
        let made = map_each(helpers, variants.len(), |index| variants.get(index).map(&make));
        let mut tried = vec![Tried {
            name: format!("interleave={}", resolved.interleave),
            ..base
        }];
        for result in made.into_iter().flatten().flatten() {
            match result {
                Ok(Some(variant)) if tried.iter().all(|other| other.text != variant.text) => tried.push(variant),
                Ok(_) => {}
                Err(error) if is_end(&error) => return Err(error),
                Err(error) => tracing::debug!(%error, "a variant is left out"),
            }
        }
        Ok(tried)
    }

    fn nvidia(&self, chip: NvidiaTarget, helpers: Helpers<'_>) -> Result<Outcome, Error> {
        let target = Target::Nvidia(chip);
        // What a virtual architecture is judged by is the chip of the same number.
        let judged = target.to_string().replace("compute_", "sm_").parse().unwrap_or(target);
        let product = |target, format| Product { target, format };
        let cubin = || vec![product(judged, Format::Cubin)];
        let mut products = self.request.products.clone();
        let asked = products.len();
        products.extend([product(target, Format::Ptx), product(judged, Format::Cubin)]);
        let mut base = job::run(&self.quiet, self.request(self.balanced(), products), helpers)?;
        let added = base.images.split_off(asked.min(base.images.len()));
        let [(_, text), (image, _)] = added.as_slice() else {
            return Err(Error::new(
                Stage::Plan,
                Cause::Internal("PTX and a cubin were asked for".to_owned()),
            ));
        };
        let text = String::from_utf8_lossy(text).into_owned();
        let tried = |name: &str, options: &Options, text: String, kernels: &[KernelResources]| {
            let shapes = shapes_of_ptx(&text);
            let estimate = |kernel: &KernelResources| {
                let shape = shapes.get(&kernel.name).cloned().unwrap_or_default();
                (kernel.name.clone(), Estimate::new(&judged, kernel.clone(), shape))
            };
            Tried {
                name: name.to_owned(),
                options: options.clone(),
                kernels: kernels.iter().map(estimate).collect(),
                text,
            }
        };
        let first = tried("", &self.balanced(), text.clone(), &image.kernels);
        let all = self.try_all(first, helpers, |variant| {
            let ptx = vec![product(target, Format::Ptx)];
            let made = job::run(&self.quiet, self.request(variant.options.clone(), ptx), Helpers::None)?;
            let made = made
                .images
                .into_iter()
                .next()
                .map(|(_, bytes)| bytes)
                .unwrap_or_default();
            let made = String::from_utf8_lossy(&made).into_owned();
            if made == text {
                return Ok(None);
            }
            let outcome = job::run(
                &self.quiet,
                self.of_ptx(&made, &variant.options, cubin()),
                Helpers::None,
            )?;
            let kernels = outcome.images.first().map(|(image, _)| image.kernels.as_slice());
            Ok(Some(tried(
                &variant.name,
                &variant.options,
                made,
                kernels.unwrap_or_default(),
            )))
        })?;
        let is_watched = self.quiet.listeners.len() != self.compiler.listeners.len();
        let Some(cut) = Cut::of(&all).filter(|_| !is_watched) else {
            return self.whole(base, &all, helpers);
        };
        let choices: BTreeMap<String, Choice> = all[0]
            .kernels
            .keys()
            .map(|kernel| (kernel.clone(), choose(&all, Some(kernel))))
            .collect();
        let text = cut.mixed(&choices);
        let chosen = choices.into_iter().map(|(kernel, choice)| {
            let name = all.get(choice.variant).map_or("", |variant| &variant.name);
            decision(
                &format!("speed=best, kernel {kernel}"),
                format!("{name}: {}", choice.reason),
            )
        });
        let chosen: Vec<Decision> = chosen.collect();
        match text.filter(|text| *text != all[0].text) {
            None => Ok(with(base, None, chosen)),
            Some(text) => {
                let request = self.of_ptx(&text, &self.balanced(), self.request.products.clone());
                let made = job::run(self.compiler, request, helpers)?;
                Ok(with(base, Some(made), chosen))
            }
        }
    }

    /// The one variant that is best for all kernels together.
    fn whole(&self, base: Outcome, all: &[Tried], helpers: Helpers<'_>) -> Result<Outcome, Error> {
        let choice = choose(all, None);
        let is_watched = self.quiet.listeners.len() != self.compiler.listeners.len();
        let name = all.get(choice.variant).map_or("", |variant| &variant.name);
        let chosen = vec![decision(
            "speed=best, all kernels",
            format!("{name}: {}", choice.reason),
        )];
        match all.get(choice.variant).filter(|_| choice.variant > 0 || is_watched) {
            None => Ok(with(base, None, chosen)),
            Some(variant) => {
                let request = self.request(variant.options.clone(), self.request.products.clone());
                let made = job::run(self.compiler, request, helpers)?;
                Ok(with(base, Some(made), chosen))
            }
        }
    }

    fn amd(&self, helpers: Helpers<'_>) -> Result<Outcome, Error> {
        let target = self.request.target;
        let products = [Format::Object, Format::Hsaco].map(|format| Product { target, format });
        let try_one = |variant: &Variant| -> Result<Option<Tried>, Error> {
            let request = self.request(variant.options.clone(), products.to_vec());
            let outcome = job::run(&self.quiet, request, Helpers::None)?;
            let [(_, object), (image, _)] = outcome.images.as_slice() else {
                return Ok(None);
            };
            let shapes = shapes_of_amd(&target, object);
            let estimate = |kernel: &KernelResources| {
                let shape = shapes.get(&kernel.name).cloned().unwrap_or_default();
                (kernel.name.clone(), Estimate::new(&target, kernel.clone(), shape))
            };
            Ok(Some(Tried {
                name: variant.name.clone(),
                // What is the same is not tried twice.
                text: blake3::hash(object).to_string(),
                options: variant.options.clone(),
                kernels: image.kernels.iter().map(estimate).collect(),
            }))
        };
        let balanced = Variant {
            name: String::new(),
            options: self.balanced(),
        };
        let Some(base) = try_one(&balanced)? else {
            return Err(Error::new(
                Stage::Plan,
                Cause::Internal("an object and an hsaco were asked for".to_owned()),
            ));
        };
        let all = self.try_all(base, helpers, try_one)?;
        let choice = choose(&all, None);
        let Some(variant) = all.get(choice.variant) else {
            return Err(Error::new(Stage::Plan, Cause::Internal("nothing was tried".to_owned())));
        };
        let request = self.request(variant.options.clone(), self.request.products.clone());
        let mut made = job::run(self.compiler, request, helpers)?;
        made.decisions.push(decision(
            "speed=best, all kernels",
            format!("{}: {}", variant.name, choice.reason),
        ));
        Ok(made)
    }
}

/// The functions of every variant, where these are kernels and nothing else.
struct Cut {
    header: String,
    /// By variant, in the order of the module.
    functions: Vec<Vec<FunctionText>>,
}

impl Cut {
    fn of(all: &[Tried]) -> Option<Self> {
        let mut header = None;
        let mut functions = Vec::new();
        for variant in all {
            let (its, made) = cut_ptx(&variant.text).ok()?;
            let are_kernels = made.iter().all(|function| variant.kernels.contains_key(&function.name));
            if !are_kernels || made.is_empty() || *header.get_or_insert_with(|| its.clone()) != its {
                return None;
            }
            functions.push(made);
        }
        Some(Self {
            header: header?,
            functions,
        })
    }

    /// A module with what was chosen for each kernel.
    fn mixed(&self, choices: &BTreeMap<String, Choice>) -> Option<String> {
        let functions = self.functions.first()?.iter().map(|function| {
            let variant = choices.get(&function.name).map_or(0, |choice| choice.variant);
            let mut its = self.functions.get(variant)?.iter();
            its.find(|its| its.name == function.name).cloned()
        });
        let functions: Vec<FunctionText> = functions.collect::<Option<_>>()?;
        assemble_ptx(&self.header, &functions).ok()
    }
}

/// The loops of a kernel as they are without interleaving.
fn plain<'t>(all: &'t [Tried], kernel: &str) -> Option<&'t Shape> {
    let variant = all.iter().find(|variant| variant.name == "interleave=1");
    // Where it has the code of balanced, that is what it does.
    Some(&variant.or(all.first())?.kernels.get(kernel)?.shape)
}

/// The best variant for one kernel, or for all. Balanced wins where nothing is better by more than the model's error.
fn choose(all: &[Tried], kernel: Option<&str>) -> Choice {
    let Some(base) = all.first() else {
        return Choice {
            variant: 0,
            reason: "nothing was tried".to_owned(),
        };
    };
    let names = || {
        base.kernels
            .keys()
            .filter(|name| kernel.is_none_or(|kernel| kernel == *name))
    };
    let ratio = |variant: &Tried| -> Option<f64> {
        let ratios = names().map(|name| {
            variant
                .kernels
                .get(name)?
                .compared(base.kernels.get(name)?, plain(all, name)?)
        });
        let ratios: Vec<f64> = ratios.collect::<Option<_>>()?;
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    };
    let ratios: Vec<Option<f64>> = all.iter().map(ratio).collect();
    let mut best = (0, WORTH_IT);
    for (index, ratio) in ratios.iter().enumerate().skip(1) {
        if let Some(ratio) = ratio.filter(|ratio| *ratio <= best.1 - f64::from(u8::from(best.0 > 0)) * 0.01) {
            best = (index, ratio);
        }
    }
    let one = names().next().filter(|_| kernel.is_some() || base.kernels.len() == 1);
    let reason = match (best, one) {
        ((0, _), _) => {
            let shown = all.iter().zip(&ratios).skip(1).map(|(variant, ratio)| match ratio {
                Some(ratio) => format!("{} {ratio:.2}", variant.name),
                None => format!("{} not comparable", variant.name),
            });
            let shown: Vec<String> = shown.collect();
            match shown.is_empty() {
                true => "as balanced: the variants are the same code".to_owned(),
                false => format!(
                    "as balanced: no variant is estimated {WORTH_IT} of its time ({})",
                    shown.join(", ")
                ),
            }
        }
        ((index, ratio), Some(name)) => {
            let of = |variant: Option<&'_ Tried>| variant.and_then(|variant| variant.kernels.get(name)).cloned();
            match (of(all.get(index)), of(Some(base))) {
                (Some(chosen), Some(base)) => reason(&chosen, &base, ratio),
                _ => String::new(),
            }
        }
        ((_, ratio), None) => format!("estimated {ratio:.2} of balanced"),
    };
    Choice {
        variant: best.0,
        reason,
    }
}

/// `48 registers, occupancy 63% for 50%, estimated 0.91 of balanced`
fn reason(chosen: &Estimate, base: &Estimate, ratio: f64) -> String {
    let percent = |estimate: &Estimate| {
        estimate
            .occupancy
            .as_ref()
            .map_or(0, crate::occupancy::Occupancy::percent)
    };
    format!(
        "{} registers for {}, occupancy {}% for {}%, estimated {ratio:.2} of balanced",
        chosen.registers().unwrap_or(0),
        base.registers().unwrap_or(0),
        percent(chosen),
        percent(base)
    )
}

fn decision(choice: &str, outcome: String) -> Decision {
    Decision {
        stage: Stage::CodeGen,
        choice: choice.to_owned(),
        outcome,
    }
}

/// Whether nothing more is to be tried.
fn is_end(error: &Error) -> bool {
    matches!(
        error.cause(),
        Some(Cause::Interrupted(
            InterruptError::Cancelled | InterruptError::TimeLimit { .. }
        ))
    )
}

/// What `balanced` gave, with other images if others were made.
fn with(mut base: Outcome, made: Option<Outcome>, chosen: Vec<Decision>) -> Outcome {
    // Where parts of it came from is of no interest in what was made of several.
    base.decisions.retain(|decision| decision.stage != Stage::Cache);
    base.decisions.extend(chosen);
    if let Some(made) = made {
        base.images = made.images;
        base.warnings.retain(|warning| warning.stage < Stage::CodeGen);
        base.warnings.extend(made.warnings);
        for StageTime { stage, time } in made.stages {
            match base.stages.iter_mut().find(|known| known.stage == stage) {
                Some(known) => known.time += time,
                None => base.stages.push(StageTime { stage, time }),
            }
        }
    }
    base
}

/// The kernels of PTX.
fn shapes_of_ptx(text: &str) -> BTreeMap<String, Shape> {
    let mut shapes = BTreeMap::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(".entry ") {
        let end = after.find(".entry ").unwrap_or(after.len());
        let (body, next) = after.split_at(end);
        let name = body.split(['(', ' ', '\n']).next().unwrap_or_default();
        shapes.insert(name.to_owned(), Shape::of_ptx(body));
        rest = next;
    }
    shapes
}

/// The kernels of an object of AMD's.
fn shapes_of_amd(target: &Target, object: &[u8]) -> BTreeMap<String, Shape> {
    /// `STT_FUNC`.
    const FUNCTION: u8 = 2;
    let read = || {
        let chip = target.as_amd()?;
        let features = chip.llvm_features(None).ok()?;
        let mut disassembler = Disassembler::new(target.triple(), target.chip(), &features).ok()?;
        let elf = Elf::parse(object).ok()?;
        let mut shapes = BTreeMap::new();
        for symbol in elf.symbols(SHT_SYMTAB).ok()? {
            let section = elf.sections().get(usize::from(symbol.section));
            let Some(section) = section.filter(|_| symbol.kind == FUNCTION && !symbol.is_undefined()) else {
                continue;
            };
            let start = usize::try_from(symbol.value).ok()?;
            let end = start.checked_add(usize::try_from(symbol.size).ok()?)?;
            let code = elf.contents(section).ok()?.get(start..end)?;
            shapes.insert(symbol.name.to_owned(), Shape::of_amd(&mut disassembler, code));
        }
        Some(shapes)
    };
    read().unwrap_or_default()
}
