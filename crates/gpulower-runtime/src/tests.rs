//! What holds of the module as a whole.

use super::*;

/// Everything may go to other threads, and be used by several at once, but for a launch that is not enqueued yet.
#[test]
fn values_may_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Driver>();
    shared::<Device>();
    shared::<Context>();
    shared::<Stream>();
    shared::<Event>();
    shared::<DeviceBuffer>();
    shared::<PinnedBuffer>();
    shared::<Transfer>();
    shared::<Module>();
    shared::<Function>();
    shared::<DeviceSlice<'static>>();
    shared::<Arguments>();
    shared::<DriverLoadError>();
    shared::<DriverError>();
    shared::<ModuleError>();
    shared::<LaunchError>();
}
