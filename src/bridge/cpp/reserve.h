// Memory that is held back for the moment when there is none.
//
// What allocates inside of `contain` and gets nothing is left by a jump, and a lock that it held stays locked: so it tries again
// where there is memory, and has a reserve to come to its next step, where it holds none. Outside of it, where frames of Rust are on the
// stack, nothing can be left: an exception of C++ would end the process there, and a failed allocation of Rust's aborts. These
// get the reserve, which is enough to come to the next `contain`, and that refuses to begin before there is a reserve again.
#pragma once

#include <cstddef>

namespace gpulower {

/// Sees to allocations of C++ that fail, in all of the process. The handler that was there before is called outside of
/// `contain` once the reserve is gone.
void installNewHandler();

/// Whether there are reserves for what begins now on this thread, made anew where they were used.
bool fillReserve();

/// Gives the reserve back to the system. False where it was used already, and there is no more memory.
bool releaseReserve();

/// Whether an allocation that failed, wherever that was, may succeed if it is tried again.
bool mayTryAgain();

/// Whether the contained call of this thread goes on with what was held back for it: it is to end at its next step.
bool livesOnReserve();

/// An allocation outside of `contain` failed for good: what comes now is the end of the process.
void noteRefusal();

/// Whether the system gives no more memory, or gave none.
bool isMemoryExhausted();

/// Whether an abort for want of memory says so: in processes that are ours.
bool hasWordsForDeath();

} // namespace gpulower
