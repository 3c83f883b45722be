//! The library's log, for whoever asks for it.

use std::{
    fmt::{self, Write},
    sync::{Arc, Once, PoisonError, RwLock},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::{Interest, set_global_default},
};

/// Takes a level, from 1 (an error) to 5 (a trace), the part of the library, and the words.
pub(crate) type Sink = Arc<dyn Fn(u32, &str, &str) + Send + Sync>;

static SINK: RwLock<Option<(LevelFilter, Sink)>> = RwLock::new(None);

fn sink() -> Option<(LevelFilter, Sink)> {
    SINK.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// From now on the log goes to `sink`.
pub(crate) fn set(to: Option<(LevelFilter, Sink)>) {
    static INSTALLED: Once = Once::new();
    *SINK.write().unwrap_or_else(PoisonError::into_inner) = to;
    // The only subscriber of this copy of `tracing`: nobody outside the library sees it.
    INSTALLED.call_once(|| drop(set_global_default(Log)));
    tracing::callsite::rebuild_interest_cache();
}

struct Log;

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && sink().is_some_and(|(level, _)| *metadata.level() <= level)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(sink().map_or(LevelFilter::OFF, |(level, _)| level))
    }

    fn event(&self, event: &Event<'_>) {
        let Some((_, sink)) = sink() else { return };
        let mut words = Words::default();
        event.record(&mut words);
        words.0.push_str(&words.1);
        let metadata = event.metadata();
        sink(number(*metadata.level()), metadata.target(), &words.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn number(level: Level) -> u32 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        _ => 5,
    }
}

/// The message, and the other fields as ` name=value`.
#[derive(Default)]
struct Words(String, String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.1, " {name}={value:?}"),
        };
    }
}
