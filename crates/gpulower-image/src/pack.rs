//! Images from files, put into one container: what `fatbinary`, `clang-offload-bundler` and `llvm-offload-binary` do.
//!
//! ```no_run
//! use gpulower_image::{container::fatbin::Compression, pack::{Pack, PackFormat}};
//!
//! let mut pack = Pack::default();
//! for name in ["saxpy.sm_80.cubin", "saxpy.sm_90.fatbin"] {
//!     pack.add(name, &std::fs::read(name)?, None)?;
//! }
//! std::fs::write("saxpy.fatbin", pack.write(PackFormat::Fatbin, Compression::None)?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{
    FileKind,
    container::{
        WriteError,
        bundle::{self, BundleImage, BundleOptions},
        fatbin::{self, Compression, Content},
        offload_binary::{self, KindNumbering, OffloadKind},
    },
    inspect::{DebugInfo, inspect_with},
    target::{AmdTarget, NvidiaArch, PtxPolicy, TargetError},
};

/// The key under which an offload image says which PTX its artifact was to hold.
pub const INCLUDE_PTX: &str = "include-ptx";

/// What to put images into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackFormat {
    /// NVIDIA's fat binary.
    Fatbin,
    /// Clang's offload bundle for HIP.
    Bundle,
    /// LLVM offload binaries, one after the other, as clang 21 and later number languages.
    Offload,
}

/// An image to be put into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The file it came from.
    pub input: String,
    /// What it is.
    pub kind: FileKind,
    /// What it is for: `sm_90a`, `gfx90a:xnack-`.
    pub target: String,
    /// The image.
    pub bytes: Vec<u8>,
    /// The identifier it had in a fat binary.
    pub identifier: Option<String>,
    /// PTX: options for the driver's compiler.
    pub options: String,
    /// Whether it carries debug information.
    pub debug: bool,
}

/// An entry of a fat binary to be.
#[derive(Clone, Copy, Debug)]
pub enum PackedEntry<'a> {
    /// A cubin or PTX.
    Image(fatbin::Image<'a>),
    /// LTO-IR, which NVIDIA's nvFatbin has to write.
    LtoIr(&'a Member),
}

/// Images that go into one container, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    members: Vec<Member>,
    /// Which PTX was asked for, and the input that says so.
    policy: Option<(PtxPolicy, String)>,
    /// The policy as fat binaries carry it.
    identifier: Option<String>,
}

impl Pack {
    /// Adds a file: an image, or a container whose images are taken out. `target` says what an image is for that does not
    /// say so itself, or says less (a cubin does not say that it is of a family).
    ///
    /// # Errors
    ///
    /// A file that cannot be read in every part, or holds nothing; an image without a target; an image that differs from
    /// another for the same target; a PTX policy that contradicts that of another file.
    pub fn add(&mut self, input: &str, bytes: &[u8], target: Option<&str>) -> Result<(), WriteError> {
        let mut members = Vec::new();
        let mut see = |image: &crate::inspect::Image, bytes: &[u8]| {
            members.push(Member {
                input: input.to_owned(),
                kind: image.kind,
                target: image.target.clone().unwrap_or_default(),
                bytes: bytes.to_vec(),
                identifier: image.identifier.clone(),
                options: image.options.clone().unwrap_or_default(),
                debug: image.debug == DebugInfo::Full,
            });
        };
        let inspection = inspect_with(input, bytes, &mut see).map_err(|source| WriteError::Input {
            place: input.to_owned(),
            source,
        })?;
        if let Some((place, problem)) = inspection.problems().next() {
            return Err(WriteError::Refused(format!("{input}: {place}: {problem}")));
        }
        if members.is_empty() {
            return Err(WriteError::Refused(format!("{input} holds no image")));
        }
        if let Some(target) = target {
            state_target(&mut members, input, target)?;
        }
        self.add_policies(input, bytes, &members)?;
        for member in members {
            self.push(member)?;
        }
        Ok(())
    }

    /// The images so far.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Which PTX the inputs were asked to hold, if any of them says so.
    pub fn include_ptx(&self) -> Option<&PtxPolicy> {
        self.policy.as_ref().map(|(policy, _)| policy)
    }

    /// Adds one image.
    ///
    /// # Errors
    ///
    /// An image without a target, or one that differs from another for the same target.
    pub fn push(&mut self, member: Member) -> Result<(), WriteError> {
        if member.target.is_empty() {
            let (input, kind) = (member.input, member.kind.name());
            return Err(WriteError::NoTarget(format!(
                "{input} does not say which chip its {kind} is for: write TARGET={input}, such as sm_90={input}"
            )));
        }
        let same = self
            .members
            .iter()
            .find(|other| other.kind == member.kind && other.target == member.target);
        match same {
            Some(other) if other.bytes == member.bytes => Ok(()),
            Some(other) => Err(WriteError::Refused(format!(
                "{} and {} both have {} for {}, and they differ: a device would load one of them only",
                other.input,
                member.input,
                member.kind.name(),
                member.target
            ))),
            None => {
                self.members.push(member);
                Ok(())
            }
        }
    }

    fn add_policies(&mut self, input: &str, bytes: &[u8], members: &[Member]) -> Result<(), WriteError> {
        let mut policies = Vec::new();
        for identifier in members.iter().filter_map(|member| member.identifier.as_deref()) {
            policies.extend(PtxPolicy::from_identifier(identifier)?);
        }
        // Strings beside the images of an offload binary; what else the file may be has none.
        for binary in offload_binary::read(bytes).unwrap_or_default() {
            for entry in &binary.entries {
                if let Some(policy) = entry.string(INCLUDE_PTX) {
                    policies.push(policy.parse()?);
                }
            }
        }
        policies
            .iter()
            .try_for_each(|policy| self.set_include_ptx(policy, input))
    }

    /// Notes which PTX `input` was asked to hold.
    ///
    /// # Errors
    ///
    /// [`WriteError::Target`] if another input was asked to hold other PTX.
    pub fn set_include_ptx(&mut self, policy: &PtxPolicy, input: &str) -> Result<(), WriteError> {
        self.policy = Some(match self.policy.take() {
            None => (policy.clone(), input.to_owned()),
            Some((before, from)) => (PtxPolicy::join((&before, &from), (policy, input))?, from),
        });
        self.identifier = self.include_ptx().map(PtxPolicy::to_identifier);
        Ok(())
    }

    /// Writes the container.
    ///
    /// # Errors
    ///
    /// No image; an image that the container does not hold; a way to compress that it does not have.
    pub fn write(&self, format: PackFormat, compression: Compression) -> Result<Vec<u8>, WriteError> {
        if self.members.is_empty() {
            return Err(WriteError::Empty(
                "there is nothing to put together: name at least one file",
            ));
        }
        match format {
            PackFormat::Fatbin => self.fat_binary(compression),
            PackFormat::Bundle => self.bundle(compression),
            PackFormat::Offload => self.offload(compression),
        }
    }

    fn fat_binary(&self, compression: Compression) -> Result<Vec<u8>, WriteError> {
        let mut images = Vec::new();
        for entry in self.fat_binary_entries(compression)? {
            match entry {
                PackedEntry::Image(image) => images.push(image),
                PackedEntry::LtoIr(member) => {
                    return Err(member.wrong_kind("a fat binary written here", "LTO-IR needs NVIDIA's nvFatbin"));
                }
            }
        }
        fatbin::write(&images)
    }

    /// The images as entries of a fat binary, for those who have the means to write LTO-IR
    /// (`gpulower::serialize::nvfatbin`).
    ///
    /// # Errors
    ///
    /// An image that is not NVIDIA's, or has no architecture.
    pub fn fat_binary_entries(&self, compression: Compression) -> Result<Vec<PackedEntry<'_>>, WriteError> {
        let mut entries = Vec::new();
        for member in &self.members {
            let content = match member.kind {
                FileKind::Cubin => Content::Cubin(&member.bytes),
                // What is no text has no head either, which the writer says.
                FileKind::Ptx => Content::Ptx(std::str::from_utf8(&member.bytes).unwrap_or_default()),
                FileKind::LtoIr => {
                    entries.push(PackedEntry::LtoIr(member));
                    continue;
                }
                _ => return Err(member.wrong_kind("a fat binary", "put AMD's code into a bundle")),
            };
            let mut image = fatbin::Image::new(content, &member.target)?;
            image.identifier = self.identifier.as_deref().or(member.identifier.as_deref());
            image.options = &member.options;
            image.debug = member.debug;
            image.compression = compression;
            entries.push(PackedEntry::Image(image));
        }
        Ok(entries)
    }

    fn bundle(&self, compression: Compression) -> Result<Vec<u8>, WriteError> {
        let options = BundleOptions {
            compression: bundle_compression(compression)?,
            ..BundleOptions::default()
        };
        let mut images = vec![BundleImage::host()];
        for member in &self.members {
            let target: AmdTarget = match member.kind {
                FileKind::Hsaco | FileKind::AmdObject => member.amd_target()?,
                _ => return Err(member.wrong_kind("a bundle for HIP", "put NVIDIA's code into a fat binary")),
            };
            images.push(BundleImage::hip(&target, &member.bytes));
        }
        bundle::write(&images, &options)
    }

    fn offload(&self, compression: Compression) -> Result<Vec<u8>, WriteError> {
        if compression != Compression::None {
            return Err(WriteError::Refused(format!(
                "an offload binary cannot be compressed with {}: clang up to 23 would not read it; leave it as it is",
                compression.name()
            )));
        }
        let policy = self.include_ptx().map(ToString::to_string);
        let mut images = Vec::new();
        for member in &self.members {
            let (language, triple) = if NvidiaArch::parse(&member.target).is_some() {
                (OffloadKind::Cuda, "nvptx64-nvidia-cuda")
            } else {
                (OffloadKind::Hip, "amdgcn-amd-amdhsa")
            };
            let kind = match member.kind {
                FileKind::Cubin => offload_binary::ImageKind::Cubin,
                FileKind::Ptx => offload_binary::ImageKind::Ptx,
                FileKind::Hsaco | FileKind::AmdObject => offload_binary::ImageKind::Object,
                FileKind::Bitcode => offload_binary::ImageKind::Bitcode,
                _ => return Err(member.wrong_kind("an offload binary", "it takes machine code, PTX and bitcode")),
            };
            let mut image = offload_binary::Image::new(
                kind,
                language,
                KindNumbering::BitMask,
                triple,
                &member.target,
                &member.bytes,
            )?;
            if let (Some(policy), OffloadKind::Cuda) = (&policy, language) {
                image.strings.push((INCLUDE_PTX, policy));
            }
            images.push(image);
        }
        offload_binary::write(&images)
    }
}

impl Member {
    fn wrong_kind(&self, format: &str, advice: &str) -> WriteError {
        let (input, kind, target) = (&self.input, self.kind.name(), &self.target);
        WriteError::Refused(format!(
            "{input} has {kind} for {target}, which {format} does not hold: {advice}"
        ))
    }

    fn amd_target(&self) -> Result<AmdTarget, WriteError> {
        self.target
            .parse()
            .map_err(|error: TargetError| WriteError::Refused(format!("{}={}: {error}", self.target, self.input)))
    }
}

/// Puts a stated target in the place of what images say, which has to be the same or less.
fn state_target(members: &mut [Member], input: &str, target: &str) -> Result<(), WriteError> {
    let refused = |reason: String| WriteError::Refused(format!("{target}={input}: {reason}"));
    let [member] = members else {
        return Err(refused(format!(
            "it holds {} images, which have targets of their own; leave the target out",
            members.len()
        )));
    };
    let agrees = match (NvidiaArch::parse(target), NvidiaArch::parse(&member.target)) {
        // A cubin says its number, and whether it is for that chip alone.
        (Some(stated), Some(own)) => stated == own || (member.kind == FileKind::Cubin && stated.number == own.number),
        (Some(_), None) => member.target.is_empty(),
        (None, _) if target.parse::<AmdTarget>().is_err() => {
            return Err(refused(
                "it is no target: expected a chip such as sm_90, sm_90a or gfx942".to_owned(),
            ));
        }
        (None, _) => member.target.is_empty() || member.target == target,
    };
    if !agrees {
        return Err(refused(format!("the image is for {}", member.target)));
    }
    target.clone_into(&mut member.target);
    Ok(())
}

/// How a bundle is compressed for `compression`: version 2 of the form, which every HIP runtime reads that reads any.
fn bundle_compression(compression: Compression) -> Result<Option<bundle::Compression>, WriteError> {
    match compression {
        Compression::None => Ok(None),
        Compression::Zstd { level } => Ok(Some(bundle::Compression {
            version: bundle::CompressionVersion::V2,
            // Without a level of one's own it is clang's, not fatbinary's.
            level: match compression {
                fatbin::ZSTD_DEFAULT => bundle::Compression::default().level,
                _ => level,
            },
            ..bundle::Compression::default()
        })),
        Compression::Lz4 => Err(WriteError::Refused(format!(
            "an offload bundle cannot be compressed with {}: it is compressed with zstd, or not at all",
            compression.name()
        ))),
    }
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
