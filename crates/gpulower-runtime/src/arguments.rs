//! The arguments of a launch.

use bytemuck::NoUninit;

use super::kernel::KernelInterface;
use super::launch_error::LaunchError;
use super::memref::MemRef;
use crate::bridge::driver::{ArgumentBytes, DeviceBuffer};

/// The values for the parameters of a kernel, in order.
///
/// A value is copied as its bytes, so that its type has to have the size of the parameter: an `f32` for a `float`, a `u64` for
/// an address. The list can be kept and used for many launches.
///
/// ```
/// use gpulower_runtime::{Arguments, MemRef};
///
/// let mut arguments = Arguments::new();
/// arguments.value(2.0f32).pointer(0x7000_0000).memref(&MemRef::contiguous(0x7000_1000, &[1024]));
/// assert_eq!(arguments.len(), 1 + 1 + 5);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The bytes, each value at a multiple of 16.
    storage: Vec<u128>,
    values: Vec<Value>,
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Value {
    /// Index of its first 16 bytes.
    start: usize,
    bytes: usize,
}

impl Arguments {
    /// No arguments.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            storage: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a value by its bytes: a number, or a structure laid out as the kernel's.
    pub fn value<T: NoUninit>(&mut self, value: T) -> &mut Self {
        self.raw(bytemuck::bytes_of(&value))
    }

    /// Adds the bytes of a value.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        let start = self.storage.len();
        self.storage.resize(start + bytes.len().div_ceil(16), 0);
        let place: &mut [u8] = bytemuck::cast_slice_mut(self.storage.get_mut(start..).unwrap_or_default());
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.values.push(Value {
            start,
            bytes: bytes.len(),
        });
        self
    }

    /// Adds an address on the device.
    pub fn pointer(&mut self, address: u64) -> &mut Self {
        self.value(address)
    }

    /// Adds the address of a buffer's first byte.
    pub fn buffer(&mut self, buffer: &DeviceBuffer) -> &mut Self {
        self.pointer(buffer.address())
    }

    /// Adds what stands for one memref parameter of a kernel in MLIR: two pointers, the offset, the sizes and the strides,
    /// `3 + 2 * rank` arguments.
    pub fn memref(&mut self, memref: &MemRef) -> &mut Self {
        self.pointer(memref.allocated()).pointer(memref.aligned());
        for index in memref.indices() {
            // Widths other than 64 bits are those of the option `index-bitwidth`.
            match memref.index_bits() {
                32 => self.value(i32::try_from(index).unwrap_or(i32::MAX)),
                _ => self.value(index),
            };
        }
        self
    }

    /// Adds what stands for one memref parameter of static shape in a kernel that was compiled with bare pointers: the pointer
    /// alone.
    pub fn bare_memref(&mut self, memref: &MemRef) -> &mut Self {
        self.pointer(memref.aligned())
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes all arguments, to use the memory again.
    pub fn clear(&mut self) {
        self.storage.clear();
        self.values.clear();
    }

    /// Bytes of each argument, in order.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.values.iter().map(|value| value.bytes)
    }

    pub(super) fn bytes(&self) -> impl ExactSizeIterator<Item = ArgumentBytes<'_>> {
        self.values.iter().map(|value| {
            let all: &[u8] = bytemuck::cast_slice(self.storage.get(value.start..).unwrap_or_default());
            ArgumentBytes(all.get(..value.bytes).unwrap_or_default())
        })
    }

    /// Refuses arguments that are not those of the kernel.
    ///
    /// # Errors
    ///
    /// [`LaunchError::ArgumentCount`] or [`LaunchError::ArgumentSize`].
    pub fn check(&self, kernel: &KernelInterface) -> Result<(), LaunchError> {
        let Some(parameters) = &kernel.parameters else {
            return Ok(());
        };
        if parameters.len() != self.len() {
            return Err(LaunchError::ArgumentCount {
                kernel: kernel.name.clone(),
                wanted: parameters.iter().map(|parameter| parameter.size).collect(),
                given: self.len(),
            });
        }
        for (index, (parameter, given)) in parameters.iter().zip(self.sizes()).enumerate() {
            if parameter.size as usize != given {
                return Err(LaunchError::ArgumentSize {
                    kernel: kernel.name.clone(),
                    index,
                    parameter: parameter.clone(),
                    given,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpulower_image::image::resource::Parameter;

    fn kernel(sizes: &[u32]) -> KernelInterface {
        let parameters = sizes.iter().map(|&size| Parameter {
            size,
            ..Parameter::default()
        });
        KernelInterface {
            name: "k".to_owned(),
            parameters: Some(parameters.collect()),
            ..KernelInterface::default()
        }
    }

    #[test]
    fn values_keep_their_bytes() {
        let mut arguments = Arguments::new();
        arguments
            .value(1u8)
            .value(-2i16)
            .value(1.5f32)
            .pointer(u64::MAX - 1)
            .value([7u32; 9]);
        let bytes: Vec<Vec<u8>> = arguments.bytes().map(|bytes| bytes.0.to_vec()).collect();
        assert_eq!(bytes[0], [1]);
        assert_eq!(bytes[1], (-2i16).to_ne_bytes());
        assert_eq!(bytes[2], 1.5f32.to_ne_bytes());
        assert_eq!(bytes[3], (u64::MAX - 1).to_ne_bytes());
        assert_eq!(bytes[4], bytemuck::bytes_of(&[7u32; 9]));
        // Every value begins where the largest scalar may.
        assert!(
            arguments
                .bytes()
                .all(|bytes| bytes.0.as_ptr().addr().is_multiple_of(16))
        );
        arguments.clear();
        assert!(arguments.is_empty());
        assert_eq!(arguments.bytes().len(), 0);
    }

    #[test]
    fn a_memref_is_its_descriptor() {
        let memref = MemRef::contiguous(0x1000, &[3, 4]);
        let mut arguments = Arguments::new();
        arguments.memref(&memref);
        let words: Vec<i64> = arguments
            .bytes()
            .map(|bytes| i64::from_ne_bytes(bytes.0.try_into().unwrap()))
            .collect();
        assert_eq!(words, [0x1000, 0x1000, 0, 3, 4, 4, 1]);
        arguments.clear();
        arguments
            .memref(&memref.clone().with_index_bits(32))
            .bare_memref(&memref);
        assert_eq!(arguments.sizes().collect::<Vec<_>>(), [8, 8, 4, 4, 4, 4, 4, 8]);
    }

    #[test]
    fn count_and_sizes_are_checked() {
        let mut arguments = Arguments::new();
        arguments.value(1.0f32).pointer(0);
        arguments.check(&kernel(&[4, 8])).unwrap();
        let message = |sizes: &[u32]| arguments.check(&kernel(sizes)).unwrap_err().to_string();
        assert_eq!(
            message(&[4, 8, 8, 8, 8, 8]),
            "kernel k takes 6 arguments, of 4, 8, 8, 8, 8 and 8 bytes, and 2 are given; a memref of MLIR counts as 3 + 2 * rank \
             arguments (Arguments::memref), or as one where the kernel was compiled with bare pointers"
        );
        assert_eq!(
            message(&[4]),
            "kernel k takes one argument, of 4 bytes, and 2 are given"
        );
        assert_eq!(message(&[]), "kernel k takes no arguments, and 2 are given");
        assert_eq!(
            message(&[8, 8]),
            "kernel k: argument 0 has 4 bytes, and the parameter has 8"
        );
        let mut typed = kernel(&[4, 4]);
        if let Some(parameter) = typed.parameters.as_mut().and_then(|parameters| parameters.get_mut(1)) {
            parameter.kind = Some("u32".to_owned());
            parameter.name = Some("k_param_1".to_owned());
        }
        assert_eq!(
            arguments.check(&typed).unwrap_err().to_string(),
            "kernel k: argument 1 has 8 bytes, and the parameter (u32 k_param_1) has 4"
        );
        // Where the image does not say, the caller's word counts.
        let untold = KernelInterface {
            parameters: None,
            ..kernel(&[])
        };
        arguments.check(&untold).unwrap();
    }
}
