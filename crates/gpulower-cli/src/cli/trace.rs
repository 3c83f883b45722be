//! `--trace`: what happened when and on which thread, as Chrome trace events, which Perfetto (ui.perfetto.dev) shows.

use std::{
    cell::Cell,
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use serde_json::{Map, Value, json};
use tracing::{
    Event, Id, Subscriber,
    field::{Field, Visit},
    span::Attributes,
};
use tracing_subscriber::{
    Layer,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use super::{
    Failed,
    message::escaped_in_json,
    to_stdout,
    write::{is_stdout, write_file},
};

/// A trace that is being taken.
pub struct Trace {
    path: PathBuf,
    events: Arc<Events>,
}

impl Trace {
    /// Begins a trace for this file, which has to be new, or another trace.
    pub fn begin(path: &Path) -> Result<Self, Failed> {
        let mut known = Vec::new();
        if path.is_file() && !is_stdout(path) {
            let file = File::open(path).map(|file| file.take(BEGIN.len() as u64));
            // What cannot be read is none.
            let _ = file.and_then(|mut file| file.read_to_end(&mut known));
        }
        if !known.is_empty() && known != BEGIN.as_bytes() {
            return Err(Failed::Usage(format!(
                "--trace {}: the file is there and is no trace; name another one",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            events: Arc::new(Events {
                start: Instant::now(),
                list: Mutex::default(),
            }),
        })
    }

    /// What takes the trace.
    pub fn layer(&self) -> TraceLayer {
        TraceLayer(Arc::clone(&self.events))
    }

    /// Writes the file.
    pub fn end(&self) -> Result<(), Failed> {
        let events = self.events.list.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        let text = format!("{BEGIN}\n{}\n]}}\n", lines.join(",\n"));
        let text = escaped_in_json(&text);
        if is_stdout(&self.path) {
            return to_stdout(text.as_bytes());
        }
        write_file(&self.path, text.as_bytes()).map_err(Failed::from)
    }
}

/// How the file begins.
const BEGIN: &str = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";

struct Events {
    start: Instant,
    list: Mutex<Vec<Value>>,
}

/// Threads are numbered as they are first heard of.
static THREADS: AtomicU64 = AtomicU64::new(1);
thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

impl Events {
    fn add(&self, phase: &str, name: &str, category: &str, arguments: &Map<String, Value>) {
        let microseconds = self.start.elapsed().as_nanos() as f64 / 1e3;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut thread = THREAD.get();
        if thread == 0 {
            thread = THREADS.fetch_add(1, Ordering::Relaxed);
            THREAD.set(thread);
            let name = thread::current().name().unwrap_or("thread").to_owned();
            if list.is_empty() {
                list.push(json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "gpulower"}}));
            }
            list.push(json!({"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": name}}));
        }
        let mut event = json!({
            "ph": phase, "pid": 1, "tid": thread, "ts": microseconds, "name": name, "cat": category, "args": arguments,
        });
        if let (Value::Object(fields), "i") = (&mut event, phase) {
            fields.insert("s".to_owned(), "t".into());
        }
        list.push(event);
    }
}

/// Writes down spans as they are entered and left, and events.
pub struct TraceLayer(Arc<Events>);

/// What a span is called, and what it says.
struct Recorded {
    name: String,
    arguments: Map<String, Value>,
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for TraceLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let text = |name: &str| fields.0.get(name).and_then(Value::as_str);
        let name = match (text("name"), text("module"), text("target")) {
            (Some(name), ..) => name.to_owned(),
            (None, Some(module), Some(target)) => format!("{module} for {target}"),
            _ => attributes.metadata().name().to_owned(),
        };
        let arguments = fields.0;
        span.extensions_mut().insert(Recorded { name, arguments });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.span("B", context.span(id));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.span("E", context.span(id));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = match fields.0.remove("message") {
            Some(Value::String(message)) => message,
            _ => event.metadata().name().to_owned(),
        };
        self.0.add("i", &name, event.metadata().target(), &fields.0);
    }
}

impl TraceLayer {
    fn span<S: for<'l> LookupSpan<'l>>(&self, phase: &str, span: Option<SpanRef<'_, S>>) {
        let Some(span) = span else { return };
        if let Some(Recorded { name, arguments }) = span.extensions().get() {
            self.0.add(phase, name, span.metadata().name(), arguments);
        }
    }
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn spans_and_events_are_written_with_their_thread() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let Ok(trace) = Trace::begin(&path) else {
            panic!("a new file");
        };
        let subscriber = tracing_subscriber::registry().with(trace.layer());
        tracing::subscriber::with_default(subscriber, || {
            let _job = tracing::debug_span!("job", module = "m\"\u{1b}", target = "sm_90").entered();
            tracing::debug_span!("stage", name = "lower").in_scope(|| tracing::debug!(what = "a cubin", "cache hit"));
        });
        trace.end().expect("written");
        let text = std::fs::read_to_string(&path).expect("the file");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let events = document["traceEvents"].as_array().expect("events");
        let shown: Vec<String> = events
            .iter()
            .map(|event| format!("{} {}", event["ph"], event["name"]))
            .collect();
        assert_eq!(
            shown,
            [
                "\"M\" \"process_name\"",
                "\"M\" \"thread_name\"",
                "\"B\" \"m\\\"\\u001b for sm_90\"",
                "\"B\" \"lower\"",
                "\"i\" \"cache hit\"",
                "\"E\" \"lower\"",
                "\"E\" \"m\\\"\\u001b for sm_90\""
            ]
        );
        assert_eq!(events[4]["args"]["what"], "a cubin");
        assert!(events.iter().skip(1).all(|event| event["tid"] == events[1]["tid"]));
        // The same file again, but none that is something else.
        assert!(Trace::begin(&path).is_ok());
        std::fs::write(&path, "gpu.module").expect("written");
        assert!(Trace::begin(&path).is_err());
    }
}
