//! Kernels by rustc without its library, which no release has for AMD's targets: for `cargo xtask inputs`.
#![no_core]
#![no_std]
#![crate_type = "lib"]
#![allow(internal_features)]
#![feature(no_core, lang_items)]
#![cfg_attr(not(amd), feature(abi_ptx))]
#![cfg_attr(amd, feature(abi_gpu_kernel))]

#[cfg(hierarchy)]
#[lang = "pointee_sized"]
pub trait PointeeSized {}
#[cfg(hierarchy)]
#[lang = "meta_sized"]
pub trait MetaSized: PointeeSized {}
#[cfg(hierarchy)]
#[lang = "sized"]
pub trait Sized: MetaSized {}
#[cfg(not(hierarchy))]
#[lang = "sized"]
pub trait Sized {}

#[lang = "copy"]
pub trait Copy {}
impl Copy for f32 {}
impl<T> Copy for *mut T {}

#[lang = "mul"]
pub trait Mul<Rhs = Self> {
    type Output;
    fn mul(self, other: Rhs) -> Self::Output;
}
impl Mul for f32 {
    type Output = f32;
    fn mul(self, other: f32) -> f32 {
        self * other
    }
}

#[cfg(not(amd))]
#[no_mangle]
pub unsafe extern "ptx-kernel" fn scale(to: *mut f32, by: f32) {
    *to = *to * by;
}

#[cfg(amd)]
#[no_mangle]
pub unsafe extern "gpu-kernel" fn scale(to: *mut f32, by: f32) {
    *to = *to * by;
}
