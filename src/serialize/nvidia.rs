//! PTX to cubin with whichever of NVIDIA's compilers is at hand: nvPTXCompiler inside the process, else the
//! program `ptxas`, else nvJitLink.
//!
//! The first two give the same cubin but for one note section; nvJitLink compiles to relocatable code and
//! links that. A compiler that is missing, or does not know the chip or the PTX version, is passed over, and
//! the next one is tried. One that refuses the PTX itself ends the search: the others would say the same.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::nvidia_error::{Decision, Outcome, PtxCompiler, SerializeError};
pub use super::nvidia_options::PtxOptions;

use super::nvidia_attempt::{self as attempt, Attempt};
use super::{nvptxcompiler, ptxas, source_files};
use crate::bridge::nvjitlink::NvJitLink;
use crate::bridge::nvptxcompiler::NvPtxCompiler;
use crate::image::cubin::{self, CubinInfo};
use crate::image::{
    ptx,
    ptx_log::{self, PtxLog},
};
use crate::interrupt::{Interrupt, InterruptError};
use crate::target::{CudaRelease, NvidiaTarget};
use crate::toolkit::digest::FileDigests;
use crate::{ReadError, error::ErrorKind};

/// Time within which `ptxas --version` has to answer.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// PTX of this size and more is compiled on several threads, kernel by kernel. Below it that gains nothing: a tenth of a second
/// is spent.
pub(crate) const SPLIT_PTX_BYTES: usize = 256 << 10;

/// On how many: the same on every machine, since the cubin has a note with the options.
const SPLIT_THREADS: u8 = 4;

const NOT_IN_TOOLKIT: &str = "the toolkit has none";

/// Where NVIDIA's compilers are, as far as they exist.
#[derive(Debug, Clone, Default)]
pub struct NvidiaParts {
    /// `libnvptxcompiler_static.a`.
    pub nvptxcompiler_archive: Option<PathBuf>,
    /// The program `ptxas`.
    pub ptxas: Option<PathBuf>,
    /// `libnvJitLink.so.13` or `.so.12`.
    pub nvjitlink: Option<PathBuf>,
    /// Directory for the shared object that nvPTXCompiler is made into. Without it that is made anew by each process.
    pub cache_dir: Option<PathBuf>,
    /// Directory for notes of the compilers' hashes, where it is not `cache_dir`.
    pub notes: Option<PathBuf>,
}

/// A cubin, and how it came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubin {
    /// The ELF file.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// What the compiler printed, without the compile times that differ from run to run.
    pub log: String,
    /// The compiler that made it.
    pub compiler: PtxCompiler,
    /// Its version.
    pub version: String,
    /// What was tried, in order; the last one is the compiler that made it.
    pub decisions: Vec<Decision>,
}

impl Cubin {
    /// What the cubin and the log say about the kernels.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the compiler wrote something unreadable.
    pub fn info(&self) -> Result<CubinInfo, ReadError> {
        self.info_with(&ptx_log::parse(&self.log))
    }

    /// The same, given its log.
    pub(crate) fn info_with(&self, log: &PtxLog) -> Result<CubinInfo, ReadError> {
        let mut info = cubin::read(&self.bytes)?;
        info.add_log(log);
        Ok(info)
    }
}

/// NVIDIA's compilers. Each is loaded when it is first needed, once; one value serves any number of threads.
#[derive(Debug)]
pub struct PtxToCubin {
    parts: NvidiaParts,
    nvptxcompiler: OnceLock<Result<(NvPtxCompiler, String), String>>,
    ptxas_version: OnceLock<Result<String, String>>,
    nvjitlink: OnceLock<Result<(NvJitLink, String), String>>,
    digests: FileDigests,
    /// The hashes of the libraries that were loaded: they stay what they are when the files change.
    loaded: [OnceLock<String>; 2],
}

impl PtxToCubin {
    /// Prepares compilation with `parts`. Nothing is loaded yet.
    #[must_use]
    pub fn new(parts: NvidiaParts) -> Self {
        let notes = parts.cache_dir.clone().or_else(|| parts.notes.clone());
        Self {
            parts,
            digests: FileDigests::new(notes),
            loaded: Default::default(),
            nvptxcompiler: OnceLock::new(),
            ptxas_version: OnceLock::new(),
            nvjitlink: OnceLock::new(),
        }
    }

    /// The version of `compiler`, or why it cannot be used. Loads it.
    ///
    /// # Errors
    ///
    /// The reason, for people.
    pub fn version(&self, compiler: PtxCompiler) -> Result<&str, &str> {
        match compiler {
            PtxCompiler::NvPtxCompiler => self.nvptxcompiler().map(|(_, version)| version.as_str()),
            PtxCompiler::Ptxas => self.ptxas_version(),
            PtxCompiler::NvJitLink => self.nvjitlink().map(|(_, version)| version.as_str()),
        }
    }

    /// The compiler that will be tried first, and where it is, without loading it. `None` where there is none.
    #[must_use]
    pub fn first(&self, choice: Option<PtxCompiler>) -> Option<(PtxCompiler, &Path)> {
        let candidates = choice.map_or(PtxCompiler::ALL.to_vec(), |choice| vec![choice]);
        candidates
            .into_iter()
            .find_map(|compiler| Some((compiler, self.path(compiler)?)))
    }

    /// Compiles `ptx` for `chip` ("sm_90a"), with `choice` alone or with the first compiler that can.
    ///
    /// `limit` bounds the time of ptxas, which is stopped. nvPTXCompiler and nvJitLink cannot be interrupted; what the
    /// first has made too late is an error.
    ///
    /// # Errors
    ///
    /// [`SerializeError`], with what was tried.
    pub fn compile(
        &self,
        ptx: &str,
        chip: &str,
        options: &PtxOptions,
        choice: Option<PtxCompiler>,
        limit: Duration,
    ) -> Result<Cubin, SerializeError> {
        self.compile_until(ptx, chip, options, choice, &Interrupt::after(limit))
    }

    /// The same, until there is a reason to stop.
    pub(crate) fn compile_until(
        &self,
        ptx: &str,
        chip: &str,
        options: &PtxOptions,
        choice: Option<PtxCompiler>,
        interrupt: &Interrupt,
    ) -> Result<Cubin, SerializeError> {
        self.compile_with(ptx, chip, |version| split(options, ptx, version), choice, interrupt)
    }

    /// The same for one of the kernels of a module, whose cubins are joined: on one thread, however large it is.
    pub(crate) fn compile_kernel(
        &self,
        ptx: &str,
        chip: &str,
        options: &PtxOptions,
        choice: Option<PtxCompiler>,
        interrupt: &Interrupt,
    ) -> Result<Cubin, SerializeError> {
        self.compile_with(ptx, chip, |_| options.clone(), choice, interrupt)
    }

    /// `options` are those for the version of a compiler.
    fn compile_with(
        &self,
        ptx: &str,
        chip: &str,
        options: impl Fn(&str) -> PtxOptions,
        choice: Option<PtxCompiler>,
        interrupt: &Interrupt,
    ) -> Result<Cubin, SerializeError> {
        let limit = {
            let options = options("");
            options.check()?;
            options.max_registers
        };
        let ptx = &*source_files::with_times(ptx);
        let mut decisions = Vec::new();
        let mut unknown_arch = false;
        let mut impossible = false;
        let mut newest_ptx = None;
        let mut unknown_ptx = false;
        let only = choice.as_slice();
        for &compiler in if only.is_empty() { &PtxCompiler::ALL } else { only } {
            let version = match self.version(compiler) {
                Ok(version) => version.to_owned(),
                Err(reason) => {
                    decisions.push(Decision {
                        compiler,
                        version: None,
                        outcome: Outcome::Unavailable(reason.to_owned()),
                    });
                    continue;
                }
            };
            tracing::debug!(%compiler, version, chip, "compiling PTX");
            let _span = tracing::debug_span!("tool", name = compiler.name(), version, chip).entered();
            let mut decide = |outcome| {
                decisions.push(Decision {
                    compiler,
                    version: Some(version.clone()),
                    outcome,
                });
            };
            match self.attempt(compiler, ptx, chip, &options(&version), interrupt) {
                Attempt::Done { bytes, log } => {
                    decide(Outcome::Used);
                    let cubin = Cubin {
                        bytes,
                        log: ptx_log::without_times(&log),
                        compiler,
                        version,
                        decisions,
                    };
                    return check_register_limit(cubin, chip, limit);
                }
                Attempt::Unavailable(reason) => decide(Outcome::Unavailable(reason)),
                Attempt::UnknownArch(reason) => {
                    unknown_arch = true;
                    decide(Outcome::Unsupported(reason));
                }
                Attempt::UnknownPtxVersion { reason, newest } => {
                    unknown_ptx = true;
                    newest_ptx = newest_ptx.max(newest);
                    decide(Outcome::Unsupported(reason));
                }
                Attempt::Impossible(reason) => {
                    impossible = true;
                    decide(Outcome::Unsupported(reason));
                }
                Attempt::Refused(log) => {
                    decide(Outcome::Failed);
                    return Err(SerializeError::Compile {
                        chip: chip.to_owned(),
                        compiler,
                        version,
                        log: ptx_log::without_times(&log),
                        decisions,
                    });
                }
                Attempt::Interrupted(InterruptError::TimeLimit { limit }) => {
                    decide(Outcome::Failed);
                    return Err(SerializeError::Timeout {
                        chip: chip.to_owned(),
                        compiler,
                        version,
                        limit,
                        decisions,
                    });
                }
                Attempt::Interrupted(InterruptError::Cancelled) => {
                    decide(Outcome::Failed);
                    return Err(SerializeError::Cancelled {
                        chip: chip.to_owned(),
                        compiler,
                        version,
                        decisions,
                    });
                }
            }
        }
        Err(if unknown_ptx {
            let version = ptx::header(ptx).version.unwrap_or_default();
            SerializeError::unknown_ptx(chip, version, newest_ptx, decisions)
        } else if unknown_arch {
            SerializeError::unknown_arch(chip, decisions)
        } else if impossible {
            SerializeError::impossible(chip, decisions)
        } else {
            SerializeError::no_compiler(chip, decisions)
        })
    }

    /// Whether one of the compilers at hand knows a chip, as far as the releases that they are of tell. Loads them.
    pub(crate) fn check_chip(&self, chip: &NvidiaTarget, choice: Option<PtxCompiler>) -> Result<(), SerializeError> {
        let mut decisions = Vec::new();
        for compiler in choice.map_or(PtxCompiler::ALL.to_vec(), |choice| vec![choice]) {
            let (version, outcome) = match self.version(compiler) {
                Err(reason) => (None, Outcome::Unavailable(reason.to_owned())),
                Ok(version) => match version.parse::<CudaRelease>() {
                    Ok(release) if !chip.supported_by_cuda(release) => (
                        Some(version.to_owned()),
                        Outcome::Unsupported(format!("it does not know {}", chip.chip())),
                    ),
                    _ => return Ok(()),
                },
            };
            decisions.push(Decision {
                compiler,
                version,
                outcome,
            });
        }
        Err(match decisions.iter().any(|decision| decision.version.is_some()) {
            true => SerializeError::unknown_arch(chip.chip(), decisions),
            false => SerializeError::no_compiler(chip.chip(), decisions),
        })
    }

    /// Which compilers could take part, by the hashes of their files: as they were loaded, or as they are now.
    pub(crate) fn identity(&self, choice: Option<PtxCompiler>) -> String {
        let candidates = choice.map_or(PtxCompiler::ALL.to_vec(), |choice| vec![choice]);
        let identities: Vec<String> = candidates
            .into_iter()
            .map(|compiler| {
                let digest = match compiler {
                    PtxCompiler::NvPtxCompiler => self.loaded[0].get().cloned(),
                    PtxCompiler::Ptxas => None,
                    PtxCompiler::NvJitLink => self.loaded[1].get().cloned(),
                };
                let digest = digest.or_else(|| self.digests.of(self.path(compiler)?).ok());
                format!("{compiler} {}", digest.as_deref().unwrap_or("absent"))
            })
            .collect();
        identities.join(", ")
    }

    /// Where a compiler is, if it can be used.
    fn path(&self, compiler: PtxCompiler) -> Option<&Path> {
        let path = match compiler {
            PtxCompiler::NvPtxCompiler => self.parts.nvptxcompiler_archive.as_ref(),
            PtxCompiler::Ptxas => self.parts.ptxas.as_ref(),
            PtxCompiler::NvJitLink => self.parts.nvjitlink.as_ref(),
        };
        path.map(PathBuf::as_path)
    }

    /// Notes what is loaded now.
    fn note_loaded(&self, slot: usize, path: &Path) {
        if let (Some(slot), Ok(digest)) = (self.loaded.get(slot), self.digests.of(path)) {
            let _ = slot.set(digest);
        }
    }

    fn attempt(
        &self,
        compiler: PtxCompiler,
        ptx: &str,
        chip: &str,
        options: &PtxOptions,
        interrupt: &Interrupt,
    ) -> Attempt {
        let unavailable = |reason: &str| Attempt::Unavailable(reason.to_owned());
        match compiler {
            PtxCompiler::NvPtxCompiler => match self.nvptxcompiler() {
                Ok((library, _)) => attempt::nvptxcompiler(library, ptx, chip, options, interrupt),
                Err(reason) => unavailable(reason),
            },
            PtxCompiler::Ptxas => match &self.parts.ptxas {
                Some(program) => attempt::ptxas(program, ptx, chip, options, interrupt),
                None => unavailable(NOT_IN_TOOLKIT),
            },
            PtxCompiler::NvJitLink => match self.nvjitlink() {
                Ok((library, _)) => attempt::nvjitlink(library, ptx, chip, options),
                Err(reason) => unavailable(reason),
            },
        }
    }

    fn nvptxcompiler(&self) -> Result<&(NvPtxCompiler, String), &str> {
        self.nvptxcompiler
            .get_or_init(|| {
                let Some(archive) = &self.parts.nvptxcompiler_archive else {
                    return Err(NOT_IN_TOOLKIT.to_owned());
                };
                self.note_loaded(0, archive);
                let library = nvptxcompiler::load(archive, self.parts.cache_dir.as_deref())?;
                let (major, minor) = library.version().map_err(|error| error.to_string())?;
                Ok((library, format!("{major}.{minor}")))
            })
            .as_ref()
            .map_err(String::as_str)
    }

    fn ptxas_version(&self) -> Result<&str, &str> {
        self.ptxas_version
            .get_or_init(|| match &self.parts.ptxas {
                Some(program) => ptxas::version(program, VERSION_LIMIT).map_err(|error| error.to_string()),
                None => Err(NOT_IN_TOOLKIT.to_owned()),
            })
            .as_deref()
            .map_err(String::as_str)
    }

    /// nvJitLink and its version, or why it cannot be used.
    pub(super) fn nvjitlink(&self) -> Result<&(NvJitLink, String), &str> {
        self.nvjitlink
            .get_or_init(|| {
                let Some(path) = &self.parts.nvjitlink else {
                    return Err(NOT_IN_TOOLKIT.to_owned());
                };
                self.note_loaded(1, path);
                let library = NvJitLink::open(path).map_err(|error| error.to_string())?;
                // 12.0 has no function that tells.
                let version = library
                    .version()
                    .map_or_else(|| "12.0".to_owned(), |(major, minor)| format!("{major}.{minor}"));
                Ok((library, version))
            })
            .as_ref()
            .map_err(String::as_str)
    }
}

/// The options, with threads for PTX that is large, where the compiler is known to take them (CUDA 13) and the caller has not
/// said something else.
fn split(options: &PtxOptions, ptx: &str, version: &str) -> PtxOptions {
    let is_known = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major >= 13);
    let is_given = options.extra.iter().any(|option| option.contains("split-compile"));
    PtxOptions {
        threads: (ptx.len() >= SPLIT_PTX_BYTES && is_known && !is_given)
            .then_some(SPLIT_THREADS)
            .or(options.threads),
        ..options.clone()
    }
}

/// Refuses a cubin in which the limit on registers did not act.
fn check_register_limit(cubin: Cubin, chip: &str, limit: Option<u32>) -> Result<Cubin, SerializeError> {
    let Some(limit) = limit else {
        return Ok(cubin);
    };
    let Cubin { compiler, version, .. } = &cubin;
    let problem = match cubin::read(&cubin.bytes) {
        Err(error) => Some((
            ErrorKind::Image,
            format!("{compiler} {version} wrote a cubin for {chip} that cannot be read: {error}"),
        )),
        Ok(info) => info.kernels.iter().find_map(|kernel| {
            let registers = kernel.registers.filter(|&registers| registers > limit)?;
            // ptxas silently ignores `--maxrregcount` for a kernel that states `.maxntid` or `.reqntid`, and raises limits that
            // are too low for the hardware (observed with 13.0.88).
            let message = format!(
                "{compiler} {version} gave kernel {:?} {registers} registers on {chip}, above the limit of {limit}: the limit does \
                 not act on kernels that state their block size (.maxntid, .reqntid), nor below the chip's minimum. State \
                 .maxnreg in the kernel (the LLVM function attribute nvvm.maxnreg), or raise the limit",
                kernel.name
            );
            Some((ErrorKind::Assembly, message))
        }),
    };
    if let Some((kind, message)) = problem {
        return Err(SerializeError::Refused {
            kind,
            message,
            decisions: cubin.decisions,
        });
    }
    Ok(cubin)
}
