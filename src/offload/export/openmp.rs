//! Kernels and images as libomptarget of the releases that finish a program takes them.

use melior::ir::Module;

use super::super::{
    error::OffloadError,
    images::ImageRecipe,
    openmp::{ARGUMENT_SIZE, KernelCall, refused_image},
    release::{ClangRelease, FinishWith},
};
use crate::{Target, bridge::kernel_arguments::widen_arguments, options::Options};

/// Lets the kernels of a module take their arguments as libomptarget hands them over.
///
/// # Errors
///
/// Kernels with arguments that are neither numbers nor pointers.
pub(super) fn adapt(device: &mut Module<'_>, call: KernelCall, options: &Options) -> Result<(), OffloadError> {
    if options.index_bitwidth != 64 {
        return Err(OffloadError::new(format!(
            "kernels for OpenMP have indices of 64 bits: libomptarget hands over {ARGUMENT_SIZE} bytes for each argument, and \
             there are sizes and strides of memrefs among them; leave out index-bitwidth"
        )));
    }
    widen_arguments(device, call.leading_pointer).map_err(|(kind, place)| {
        OffloadError::new(format!(
            "a kernel takes an argument of the type {kind}, and libomptarget hands over numbers and pointers of \
             {ARGUMENT_SIZE} bytes at most: pass it in memory"
        ))
        .at(place)
    })
}

/// Refuses images that libomptarget of a release would not load.
///
/// # Errors
///
/// The first one, and why.
pub(super) fn check_images(recipes: &[(Target, ImageRecipe)], finish_with: &FinishWith) -> Result<(), OffloadError> {
    match finish_with
        .clangs()
        .iter()
        .find_map(|release| refused(recipes, finish_with, *release))
    {
        Some((target, reason)) => Err(OffloadError::new(format!(
            "nothing can be exported for {target} and OpenMP: {reason}"
        ))),
        None => Ok(()),
    }
}

/// The releases whose libomptarget loads all images, asked for or not.
pub(super) fn loaded_by(recipes: &[(Target, ImageRecipe)], finish_with: &FinishWith) -> Vec<ClangRelease> {
    ClangRelease::all()
        .filter(|release| refused(recipes, finish_with, *release).is_none())
        .collect()
}

/// The first image that libomptarget of a release would not load, and why.
fn refused<'r>(
    recipes: &'r [(Target, ImageRecipe)],
    finish_with: &FinishWith,
    release: ClangRelease,
) -> Option<(&'r Target, String)> {
    let cuda = finish_with.cudas().last().copied();
    recipes.iter().find_map(|(target, recipe)| {
        let version = match recipe {
            ImageRecipe::AmdObject { version } => Some(*version),
            _ => None,
        };
        Some((target, refused_image(release, target, cuda, version)?))
    })
}
