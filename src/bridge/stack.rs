//! Whether memory for a stack can be had: the crate `stacker`, which maps it, panics where it cannot.

use std::{io, ptr::null_mut};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Maps as much memory as `stacker` does for a stack of `bytes`, in the same way, and gives it back.
///
/// # Errors
///
/// The error of `mmap(2)` or `mprotect(2)`.
pub(crate) fn check_room(bytes: usize) -> io::Result<()> {
    let page = rustix::param::page_size();
    let inside = bytes.next_multiple_of(page);
    // A page on either side that cannot be touched.
    let whole = inside + 2 * page;
    // SAFETY: the memory is new, nobody else knows of it, nothing in it is touched, and all of it is given back.
    unsafe {
        let start = mmap_anonymous(null_mut(), whole, ProtFlags::empty(), MapFlags::PRIVATE)?;
        let opened = mprotect(start.byte_add(page), inside, MprotectFlags::READ | MprotectFlags::WRITE);
        munmap(start, whole)?;
        Ok(opened?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_a_stack_and_none_for_more_than_an_address_space() {
        check_room(64 << 20).expect("room");
        let error = check_room(1 << 50).expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
