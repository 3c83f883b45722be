//! Memrefs of MLIR as kernels get them.

use crate::bridge::driver::{DeviceBuffer, DriverError};

/// A memref: a pointer to elements on the device, with an offset, sizes and strides, all of which count elements.
///
/// It is a description, and keeps nothing alive.
///
/// A kernel reads only what its type leaves open. One for `memref<?xf32>` takes the offset to be 0 and the last stride to be 1,
/// whatever is passed; offsets and strides are for types such as `memref<?xf32, strided<[?], offset: ?>>`. A part of a buffer
/// goes to the former as the part's address: `MemRef::contiguous(buffer.slice(range)?.address(), &[n])`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemRef {
    allocated: u64,
    aligned: u64,
    offset: i64,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    index_bits: u32,
}

impl MemRef {
    /// A row-major memref without gaps at `address`, which nothing is checked of.
    #[must_use]
    pub fn contiguous(address: u64, sizes: &[i64]) -> Self {
        Self {
            allocated: address,
            aligned: address,
            offset: 0,
            strides: row_major(sizes),
            sizes: sizes.to_vec(),
            index_bits: 64,
        }
    }

    /// A row-major memref without gaps at the start of `buffer`, with elements of type `T`.
    ///
    /// # Errors
    ///
    /// [`DriverError`] if the buffer is too small.
    pub fn of<T>(buffer: &DeviceBuffer, sizes: &[i64]) -> Result<Self, DriverError> {
        Self::strided::<T>(buffer, 0, sizes, &row_major(sizes))
    }

    /// A memref of any layout in `buffer`, with elements of type `T`, for a kernel whose type leaves the layout open. Offset
    /// and strides count elements; strides may be negative.
    ///
    /// # Errors
    ///
    /// [`DriverError`] if ranks differ or an element is outside of the buffer.
    pub fn strided<T>(buffer: &DeviceBuffer, offset: i64, sizes: &[i64], strides: &[i64]) -> Result<Self, DriverError> {
        check(buffer.bytes(), size_of::<T>(), offset, sizes, strides)?;
        Ok(Self {
            allocated: buffer.address(),
            aligned: buffer.address(),
            offset,
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            index_bits: 64,
        })
    }

    /// The same with offset, sizes and strides of 32 bits, for kernels that were compiled with `index-bitwidth=32`; any other
    /// number means 64.
    #[must_use]
    pub fn with_index_bits(mut self, bits: u32) -> Self {
        self.index_bits = if bits == 32 { 32 } else { 64 };
        self
    }

    /// The pointer that was allocated.
    #[must_use]
    pub const fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The pointer that elements are counted from.
    #[must_use]
    pub const fn aligned(&self) -> u64 {
        self.aligned
    }

    /// Its rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Bits of offset, sizes and strides in the descriptor.
    #[must_use]
    pub const fn index_bits(&self) -> u32 {
        self.index_bits
    }

    /// Offset, sizes and strides, in the order of the descriptor.
    pub fn indices(&self) -> impl Iterator<Item = i64> {
        std::iter::once(self.offset)
            .chain(self.sizes.iter().copied())
            .chain(self.strides.iter().copied())
    }
}

/// The strides of a memref without gaps whose last dimension runs fastest.
fn row_major(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    let mut stride = 1i64;
    for (place, size) in strides.iter_mut().zip(sizes).rev() {
        *place = stride;
        stride = stride.saturating_mul(*size);
    }
    strides
}

/// Refuses a layout of which an element is outside of `bytes`.
fn refused(problem: String) -> DriverError {
    let what = "a memref of a buffer";
    DriverError::Range { what, problem }
}

fn check(bytes: usize, element: usize, offset: i64, sizes: &[i64], strides: &[i64]) -> Result<(), DriverError> {
    if sizes.len() != strides.len() {
        let (sizes, strides) = (sizes.len(), strides.len());
        return Err(refused(format!(
            "it has {sizes} sizes and {strides} strides: both are as many as its rank"
        )));
    }
    if let Some((dimension, &size)) = sizes.iter().enumerate().find(|(_, size)| **size < 0) {
        return Err(refused(format!(
            "it has {size} elements along dimension {dimension}: sizes are 0 or more"
        )));
    }
    if sizes.contains(&0) {
        return Ok(());
    }
    let (mut first, mut last) = (i128::from(offset), i128::from(offset));
    for (&size, &stride) in sizes.iter().zip(strides) {
        let reach = (i128::from(size) - 1).saturating_mul(i128::from(stride));
        let end = if reach < 0 { &mut first } else { &mut last };
        *end = end.saturating_add(reach);
    }
    let available = bytes.checked_div(element).unwrap_or(usize::MAX);
    if first < 0 || last >= available as i128 {
        return Err(refused(format!(
            "its elements of {element} bytes are numbers {first} to {last} of a buffer that has {available}: offset, sizes and \
             strides count elements"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_dimension_runs_fastest() {
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(row_major(&[]), Vec::<i64>::new());
        let scalar = MemRef::contiguous(8, &[]);
        assert_eq!((scalar.rank(), scalar.indices().collect::<Vec<_>>()), (0, vec![0]));
        // No overflow, whatever the sizes.
        row_major(&[i64::MAX, i64::MAX, i64::MAX]);
    }

    #[test]
    fn elements_stay_inside_of_the_buffer() {
        let layout = |offset, sizes: &[i64], strides: &[i64]| check(96, 4, offset, sizes, strides);
        layout(0, &[2, 3, 4], &[12, 4, 1]).unwrap();
        // Backwards from the last element.
        layout(23, &[24], &[-1]).unwrap();
        layout(0, &[0, 1000], &[1000, 1]).unwrap();
        layout(23, &[], &[]).unwrap();
        assert_eq!(
            layout(1, &[24], &[1]).unwrap_err().to_string(),
            "a memref of a buffer: its elements of 4 bytes are numbers 1 to 24 of a buffer that has 24: offset, sizes and \
             strides count elements"
        );
        assert!(matches!(layout(22, &[24], &[-1]), Err(DriverError::Range { .. })));
        assert!(matches!(
            layout(i64::MAX, &[i64::MAX, i64::MAX], &[i64::MAX, i64::MAX]),
            Err(DriverError::Range { .. })
        ));
        assert_eq!(
            layout(0, &[-1], &[1]).unwrap_err().to_string(),
            "a memref of a buffer: it has -1 elements along dimension 0: sizes are 0 or more"
        );
        assert_eq!(
            layout(0, &[1], &[]).unwrap_err().to_string(),
            "a memref of a buffer: it has 1 sizes and 0 strides: both are as many as its rank"
        );
    }
}
