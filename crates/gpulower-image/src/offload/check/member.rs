//! One host file: the file that is checked, or a member of an archive.

use super::{
    super::{layout::ImageForm, release::ClangRelease, runtime::Runtime},
    contents::{HostContents, is_wrapper},
    elf::HostFile,
    entries::entries,
    finished::finished,
    images::{finished_images, images},
    ir::LlvmIrReader,
    refused,
    release::registered,
    report::{FoundEntry, FoundImage, Registered, Report},
};
use crate::{
    FileKind, ReadError,
    container::{
        host_sections::{HIP_WRAPPER_SECTION, LLVM_OFFLOADING_SECTION, NV_WRAPPER_SECTION},
        offload_binary::ImageKind,
    },
};

/// `e_machine` of device code.
const DEVICE_MACHINES: [u16; 2] = [190, 224];

/// Whether clang's linker wrapper has put images for libomptarget into a program.
fn has_openmp_images(file: &impl HostContents) -> bool {
    file.kind().is_linked_host() && !file.parts(&|name| name == LLVM_OFFLOADING_SECTION).is_empty()
}

/// What is in a host file.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: FileKind,
    pub(super) entries: Vec<FoundEntry>,
    pub(super) images: Vec<FoundImage>,
    pub(super) registers_itself: Vec<Runtime>,
    pub(super) problems: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) finished: Option<Registered>,
}

impl Member {
    pub(super) fn read(bytes: &[u8], reader: Option<&dyn LlvmIrReader>) -> Result<Self, ReadError> {
        if matches!(FileKind::of(bytes), FileKind::LlvmIr | FileKind::Bitcode) {
            return super::ir::read(bytes, reader);
        }
        let file = HostFile::parse(bytes).map_err(refused)?;
        let machine = file.machine();
        if DEVICE_MACHINES.contains(&machine) {
            return Err(ReadError::other_format(format!(
                "cannot be checked: it is device code, for machine {machine} of ELF; name the host object or program that \
                 it is in (`gpulower inspect` reads device code)"
            )));
        }
        Ok(Self::of(&file, reader))
    }

    pub(super) fn of(file: &impl HostContents, reader: Option<&dyn LlvmIrReader>) -> Self {
        let mut problems = Vec::new();
        let entries = entries(file, &mut problems);
        let wrappers = file.parts(&is_wrapper);
        let registers_itself: Vec<Runtime> = [(Runtime::Cuda, NV_WRAPPER_SECTION), (Runtime::Hip, HIP_WRAPPER_SECTION)]
            .into_iter()
            .filter(|(_, section)| wrappers.iter().any(|part| part.section == *section))
            .map(|(runtime, _)| runtime)
            // A program has images for libomptarget in the section from which the linker drops those for itself.
            .chain(has_openmp_images(file).then_some(Runtime::OpenMp))
            .collect();
        let images = match registers_itself.is_empty() {
            true => images(file, reader, &mut problems),
            false => finished_images(file, reader, &mut problems),
        };
        let finished = match registers_itself.is_empty() {
            true => None,
            false => finished(file, &entries, &images),
        };
        let mut member = Self {
            kind: file.kind(),
            entries,
            images,
            registers_itself,
            problems,
            notes: Vec::new(),
            finished,
        };
        if member.kind.is_linked_host() && member.registers_itself.is_empty() && !member.entries.is_empty() {
            let problem = "the program has offload entries and registers none: it was linked without --offload-link, \
                           which drops the device code without a word";
            member.problems.push(problem.to_owned());
        }
        member.note(file);
        member
    }

    /// Whether there is nothing to say of it.
    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.images.is_empty() && self.registers_itself.is_empty()
    }

    /// Whether clang's linker wrapper has to finish it.
    const fn is_for_clang(&self) -> bool {
        self.registers_itself.is_empty() && !self.kind.is_linked_host() && !self.is_empty()
    }

    fn note(&mut self, file: &impl HostContents) {
        if self.kind.is_linked_host() {
            return;
        }
        let mut note = |text: String| self.notes.push(text);
        if !self.registers_itself.is_empty() && !file.parts(&|name| name == LLVM_OFFLOADING_SECTION).is_empty() {
            note(
                "it registers its kernels itself, and the images for clang's linker wrapper are still in it, as `clang -r` \
                 leaves them up to 18: link it without --offload-link, or the link fails or registers everything twice"
                    .to_owned(),
            );
        }
        if let Some(entry) = self.entries.iter().find(|entry| !entry.retained) {
            let section = &entry.section;
            note(format!(
                "the entries in {section} are not marked to be kept (llvm.used): a link with lld and --gc-sections fails \
                 for __stop_{section}; GNU ld keeps them"
            ));
        }
        if self.kind == FileKind::LlvmIr {
            note(
                "a release of clang has to be able to read this LLVM IR, too; whether it is has not been looked into \
                 (clang-N -c FILE says so)"
                    .to_owned(),
            );
        }
        if self.images.iter().any(|image| image.form == Some(ImageForm::Bitcode)) {
            note(
                "a release of clang has to be able to read the bitcode of the images, too; whether it is has not been \
                 looked into"
                    .to_owned(),
            );
        }
        let is_cubin = |image: &&FoundImage| image.form == Some(ImageForm::RelocatableCubin);
        let marked = self.images.iter().filter(is_cubin).find_map(|image| image.marked);
        if let Some(marked @ (ImageKind::None | ImageKind::Object)) = marked {
            note(format!(
                "the offload binary says of a cubin that its kind is `{marked}`: clang up to 18 name the file so, and the \
                 nvlink of CUDA 11 takes it for host code then and links nothing, without a word"
            ));
        }
    }
}

impl Report {
    /// Puts the parts of a file together. Those of an archive have names.
    pub(super) fn of_members(kind: FileKind, members: Vec<(Option<String>, Member)>) -> Self {
        let mut report = Self {
            kind,
            entries: Vec::new(),
            images: Vec::new(),
            registers_itself: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            releases: Vec::new(),
            finished: None,
            members: Vec::new(),
        };
        if members.iter().all(|(_, member)| member.is_empty()) {
            let problem = "there are neither offload entries nor device images in it";
            report.problems.push(problem.to_owned());
        }
        let for_clang = || {
            members
                .iter()
                .map(|(_, member)| member)
                .filter(|member| member.is_for_clang())
        };
        if for_clang().next().is_some() {
            let entries: Vec<FoundEntry> = for_clang().flat_map(|member| &member.entries).cloned().collect();
            let images: Vec<FoundImage> = for_clang().flat_map(|member| &member.images).cloned().collect();
            report.releases = ClangRelease::all()
                .map(|release| (release, registered(&entries, &images, release)))
                .collect();
        }
        for (name, member) in members {
            report.add(member, name.as_deref());
            report.members.extend(name);
        }
        report
    }

    fn add(&mut self, member: Member, name: Option<&str>) {
        let named = |text: String| match name {
            Some(name) => format!("{name}: {text}"),
            None => text,
        };
        self.problems.extend(member.problems.into_iter().map(named));
        self.notes.extend(member.notes.into_iter().map(named));
        if let Some(finished) = member.finished {
            let all = self.finished.get_or_insert_default();
            all.kernels.extend(finished.kernels);
            all.variables.extend(finished.variables);
            all.missing_kernels.extend(finished.missing_kernels);
            all.missing_variables.extend(finished.missing_variables);
            all.problems.extend(finished.problems.into_iter().map(named));
        }
        for runtime in member.registers_itself {
            if !self.registers_itself.contains(&runtime) {
                self.registers_itself.push(runtime);
            }
        }
        self.entries.extend(member.entries);
        self.images.extend(member.images);
    }
}
